"""A commit whose request comes late: after its client gave up, and planned the batch once more."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermouth.run.report import OpenReport
from tests.faults.outcomes import check_proved, went_well
from tests.lake import Heard, append_pipeline, retrying
from tests.stores.lake import StoredLake
from tests.stores.proxy import Fault, Proxy, Trouble, between

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.thorough]

PUTS = tuple(("PUT commit", nth, Fault.LATE.value) for nth in range(3, 12))
"""The puts of the first batch, after the table and its first entry. A client tries nine times."""


@dataclass
class Waiting(Heard):
    """Once the pipeline is open again, and before anything is read, the late commit comes."""

    proxy: Proxy = field(kw_only=True)
    late: Path = field(kw_only=True)

    def opened(self, report: OpenReport) -> None:
        super().opened(report)
        if len(self.opens) == 2:
            assert not self.late.exists()
            self.proxy.set()
            while not self.late.exists():
                time.sleep(0.05)


def test_a_commit_that_comes_late_is_no_other_drivers(
    stored: StoredLake, rivermouth_spark: SparkSession
) -> None:
    with between(stored.store.port) as proxy:
        lake = replace(stored, endpoint=proxy.endpoint)
        lake.topic("comes-late")
        lake.configure(late=retrying(append_pipeline("comes-late"), 60))
        records = lake.bids("comes-late", 5)
        late = lake.path("bronze.comes_late") / "_delta_log" / f"{2:020d}.json"
        heard = Waiting(proxy=proxy, late=late)
        proxy.set(Trouble(strikes=PUTS, held=True))
        went_well(lake.run(rivermouth_spark, "late", heard=heard))
        assert [each.error.code for each in heard.retries] == ["RM503", "RM501"]
        check_proved(lake, records)
