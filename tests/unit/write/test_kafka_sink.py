"""What the Kafka sink tells Spark's writer, whatever the configuration says."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import MagicMock

import pytest

from rivermouth.config import load
from rivermouth.config.platforms import PLATFORMS, Platform
from rivermouth.config.secret import unresolved
from rivermouth.source.batches import kafka_options
from rivermouth.write.landing import Site
from rivermouth.write.sinks import KafkaSink

pytestmark = pytest.mark.unit

FILE = """\
version: 1
kafka: {{bootstrap.servers: "k:9092", max.request.size: 2000000, {weaker}}}
warehouse: lake
pipelines:
  p:
    source: {{topics: [orders], format: json}}
    schema: id BIGINT
    target: {{kafka: orders-clean}}
"""
WEAKER = [
    'acks: "1"',
    "acks: 0",
    "enable.idempotence: false",
    "allow.auto.create.topics: true",
    "acks: all, ACKS: 0, Enable.Idempotence: false",
]


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=[*PLATFORMS])
@pytest.mark.parametrize("weaker", WEAKER)
def test_no_option_of_the_file_weakens_what_is_acknowledged(
    weaker: str, platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lake.yml"
    file.write_text(FILE.format(weaker=weaker), encoding="utf-8")
    config = load(file)
    monkeypatch.setattr("rivermouth.write.sinks.F", MagicMock())  # columns need a JVM
    site = Site(
        spark=MagicMock(),
        pipeline=config.pipelines["p"],
        address=MagicMock(),
        make=MagicMock(),
        quarantine=MagicMock(),
        one_host=False,
        jvm=True,
        staging=MagicMock(),
        kafka=kafka_options(config.kafka.revealed(unresolved), {}, platform),
    )
    rows = MagicMock()

    KafkaSink(site).send(rows, MagicMock())

    options = rows.select.return_value.write.format.return_value.options
    [told] = [call.kwargs for call in options.call_args_list]
    by_lower_case = {name.lower(): text for name, text in told.items()}
    assert len(by_lower_case) == len(told), "Spark takes these for the same option"
    assert by_lower_case == {
        "kafka.bootstrap.servers": "k:9092",
        "kafka.max.request.size": "2000000",
        "kafka.acks": "all",
        "kafka.enable.idempotence": "true",
        "kafka.allow.auto.create.topics": "false",
    }
    options.return_value.save.assert_called_once_with()
