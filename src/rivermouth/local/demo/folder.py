"""The demo's folder: a configuration, Kafka's data, the tables. Only a demo's folder is deleted."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from rivermouth.errors import SetupError
from rivermouth.local.cache import writing

_MARKER = ".rivermouth-demo"

CONFIG = """\
# Two topics, two tables. Type: rivermouth validate, then status, verify, sql, run.
version: 1
kafka:
  bootstrap.servers: {bootstrap_servers}
warehouse: ./lake
pipelines:
  bids:                            # append: every record becomes a row
    source: {{topics: [bids], format: json, max_offsets_per_trigger: {bids_per_batch}}}
    schema: >-
      auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,
      at TIMESTAMP, extra STRING
    target: {{table: bronze.bids}}
  orders:                          # upsert: one row per order, the newest
    source:                        # a record without value deletes the order of its key
      {{topics: [orders], format: json, key: string, max_offsets_per_trigger: {orders_per_batch}}}
    schema: "order_id BIGINT, status STRING, amount DECIMAL(12,2), updated_at TIMESTAMP"
    target: {{table: silver.orders, mode: upsert, keys: [order_id], order_by: [updated_at]}}
"""


@dataclass(frozen=True)
class DemoFolder:
    """The files of the demo below ``path``."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "rivermouth.yml"

    @property
    def kafka(self) -> Path:
        return self.path / "kafka"

    def recreate(self) -> None:
        """Delete the folder of an earlier demo and create an empty one.

        Raises SetupError, and deletes nothing, if the folder holds anything but a demo.
        """
        with writing(self.path):
            if self.path.exists():
                self._require_demo()
                shutil.rmtree(self.path)
            self.path.mkdir(parents=True)
            (self.path / _MARKER).write_text("The demo may delete this folder.\n", "utf-8")

    def configure(self, bootstrap_servers: str, bids_per_batch: int, orders_per_batch: int) -> None:
        """Write the configuration."""
        text = CONFIG.format(
            bootstrap_servers=bootstrap_servers,
            bids_per_batch=bids_per_batch,
            orders_per_batch=orders_per_batch,
        )
        self.config.write_text(text, "utf-8")

    def _require_demo(self) -> None:
        if not self.path.is_dir():
            raise SetupError(
                "there is a file in place of the demo's folder",
                where=str(self.path),
                remedy="Name another folder with --dir",
            )
        if any(self.path.iterdir()) and not (self.path / _MARKER).is_file():
            raise SetupError(
                "the folder holds files that no demo made",
                where=str(self.path),
                remedy="Name another folder with --dir, or empty this one",
            )
