"""What ``make test`` runs is in short the whole product, and what it leaves out has a name here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rivermouth.debug import failpoints

pytestmark = [pytest.mark.unit, pytest.mark.slow, pytest.mark.thorough]

ROOT = Path(__file__).parents[2]
POINTS = re.findall(r"^P\d+|(?<=· )P\d+", failpoints.__doc__ or "", re.MULTILINE)
COLLECTED = """
import json
import pytest

class Collector:
    def pytest_collection_finish(self, session):
        found = [(each.nodeid, any(each.iter_markers("thorough"))) for each in session.items]
        print("collected", json.dumps(found))

pytest.main(["--collect-only", "--quiet", "-p", "no:cacheprovider"], [Collector()])
"""
MODULES_ONLY_IN_TEST_ALL = {
    "tests/bundle/test_dashboard.py",
    "tests/bundle/test_injected.py",
    "tests/bundle/test_laptop.py",
    "tests/connect/test_idle_session.py",
    "tests/kafka/test_added_column.py",
    "tests/kafka/test_projecting.py",
    "tests/kafka/test_registrations.py",
    "tests/unit/test_developing.py",
    "tests/unit/test_short_run.py",
}
"""Modules that are left out whole."""
ONLY_IN_TEST_ALL = {
    "tests/bundle/test_own_bundle.py": {
        "test_a_table_that_was_wound_back_halts_its_pipeline_until_somebody_accepts_that",
        "test_the_continuous_job_goes_on_until_it_is_restarted_and_then_from_there",
    },
    "tests/bundle/test_runtime.py": {
        "test_a_script_finds_its_wheel_its_files_and_the_tables_of_the_run_before",
        "test_a_script_that_goes_on_is_ended_when_its_run_is_cancelled",
    },
    "tests/bundle/test_scaffold.py": {
        "test_a_new_user_makes_a_project_and_its_own_test_passes",
        "test_so_does_that_of_one_for_a_secured_broker_and_tables_in_several_schemas",
    },
    "tests/connect/test_jobs.py": {
        "test_ingest_verify_and_maintain_do_their_work_in_every_mode",
    },
    "tests/connect/test_sink_order.py": {
        "test_records_of_a_partition_are_sent_in_their_order_from_files_of_many_parts",
    },
    "tests/faults/test_campaign.py": {
        "test_a_short_campaign_of_real_kills_finds_nothing",
    },
    "tests/faults/test_checker.py": {
        "test_a_good_run_has_no_finding_as_a_whole_or_bit_by_bit",
    },
    "tests/faults/test_erasure.py": {
        "test_a_delete_that_a_restore_took_back_is_refused",
        "test_a_kill_in_the_commit_leaves_the_delete_accepted_once_or_not_at_all",
    },
    "tests/faults/test_replay_faults.py": {
        "test_a_killed_replay_into_another_table_adds_each_row_once",
        "test_a_killed_replay_of_keys_into_another_table_writes_each_row_once",
    },
    "tests/kafka/test_accepted_changes.py": {
        "test_a_mirror_with_the_same_offsets_is_proved_from_the_first_record_on",
    },
    "tests/kafka/test_broker.py": {
        "test_stop_and_a_kill_and_another_owner_all_keep_the_data",
    },
    "tests/kafka/test_cli.py": {
        "test_a_configured_topic_that_is_gone_is_exit_code_1",
    },
    "tests/kafka/test_patterns.py": {
        "test_thirty_topics_with_twenty_more_and_five_that_go_through_kills",
    },
    "tests/kafka/test_maintain.py": {
        "test_a_file_goes_only_after_the_hours_to_retain",
        "test_a_run_goes_on_while_its_table_is_maintained",
        "test_a_table_is_left_as_it_is_for_any_pipeline_that_others_undid_there",
        "test_a_table_that_keeps_old_files_for_less_is_refused_and_its_own_setting_holds",
        "test_one_pipeline_that_cannot_be_maintained_does_not_stop_the_other",
        "test_orphans_go_and_every_row_that_counts_or_may_come_to_count_stays",
        "test_rows_of_entries_that_log_cleanup_took_are_found_in_the_offsets_table",
        "test_tables_that_only_a_catalog_knows_are_maintained_by_their_names",
        "test_without_an_offsets_table_a_target_is_left_alone_and_none_is_made",
    },
    "tests/kafka/test_replay.py": {
        "test_keys_go_into_another_table_as_one_batch",
    },
    "tests/kafka/test_run.py": {
        "test_a_merge_that_changes_no_row_advances_the_ledger",
        "test_a_restored_table_halts_until_the_restore_is_undone",
        "test_each_pipeline_of_a_run_has_a_scheduling_pool_of_its_own",
    },
    "tests/spark/test_broadcast_limit.py": {
        "test_keys_too_large_for_a_broadcast_without_deletion_vectors_say_what_to_do",
    },
    "tests/spark/test_upsert.py": {
        "test_a_key_that_moves_to_another_partition_keeps_its_newest_row",
        "test_a_row_of_another_partition_is_deleted_by_a_later_tombstone",
        "test_a_row_that_a_dead_driver_left_marked_counts_as_absent_for_the_next_batch",
        "test_what_others_keep_in_columns_of_their_own_outlives_a_replacement",
    },
}
"""Tests that are left out whole, by their modules."""


@dataclass(frozen=True)
class Runs:
    """The ids of the tests that each of the two commands runs."""

    test: frozenset[str]
    test_all: frozenset[str]

    def cases(self, name: str) -> set[str]:
        """What stands in brackets behind a test, of those that ``make test`` runs."""
        ids = (each.partition("[") for each in self.test)
        return {case.rstrip("]") for function, _, case in ids if function == name}


@pytest.fixture(scope="module")
def runs() -> Runs:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    [line] = (each for each in done.stdout.splitlines() if each.startswith("collected "))
    found = json.loads(line.removeprefix("collected "))
    short = frozenset(name for name, thorough in found if not thorough)
    return Runs(short, frozenset(name for name, _ in found))


def functions(ids: frozenset[str]) -> set[str]:
    return {each.partition("[")[0] for each in ids}


def test_only_these_tests_are_left_out_whole(runs: Runs) -> None:
    left_out = functions(runs.test_all) - functions(runs.test)
    modules = {each for each in left_out if each.partition("::")[0] in MODULES_ONLY_IN_TEST_ALL}
    assert {each.partition("::")[0] for each in modules} == MODULES_ONLY_IN_TEST_ALL
    named = {f"{module}::{name}" for module, names in ONLY_IN_TEST_ALL.items() for name in names}
    assert left_out - modules == named
    assert len(runs.test_all) > len(runs.test)


def test_every_fault_of_the_page_happens_in_short(runs: Runs) -> None:
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/]+\.py::test_\w+)`", page))
    assert len(named) > 30
    assert named - functions(runs.test) == set()


SENT = {"P14", "P15"}
"""The points that only a pipeline passes that sends."""
SINK_KILL = "test_sink_kills.py::test_a_driver_killed_at_the_point_leaves_what_is_promised"
KILL = "test_kills.py::test_a_driver_killed_at_the_point_leaves_every_record_once"


def test_a_driver_is_killed_at_every_point_in_one_of_the_modes(runs: Runs) -> None:
    cases = {each.partition("-")[::2] for each in runs.cases(f"tests/kafka/{KILL}")}
    assert {mode for mode, _ in cases} == {"append", "spark", "upsert", "aggregate", "sums"}
    watched = {"data files written", "commit visible"}
    of_rows = sorted(point for mode, point in cases if mode in ("append", "upsert"))
    assert of_rows == sorted({*POINTS, *watched} - {"P13", *SENT})


def test_a_driver_that_sends_is_killed_before_and_after_it_sends(runs: Runs) -> None:
    cases = {each.partition("]")[0] for each in runs.cases(f"tests/kafka/{SINK_KILL}")}
    assert len(cases) == 5
    assert {point for point in SENT if any(each.endswith(point) for each in cases)} == SENT


def test_a_driver_over_connect_is_killed_where_no_local_one_comes(runs: Runs) -> None:
    cases = {tuple(each.rsplit("-", 1)) for each in runs.cases(f"tests/connect/{KILL}")}
    assert {shape for shape, _ in cases} == {"serverless-upsert"}
    assert sorted(point for _, point in cases) == ["P13"]


def test_one_target_of_the_bundle_lives_from_validate_to_destroy(runs: Runs) -> None:
    name = "test_a_target_lives_from_validate_to_destroy_and_its_jobs_do_their_work"
    assert runs.cases(f"tests/bundle/test_own_bundle.py::{name}") == {"prod"}
