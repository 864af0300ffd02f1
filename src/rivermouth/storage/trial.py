"""Whether a store keeps the promise on which all commits rest: of several that create one object
at once, one succeeds.

Some stores ignore the condition, others look first and write then. A race finds both.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from itertools import repeat

import obstore

from rivermouth.errors.store import StoreRefused, StoreUnreachable
from rivermouth.storage.client import Client
from rivermouth.storage.faults import StoreFault, asked, told
from rivermouth.storage.lake import Lake

ROUNDS, WRITERS = 4, 16
_TRYING = threading.Lock()
_KEYS = "Correct the keys under storage:, or those that the platform gives"
_RIGHTS = "Give the rights to get, put, delete and list the objects of the warehouse"
_REMEDIES: Mapping[str, str] = {
    "NoSuchBucket": "Create the bucket, or correct warehouse:",
    "InvalidAccessKeyId": _KEYS,
    "SignatureDoesNotMatch": _KEYS,
    "InvalidToken": _KEYS,
    "ExpiredToken": _KEYS,
    "AccessDenied": _RIGHTS,
    "RequestTimeTooSkewed": "Set the clock of this machine",
    "AuthorizationHeaderMalformed": "Correct storage.region",
    "PermanentRedirect": "Correct storage.region",
    "ContainerNotFound": "Create the container, or correct warehouse:",
    "AuthenticationFailed": _KEYS,
    "AuthorizationFailure": f"{_KEYS}. {_RIGHTS}",
    "AuthorizationPermissionMismatch": _RIGHTS,
}
"""What to do, by what S3 and Azure answer."""


def tried(lake: Lake) -> None:
    """See that commits in the lake exclude each other, and that it can be listed; once a process.

    Nothing is left there. Raises StoreRefused, and StoreUnreachable where it does not answer.
    """
    try:
        with _TRYING:  # pipelines of one run begin together
            _tried(lake.client, lake.below("rivermouth", "trial").prefix, lake.url)
    except StoreFault as fault:
        what = "the object store cannot be used"
        if fault.passes:
            raise StoreUnreachable(what, where=lake.url, found=str(fault)) from fault
        remedy = _REMEDIES.get(fault.code, "")
        raise StoreRefused(what, where=lake.url, found=str(fault), remedy=remedy) from fault


@cache
def _tried(client: Client, prefix: str, where: str) -> None:
    for _ in range(ROUNDS):
        path = f"{prefix}/{uuid.uuid4()}"
        try:
            with ThreadPoolExecutor(WRITERS) as threads:
                won = sum(threads.map(_creates, repeat(client), repeat(path), range(WRITERS)))
        finally:
            with suppress(OSError):
                asked(where, partial(obstore.delete, client.objects, path))
        if won > 1:
            raise StoreRefused(
                "the object store lets several writers create one object",
                where=where,
                expected=f"one of {WRITERS} that create it at once is told that it did",
                found=f"{won} were told so",
                remedy="Use a store that keeps If-None-Match: see docs/stores.md",
            )
    asked(where, lambda: [*obstore.list(client.objects, f"{prefix}/")])


def _creates(client: Client, path: str, number: int) -> bool:
    """Whether a writer is told that it created the object."""
    objects = client.objects
    try:
        asked(path, lambda: obstore.put(objects, path, b"%d" % number, mode="create"))
    except FileExistsError:
        return False
    except FileNotFoundError as fault:  # what answers so to a put is no store
        raise told(fault.__cause__ or fault, path) from fault
    return True
