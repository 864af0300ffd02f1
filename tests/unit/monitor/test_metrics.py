"""The figures of a run: what they add up to, as Prometheus scrapes them and OTLP receives them."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from prometheus_client.parser import text_string_to_metric_families as parsed

from rivermouth.errors import ConfigError, KafkaUnreachable, OffsetGap, SetupError
from rivermouth.monitor.metrics import FIGURES, Measured, Meter
from rivermouth.monitor.otel import OtelMeter
from rivermouth.monitor.prometheus import PrometheusMeter, served, written
from rivermouth.operate.pace import Pace, State, Step
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.operate.waiting import Waiting
from rivermouth.protocol.entry import RowCounts
from rivermouth.protocol.kafka_facts import Outlook, TimeLeft
from rivermouth.protocol.offsets import OffsetRange, Position, TopicPartition
from rivermouth.run.report import CommitReport, PipelineReport, RetryReport, Silent

pytestmark = pytest.mark.unit

PLACE = TopicPartition("orders", 0)
COMMIT = CommitReport(
    "orders", 5, 5, (OffsetRange(PLACE, 10, 20),), (RowCounts(6, 3, 1),), Position({PLACE: 20}), 0.3
)
STATUS = PipelineStatus(
    "orders",
    State.SLOW,
    "s.orders",
    lag_messages=70,
    lag_seconds=12.5,
    pace=Pace((Step(5_000, 3), Step(9_000, 7))),
    waiting=Waiting(1, TimeLeft(Outlook.BY_AGE, "", 3_600.0)),
)


def run(meter: Meter) -> None:
    """What a run of two commits tells, in which a batch was tried again and a pipeline failed."""
    heard = Measured(Silent(), meter)
    heard.committed(COMMIT)
    heard.committed(COMMIT)
    heard.tries_again(RetryReport("orders", KafkaUnreachable("away"), 1.0))
    heard.finished(PipelineReport("orders", 2, 12, 6, 6, 1.0))
    heard.finished(PipelineReport("bad", 0, 0, 0, 0, 1.0, OffsetGap("a gap")))
    heard.seen(Status([STATUS]))


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels."""
    return {
        (each.name, *(value for _, value in sorted(each.labels.items()))): each.value
        for family in parsed(text)
        for each in family.samples
    }


EXPECTED = {
    ("rivermouth_records_total", "applied", "orders"): 12,
    ("rivermouth_records_total", "quarantined", "orders"): 6,
    ("rivermouth_records_total", "skipped", "orders"): 2,
    ("rivermouth_offsets_total", "orders"): 20,
    ("rivermouth_commits_total", "orders"): 2,
    ("rivermouth_commit_seconds_count", "orders"): 2,
    ("rivermouth_commit_seconds_sum", "orders"): 0.6,
    ("rivermouth_commit_seconds_bucket", "0.25", "orders"): 0,
    ("rivermouth_commit_seconds_bucket", "0.5", "orders"): 2,
    ("rivermouth_retries_total", "orders"): 1,
    ("rivermouth_failures_total", "RM401", "bad"): 1,
    ("rivermouth_last_commit_timestamp_seconds", "orders"): 9,
    ("rivermouth_lag_records", "orders"): 70,
    ("rivermouth_lag_seconds", "orders"): 12.5,
    ("rivermouth_retention_headroom_seconds", "orders"): 3_600,
    ("rivermouth_state", "orders", "SLOW"): 1,
    ("rivermouth_state", "orders", "OK"): 0,
}


def test_prometheus_scrapes_what_the_run_did() -> None:
    meter = served("127.0.0.1:0")
    run(meter)
    with urlopen(f"http://127.0.0.1:{meter.port}/metrics", timeout=10) as answer:
        found = samples(answer.read().decode())
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    assert not [name for name, *_ in found if name.endswith("_created")]
    meter.close()
    with pytest.raises(URLError):
        urlopen(f"http://127.0.0.1:{meter.port}/metrics", timeout=1)


def test_a_file_has_the_same_at_the_end(tmp_path: Path) -> None:
    meter = written(tmp_path / "rivermouth.prom")
    run(meter)
    assert [*tmp_path.iterdir()] == []
    meter.close()
    found = samples((tmp_path / "rivermouth.prom").read_text("utf-8"))
    assert {name: found[name] for name in EXPECTED} == EXPECTED


def test_a_gauge_that_nobody_knows_any_more_is_gone() -> None:
    meter = PrometheusMeter()
    heard = Measured(Silent(), meter)
    unknown = PipelineStatus("orders", State.UNKNOWN, "s.orders")
    for status in (unknown, STATUS, unknown):
        heard.seen(Status([status]))
    known = meter.registry.get_sample_value("rivermouth_lag_records", {"pipeline": "orders"})
    assert known is None
    labels = {"pipeline": "orders", "state": "UNKNOWN"}
    assert meter.registry.get_sample_value("rivermouth_state", labels) == 1


@pytest.mark.parametrize("address", ["9464", ":", ":70000", "host:x", "a b:1"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="write :PORT or HOST:PORT"):
        served(address)


def test_a_port_that_is_taken_is_a_fault_of_the_setup() -> None:
    first = served("127.0.0.1:0")
    try:
        with pytest.raises(SetupError, match="cannot be served"):
            served(f"127.0.0.1:{first.port}")
    finally:
        first.close()


@pytest.fixture
def received() -> Iterator[tuple[str, list[ExportMetricsServiceRequest]]]:
    """A server on loopback that takes OTLP over HTTP: its address, and what it received."""
    found = list[ExportMetricsServiceRequest]()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.append(ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", found
    server.shutdown()
    server.server_close()
    thread.join()


def test_opentelemetry_sends_the_same_at_the_end(
    received: tuple[str, list[ExportMetricsServiceRequest]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, requests = received
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    meter = OtelMeter()
    run(meter)
    meter.close()
    [resource] = requests[-1].resource_metrics
    assert "rivermouth" in str(resource.resource.attributes)
    [scope] = resource.scope_metrics
    metrics = {each.name: each for each in scope.metrics}
    assert {*metrics} == {f"rivermouth.{each.name}" for each in FIGURES}
    records = {
        point.attributes[1].value.string_value: point.as_int
        for point in metrics["rivermouth.records"].sum.data_points
    }
    assert records == {"applied": 12, "quarantined": 6, "skipped": 2}
    [lag] = metrics["rivermouth.lag_seconds"].gauge.data_points
    assert lag.as_double == 12.5
    [took] = metrics["rivermouth.commit_seconds"].histogram.data_points
    assert (took.count, round(took.sum, 3)) == (2, 0.6)
