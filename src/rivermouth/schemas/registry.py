"""The edge to a schema registry, by confluent-kafka's client. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rivermouth.config.options import NUMBERS
from rivermouth.errors import MissingPackage, SourceError
from rivermouth.errors.registry import RegistryRefused, RegistryUnreachable

_NOT_FOUND = 404
_REFUSED = (401, 403)
_DEFAULTS: Mapping[str, Any] = {"timeout": 10, "max.retries": 1}


@dataclass(frozen=True)
class Schema:
    """A schema as it was registered: ``kind`` is AVRO, PROTOBUF or JSON.

    ``references`` are the others that it needs, by the names by which it calls them.
    """

    kind: str
    text: str
    references: Mapping[str, Schema]


class Registry:
    """What a registry has, in a block. ``options`` are those of the client, with secrets revealed.

    Every method may raise a SourceError: RegistryUnreachable where it gives no answer.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._where = options["url"]
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient
        except ImportError as fault:
            raise MissingPackage(
                "the client of schema registries is not installed",
                where=self._where,
                found=str(fault),
                remedy="Run: pip install 'rivermouth[registry]'",
            ) from fault
        given = {name: float(o) if name in NUMBERS else o for name, o in options.items()}
        try:
            self._client = SchemaRegistryClient({**_DEFAULTS, **given})
        except (ValueError, TypeError, OSError) as fault:
            raise RegistryRefused(
                "its client refuses the options", where=self._where, found=str(fault)
            ) from fault

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def schema(self, number: int) -> Schema | None:
        """The schema of a number; None: there is none."""
        found = self._ask(lambda: self._client.get_schema(number))
        return None if found is None else self._whole(found)

    def newest(self, subject: str) -> Schema | None:
        """The newest schema of a subject; None: it does not exist."""
        found = self._ask(lambda: self._client.get_latest_version(subject))
        return None if found is None else self._whole(found.schema)

    def numbers(self, subject: str) -> tuple[int, ...]:
        """The numbers of all versions of a subject, the oldest first; none: it does not exist."""
        versions = self._ask(lambda: self._client.get_versions(subject)) or ()
        found = [
            self._ask(lambda v=each: self._client.get_version(subject, v)) for each in versions
        ]
        return tuple(each.schema_id for each in found if each is not None)

    def _whole(self, found: Any) -> Schema:
        inner: dict[str, Schema] = {}
        for each in found.references or ():
            version = self._ask(lambda r=each: self._client.get_version(r.subject, r.version))
            if version is None:
                raise RegistryRefused(
                    "a schema refers to one that is not there",
                    where=self._where,
                    found=f"{each.name}, version {each.version} of {each.subject}",
                    remedy="Register it again",
                )
            inner[each.name] = self._whole(version.schema)
        return Schema(found.schema_type or "AVRO", found.schema_str, inner)

    def _ask(self, request: Any) -> Any:
        """What it answers; None: it says that there is no such thing."""
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return request()
        except SchemaRegistryError as fault:
            if fault.http_status_code == _NOT_FOUND:
                return None
            raise self._error(fault.http_status_code, str(fault)) from fault
        except Exception as fault:  # the client lets those of its own client of HTTP through
            found = f"{type(fault).__name__}: {fault}"
            raise RegistryUnreachable("no answer", where=self._where, found=found) from fault

    def _error(self, status: int, found: str) -> SourceError:
        if status in _REFUSED:
            return RegistryRefused("it refused the login", where=self._where, found=found)
        return RegistryUnreachable("it cannot answer", where=self._where, found=found)
