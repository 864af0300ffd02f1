"""Lakes of tests in a real object store."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rivermouth.config import unresolved
from rivermouth.config.bucket import read_bucket
from rivermouth.config.models import Storage
from rivermouth.local.s3 import BUCKET, LocalS3
from rivermouth.storage.lake import Lake as Tables
from tests.lake import Lake


def storage_of(server: LocalS3, endpoint: str = "") -> dict[str, str]:
    """``storage`` of a configuration; ``endpoint``: of what is between."""
    told = server.options["endpoint"].replace(server.endpoint, endpoint or server.endpoint)
    return {**server.options, "endpoint": told}


def lake_in(server: LocalS3, prefix: str, endpoint: str = "") -> Tables:
    """The tables below a prefix of the bucket of a store."""
    bucket = read_bucket(server.address)
    assert bucket is not None
    options = Storage(options={**storage_of(server, endpoint)})
    return Tables.at(replace(bucket, prefix=prefix), options, lambda: unresolved)


@dataclass
class StoredLake(Lake):
    """A lake whose tables are below ``prefix`` of the bucket of ``store``.

    ``endpoint``: of what is between.
    """

    store: LocalS3 = field(kw_only=True)
    prefix: str = field(kw_only=True)
    endpoint: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        where: dict[str, Any] = {"warehouse": f"{self.store.address}/{self.prefix}"}
        where["storage"] = storage_of(self.store, self.endpoint)
        self.settings = {**self.settings, **where}

    @property
    def warehouse(self) -> Path:
        """Where the store keeps the objects, each as a file, if it does so."""
        return self.store.objects / BUCKET / self.prefix
