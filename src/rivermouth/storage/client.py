"""The client of a store of objects: this machine's folders, S3, Azure, Google.

A client is a value: a task gets it with what it is to write, and each process opens it once. It
carries credentials only where the configuration names them; else each process finds its own, as
the client of the platform does (``obstore``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any, cast

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, LocalStore, MemoryStore, ObjectStore, S3Store

from rivermouth.config.bucket import AZURE, GOOGLE, RENEWED, S3
from rivermouth.storage.faults import StoreFault, told

FILE, MEMORY = "file", "memory"
Options = tuple[tuple[str, str], ...]

_MOMENT, _LARGE = "20s", "10m"
"""So long may a request take, and one that moves a data file."""
_RENEW_S = 300.0
"""Credentials that are read anew are read so often."""
_DELTA_RS = {S3: "aws_", AZURE: "azure_storage_", GOOGLE: "google_"}
"""What each option begins with there."""


@dataclass(frozen=True)
class Client:
    """A client of one container: of a bucket, say. ``options`` are those of ``storage`` in a
    configuration. ``renewed`` gives the others, which are read anew from time to time.
    """

    scheme: str = FILE
    container: str = ""
    options: Options = field(default=(), repr=False)
    renewed: Callable[[], Mapping[str, str]] | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def in_memory() -> Client:
        """One for tests: its objects are gone with the process."""
        return Client(MEMORY, str(uuid.uuid4()))

    @property
    def objects(self) -> ObjectStore:
        """What answers in a moment, opened once a process."""
        return _opened(self, _MOMENT)

    @property
    def large(self) -> ObjectStore:
        """The same for large objects."""
        return _opened(self, _LARGE)

    @property
    def now(self) -> dict[str, str]:
        """All options as they are now."""
        return {**dict(self.options), **(self.renewed() if self.renewed else {})}

    @property
    def delta_rs(self) -> dict[str, str]:
        """The same for delta-rs. ``allow_http`` where the address says so."""
        begins = _DELTA_RS.get(self.scheme)
        if begins is None:
            return {}
        told = {begins + name: value for name, value in self.now.items()}
        return told | ({"allow_http": "true"} if _is_plain(self.options) else {})

    def __reduce__(self) -> tuple[object, ...]:
        # A task is over soon: it gets what is valid now, and reads no secret.
        return Client, (self.scheme, self.container, tuple(sorted(self.now.items())))


def _is_plain(options: Options) -> bool:
    return dict(options).get("endpoint", "").startswith("http://")


@cache
def _opened(client: Client, timeout: str) -> ObjectStore:
    if client.scheme == FILE:
        return LocalStore()
    if client.scheme == MEMORY:
        return _memory(client.container)
    given: dict[str, Any] = {
        "config": dict(client.options),
        "client_options": {"timeout": timeout, "allow_http": _is_plain(client.options)},
        "retry_config": {"max_retries": 8, "retry_timeout": timedelta(seconds=30)},
    }
    if client.renewed is not None:
        given["credential_provider"] = _Renewing(client.renewed)
    kind = {S3: S3Store, AZURE: AzureStore, GOOGLE: GCSStore}[client.scheme]
    try:
        return cast(ObjectStore, kind(client.container, **given))
    except BaseError as fault:
        raise StoreFault(str(told(fault, "storage")), passes=False) from fault


@cache
def _memory(container: str) -> MemoryStore:
    del container
    return MemoryStore()


class _Renewing:
    """Credentials for ``obstore``, which asks again once they have expired."""

    def __init__(self, renewed: Callable[[], Mapping[str, str]]) -> None:
        self._renewed = renewed

    def __call__(self) -> dict[str, Any]:
        found = {RENEWED[name]: each for name, each in self._renewed().items()}
        until = datetime.now(timezone.utc) + timedelta(seconds=_RENEW_S)
        return {**found, "expires_at": until}
