"""Lakes of tests in a real object store."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rivermouth.local.s3 import BUCKET, LocalS3
from rivermouth.storage.client import Client
from rivermouth.storage.lake import Lake as Tables
from tests.lake import Lake


def storage_of(server: LocalS3, endpoint: str = "") -> dict[str, str]:
    """``storage`` of a configuration; ``endpoint``: of what is between."""
    return {**server.options, "endpoint": endpoint or server.endpoint}


def lake_in(server: LocalS3, prefix: str, endpoint: str = "") -> Tables:
    """The tables below a prefix of the bucket of a store."""
    client = Client("s3", BUCKET, tuple(sorted(storage_of(server, endpoint).items())))
    return Tables(client, prefix, f"s3://{BUCKET}/{prefix}")


@dataclass
class StoredLake(Lake):
    """A lake whose tables are below ``prefix`` of the bucket of ``store``.

    ``endpoint``: of what is between.
    """

    store: LocalS3 = field(kw_only=True)
    prefix: str = field(kw_only=True)
    endpoint: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        where: dict[str, Any] = {"warehouse": f"s3://{BUCKET}/{self.prefix}"}
        where["storage"] = storage_of(self.store, self.endpoint)
        self.settings = {**self.settings, **where}

    @property
    def warehouse(self) -> Path:
        """Where the store keeps the objects, each as a file."""
        return self.store.directory / "objects" / BUCKET / self.prefix
