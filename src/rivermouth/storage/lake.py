"""Where the tables of a configuration lie as files: below a folder, or a prefix of a bucket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth.config import Catalog, Config, Secret, Secrets, TableName, unresolved
from rivermouth.config.bucket import AZURE, RENEWED, Bucket
from rivermouth.config.models import Storage
from rivermouth.storage.client import FILE, Client

if TYPE_CHECKING:
    from rivermouth.storage.store import Store


@dataclass(frozen=True)
class Lake:
    """The prefix of all tables. ``url`` is how other tools name it: a path, or an address."""

    client: Client
    prefix: str
    url: str

    @staticmethod
    def in_folder(folder: Path) -> Lake:
        """That in a folder of this machine."""
        path = str(folder.absolute())
        return Lake(Client(), path, path)

    @staticmethod
    def of(config: Config, secrets: Secrets = unresolved) -> Lake:
        """That of a configuration. ``secrets`` reads those that it only names.

        Raises ConfigError where its tables are in a catalog.
        """
        return Lake.at(config.files, config.storage, lambda: secrets)

    @staticmethod
    def if_any(config: Config, secrets: Secrets = unresolved) -> Lake | None:
        """The same; None where its tables are in a catalog."""
        return None if isinstance(config.warehouse, Catalog) else Lake.of(config, secrets)

    @staticmethod
    def at(where: Path | Bucket, storage: Storage | None, read: Callable[[], Secrets]) -> Lake:
        """That at a folder, or in a bucket with these options. ``read`` gives what reads secrets,
        and is asked where one is named.
        """
        if isinstance(where, Path):
            return Lake.in_folder(where)
        options = {} if storage is None else {**storage.options}
        if where.store == AZURE and where.account:
            options.setdefault("account_name", where.account)
        fixed, renewed = dict[str, str](), dict[str, Secret]()
        for name, value in options.items():
            if isinstance(value, Secret) and value.names and name in RENEWED:
                renewed[name] = value
            else:
                fixed[name] = _plain(value, read) if isinstance(value, Secret) else value
        if renewed:  # all of a credential at once
            renewed |= {name: Secret(fixed.pop(name)) for name in RENEWED if name in fixed}
        again = partial(_revealed, renewed, read) if renewed else None
        client = Client(where.store, where.name, tuple(sorted(fixed.items())), again)
        return Lake(client, where.prefix, str(where))

    @property
    def folder(self) -> Path | None:
        """The folder of this machine; None: it is elsewhere."""
        return Path(self.prefix) if self.client.scheme == FILE else None

    def address(self, table: TableName) -> str:
        """How other tools name a table."""
        return f"{self.url}/{table.schema}/{table.name}"

    def store(self, table: TableName) -> Store:
        """The objects of a table."""
        return self.below(table.schema, table.name)

    def below(self, *names: str) -> Store:
        """The objects below a folder."""
        from rivermouth.storage.store import Store  # the proof of the tables does without it

        return Store(self.client, self.path(*names), "/".join((self.url, *names)))

    def path(self, *names: str) -> str:
        """Where the client finds what is below a folder."""
        return "/".join(filter(None, (self.prefix.rstrip("/"), *names)))


def in_bucket(tables: Lake | Store | None) -> bool:
    """Whether they lie in an object store: not in a folder, nor in a catalog, which is None."""
    return tables is not None and tables.folder is None


def _revealed(options: Mapping[str, Secret], read: Callable[[], Secrets]) -> dict[str, str]:
    return {name: _plain(value, read) for name, value in options.items()}


def _plain(value: Secret, read: Callable[[], Secrets]) -> str:
    return value.reveal(read()) if value.names else value.reveal()
