"""The command on real parts: a broker, Spark, Delta; every exit code really produced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermouth.local.broker import Broker
from rivermouth.local.machine import heap_settings, memory_mb
from tests.commands import scratch_in
from tests.lake import Lake, append_pipeline, bid, order, upsert_pipeline
from tests.processes import started
from tests.waiting import PATIENCE_S, wait_for_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

SCRIPT = Path(sys.executable).with_name("rivermouth")
COMMAND = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "rivermouth"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, rivermouth_broker: Broker) -> Lake:
    """A lake with an append and an upsert pipeline and a few records; nothing has run yet."""
    lake = Lake(tmp_path_factory.mktemp("shop"), rivermouth_broker.bootstrap_servers)
    lake.topic("cli-bids", 2, retention_ms="86400000")
    lake.topic("cli-orders", 1, cleanup_policy="compact")
    lake.configure(bids=append_pipeline("cli-bids"), orders=upsert_pipeline("cli-orders"))
    events_of(lake).mkdir()
    as_text = {"enabled": "true", "compress": "false", "rolling.enabled": "false"}
    event_log = {**as_text, "dir": events_of(lake).as_uri()}
    spark = {f"spark.eventLog.{name}": value for name, value in event_log.items()}
    rewritten(lake, lambda it: it.update(spark=spark)).rename(lake.file)
    lake.produce("cli-bids", [(None, bid(i), i % 2) for i in range(40)])
    lake.produce("cli-bids", [(None, b"{oops", 0)])
    lake.produce("cli-orders", [(b"%d" % i, order(i, "open", i), 0) for i in range(5)])
    lake.produce("cli-orders", [(b"2", None, 0)])
    return lake


def events_of(lake: Lake) -> Path:
    """Where the sessions of the configuration say what they do, and with which settings."""
    return lake.folder / "events"


def answer(lake: Lake, *words: str) -> Any:
    """What a command says as JSON; it must end well."""
    done = lake.command(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rewritten(lake: Lake, change: Callable[[dict[str, Any]], object]) -> Path:
    """Another configuration of the same lake."""
    config = json.loads(lake.file.read_text(encoding="utf-8"))
    change(config)
    file = lake.folder / "changed.yml"
    file.write_text(json.dumps(config), encoding="utf-8")
    return file


def test_doctor_checks_what_a_configuration_needs(shop: Lake) -> None:
    done = shop.command("doctor")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [line for line in lines[:-1] if not line.startswith(("OK ", "     "))] == []
    said = " ".join(done.stdout.split())
    assert "sha256 of each as locked" in said
    assert "topic cli-bids 2 partition(s), 41 offsets, kept for 1 day OK" in said
    assert "topic cli-orders 1 partition(s), 6 offsets, kept without limit" in said
    assert lines[-1].startswith("OK. Next: rivermouth run ")


def test_doctor_names_what_fails_and_what_to_do_with_exit_code_2(shop: Lake) -> None:
    file = rewritten(shop, lambda it: it["pipelines"]["bids"]["source"].update(topics=["nope"]))
    done = shop.command("doctor", file=file)
    assert done.returncode == 2
    assert "FAIL topic nope" in done.stdout
    assert "OK   topic cli-orders" in done.stdout
    assert "to do: Create the topic" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("FAILED: 1 ")


def test_a_continuous_run_finishes_its_batch_on_sigterm_with_exit_code_0(shop: Lake) -> None:
    words = [*COMMAND, "run", str(shop.file), "--continuous"]
    environ = {**os.environ, **scratch_in(shop.scratch), "NO_COLOR": "1"}
    with started(words, environ, stderr=subprocess.PIPE) as process:
        wait_for_rows(shop.path("bronze.cli_bids"), 40)
        wait_for_rows(shop.path("silver.cli_orders"), 4)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, out + err
    assert "stopping after the current batch" in err
    lines = out.splitlines()
    assert "starting Spark…" in lines
    assert "bids: first run, 41 offsets behind" in lines
    assert lines[-1].startswith("OK: stopped; the next run continues from here. Next: ")
    assert [line for line in lines if len(line) > 80 and str(shop.file) not in line] == []
    assert not any((shop.scratch / "checkpoints").glob("*"))


def test_its_session_had_the_settings_of_the_file_and_memory_for_its_partitions(
    shop: Lake,
) -> None:
    logs = [*events_of(shop).iterdir()]
    assert len(logs) == 1, "the file asks for a log of each session"
    events = map(json.loads, logs[0].read_text(encoding="utf-8").splitlines())
    [settings] = (each["Spark Properties"] for each in events if "Spark Properties" in each)
    assert settings.items() >= heap_settings([2, 1], memory_mb()).items()


def test_status_reads_the_position_without_pyspark(shop: Lake) -> None:
    blocked = "import sys; sys.modules.update(pyspark=None, delta=None)\n"
    code = f"{blocked}from rivermouth.cli.app import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, "status", str(shop.file), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    bids, orders = json.loads(done.stdout)["pipelines"]
    assert bids["position"] == {"cli-bids": {"0": 21, "1": 20}}
    assert (bids["state"], bids["sequence"], bids["lag"]["messages"]) == ("OK", 2, 0)
    assert orders["position"] == {"cli-orders": {"0": 6}}
    shown = shop.command("status").stdout
    rows = [line.split()[:3] for line in shown.splitlines()]
    assert ["bids", "OK", "2"] in rows
    assert ["orders", "OK", "2"] in rows
    assert max(map(len, shown.splitlines())) <= 80


def test_sql_answers_on_tables_quarantine_and_offsets(shop: Lake) -> None:
    assert answer(shop, "sql", "SELECT count(*) AS n FROM bronze.cli_bids") == [{"n": 40}]
    bad = answer(shop, "sql", 'SELECT "offset", code FROM bronze.cli_bids_quarantine')
    assert bad == [{"offset": 20, "code": "RM603"}]
    total = "SELECT pipeline, sum(records) AS n FROM rivermouth.offsets GROUP BY 1 ORDER BY 1"
    assert answer(shop, "sql", total) == [
        {"pipeline": "bids", "n": 41},
        {"pipeline": "orders", "n": 6},
    ]


def test_verify_proves_it_and_offsets_rebuild_leaves_it_proven(shop: Lake) -> None:
    assert answer(shop, "verify")["ok"] is True
    before = sorted(map(str, shop.rows("rivermouth.offsets")))

    rebuilt = shop.command("offsets rebuild")

    assert rebuilt.returncode == 0, rebuilt.stderr
    assert "bids: 2 entries" in rebuilt.stdout
    assert sorted(map(str, shop.rows("rivermouth.offsets"))) == before
    shown = shop.command("verify", "--select", "orders")
    assert shown.returncode == 0
    assert shown.stdout.splitlines()[-1] == "OK: 6 records read again, 0 missing, 0 duplicated"
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_a_delete_on_purpose_is_accepted_and_the_rest_stays_proven(
    shop: Lake, rivermouth_spark: SparkSession
) -> None:
    table = DeltaTable(str(shop.path("bronze.cli_bids")))
    table.delete("auction = 9")
    words = ("accept-deletes", "bids", "--versions", str(table.version()))

    accepted = shop.command(*words, spark=rivermouth_spark)

    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    proven = shop.command("verify", "--select", "bids")
    assert proven.returncode == 0, proven.stdout
    assert "bids: 1 deleted on purpose, as its ledger says" in proven.stdout


def test_maintain_leaves_what_was_proven(shop: Lake, rivermouth_spark: SparkSession) -> None:
    words = ("maintain", "--select", "orders", "--json")
    done = shop.command(*words, spark=rivermouth_spark)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["name"] for each in json.loads(done.stdout)["pipelines"]] == ["orders"]
    assert shop.command("verify", "--select", "orders").returncode == 0


def test_what_spark_refuses_of_a_select_is_told_without_a_stack(
    shop: Lake, rivermouth_spark: SparkSession
) -> None:
    selecting = {**append_pipeline("cli-bids"), "select": "nope AS id"}
    selecting["target"] = {"table": "bronze.selected", "schema": "id BIGINT"}
    file = rewritten(shop, lambda it: it.update(pipelines={"selected": selecting}))
    done = shop.command("run", file=file, spark=rivermouth_spark)
    assert done.returncode == 1
    said = " ".join((done.stdout + done.stderr).split())
    assert "RM506" in said
    assert "correct select and run again" in said
    assert "stacktrace" not in said


def test_one_broken_pipeline_of_three_is_exit_code_5_and_json_stays_alone_on_stdout(
    shop: Lake, rivermouth_spark: SparkSession
) -> None:
    lost = append_pipeline("cli-no-such-topic")
    moved = {**append_pipeline("cli-bids"), "target": {"table": "bronze.elsewhere"}}
    file = rewritten(shop, lambda it: it["pipelines"].update(bids=moved, lost=lost))
    shop.produce("cli-orders", [(b"9", order(9, "open", 9), 0)])

    words = ("run", "--json", "--select", "lost,bids,orders")
    done = shop.command(*words, file=file, spark=rivermouth_spark)

    assert done.returncode == 5, done.stderr
    reports = {each["name"]: each for each in json.loads(done.stdout)["pipelines"]}
    assert reports["orders"]["ok"] is True
    assert reports["orders"]["applied"] == 1
    assert reports["lost"]["error"]["code"] == "RM302"
    assert reports["bids"]["error"]["code"] == "RM415"
    tail = done.stderr.partition("orders: OK, ")[2]
    assert "lost: FAILED RM302, as told above" in tail, "the failed ones come last"
    assert "bids: FAILED RM415, as told above" in tail
    assert done.stderr.count("FAILED bids") == 1
    assert done.stderr.splitlines()[-1] == "FAILED: 2 of 3 pipelines, exit code 5"


def test_a_guard_that_halts_the_only_pipeline_is_exit_code_3(
    shop: Lake, rivermouth_spark: SparkSession
) -> None:
    other_keys = {"keys": ["order_id", "status"]}
    file = rewritten(
        shop,
        lambda it: (
            it["pipelines"]["orders"]["target"].update(other_keys),
            it["pipelines"]["orders"]["source"].update(key="json"),
        ),
    )
    done = shop.command("run", "--select", "orders", file=file, spark=rivermouth_spark)
    assert done.returncode == 3, done.stdout
    assert "RM408" in done.stdout
    assert done.stdout.splitlines()[-1] == "FAILED: 1 of 1 pipelines, exit code 3"


def test_a_row_that_is_gone_is_exit_code_3_of_verify(shop: Lake) -> None:
    table = DeltaTable(str(shop.path("bronze.cli_bids")))
    before = table.version()
    table.delete("auction = 7")

    done = shop.command("verify", "--select", "bids")

    DeltaTable(str(shop.path("bronze.cli_bids"))).restore(before)
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == "FAILED: bids"


def test_a_configured_topic_that_is_gone_is_exit_code_1(
    shop: Lake, rivermouth_spark: SparkSession
) -> None:
    shop.delete_topic("cli-bids")
    done = shop.command("run", "--select", "bids", spark=rivermouth_spark)
    assert done.returncode == 1, done.stdout
    assert "RM302" in done.stdout
    assert done.stdout.splitlines()[-1] == "FAILED: 1 of 1 pipelines, exit code 1"


def test_the_broker_command_serves_until_sigterm_and_keeps_its_data(tmp_path: Path) -> None:
    for _ in range(2):
        words = [*COMMAND, "broker", "--dir", str(tmp_path / "größe")]
        in_ascii = {**os.environ, "LC_ALL": "C"}
        with started(words, in_ascii, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            name, _, servers = process.stdout.readline().partition(":")
            assert name == "bootstrap.servers"
            client = AdminClient({"bootstrap.servers": servers.strip(), "log_level": 2})
            cluster = client.list_topics(timeout=10).cluster_id
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        assert out.splitlines()[-1] == "stopped"
        assert (tmp_path / "größe" / "data").is_dir()
        known = tmp_path / "cluster"
        assert known.exists() is False or known.read_text(encoding="utf-8") == cluster
        known.write_text(str(cluster), encoding="utf-8")
