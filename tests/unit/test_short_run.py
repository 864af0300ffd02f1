"""What ``make test`` runs is in short the whole product, and what it leaves out has a name here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rivermouth import debug

pytestmark = [pytest.mark.unit, pytest.mark.slow, pytest.mark.thorough]

ROOT = Path(__file__).parents[2]
POINTS = re.findall(r"^P\d+|(?<=· )P\d+", debug.__doc__ or "", re.MULTILINE)
COLLECTED = """
import json
import pytest

class Collector:
    def pytest_collection_finish(self, session):
        found = [(each.nodeid, any(each.iter_markers("thorough"))) for each in session.items]
        print("collected", json.dumps(found))

pytest.main(["--collect-only", "--quiet", "-p", "no:cacheprovider"], [Collector()])
"""
FAULTS_THAT_TAKE_LONG = """
tests/connect/test_sinks.py::test_what_cannot_be_kept_there_is_refused_before_anything_is_read_or_made
tests/faults/test_altered_tables.py::test_a_table_that_gets_in_mid_run_goes_on
tests/faults/test_altered_tables.py::test_a_table_that_loses_a_column_in_mid_run_halts_until_it_is_back
tests/faults/test_checkpoint_faults.py::test_an_offsets_table_from_a_backup_is_brought_up_to_date_and_one_that_is_ahead_halts
tests/faults/test_checkpoint_faults.py::test_checkpoints_that_are_stale_damaged_or_of_others_have_no_effect
tests/faults/test_environment_faults.py::test_a_disk_that_fills_up_at_any_moment_leaves_no_torn_commit
tests/faults/test_environment_faults.py::test_a_disk_that_fills_up_while_files_are_written_keeps_no_part_of_one
tests/faults/test_environment_faults.py::test_a_driver_that_may_open_no_more_files_fails_and_the_next_run_goes_on
tests/faults/test_environment_faults.py::test_files_that_cannot_grow_leave_no_torn_commit
tests/faults/test_erasure.py::test_a_delete_whose_files_vacuum_has_taken_is_accepted_by_its_number_alone
tests/faults/test_erasure.py::test_rows_deleted_on_purpose_are_no_fault_once_accepted_and_any_other_one_is
tests/faults/test_job_faults.py::test_a_job_ends_as_a_whole_when_one_pipeline_has_given_up
tests/kafka/test_kills.py::test_drivers_killed_while_files_are_joined_leave_every_record_once
tests/faults/test_kafka_faults.py::test_a_broker_started_again_begins_leader_epochs_that_change_nothing
tests/faults/test_kafka_faults.py::test_a_broker_that_freezes_or_starts_again_in_mid_run_is_waited_for
tests/faults/test_kafka_faults.py::test_a_broker_that_is_away_for_long_is_tried_again_by_every_pipeline
tests/faults/test_kafka_faults.py::test_a_broker_that_is_down_at_the_start_is_said_in_seconds
tests/faults/test_kafka_faults.py::test_a_log_that_lost_its_tail_halts_also_after_it_has_grown_again
tests/faults/test_kafka_faults.py::test_a_loss_in_mid_run_is_recorded_without_a_new_run_where_that_is_asked_for
tests/faults/test_kafka_faults.py::test_a_right_that_is_missing_or_taken_away_stops_the_run_and_nothing_is_lost
tests/faults/test_kafka_faults.py::test_a_wrong_password_is_never_an_empty_success
tests/faults/test_log_faults.py::test_a_data_file_that_somebody_removed_is_found_by_verify_and_fails_an_upsert_plainly
tests/faults/test_log_faults.py::test_maintenance_by_others_has_no_effect_not_even_vacuum_at_once
tests/faults/test_process_faults.py::test_a_driver_whose_jvm_dies_fails_and_the_next_run_goes_on
tests/faults/test_process_faults.py::test_a_frozen_driver_keeps_its_successor_out_and_without_its_lock_it_stops_itself
tests/faults/test_process_faults.py::test_the_command_whose_jvm_dies_still_says_how_each_pipeline_ended
tests/faults/test_process_faults.py::test_two_pipelines_of_one_table_each_go_on_by_their_own_ledger
tests/faults/test_process_faults.py::test_two_pipelines_whose_first_records_are_bad_make_their_common_quarantine_once
tests/cluster/test_drivers.py::test_a_folder_that_executors_do_not_share_is_refused
tests/cluster/test_drivers.py::test_a_driver_that_dies_while_its_executors_live_on_leaves_every_record_once
tests/cluster/test_drivers.py::test_tasks_that_spark_runs_twice_for_speed_count_once
tests/stores/test_answers.py::test_an_answer_that_is_lost_loses_and_doubles_nothing
tests/stores/test_late.py::test_a_commit_that_comes_late_is_no_other_drivers
tests/stores/test_rivals.py::test_two_drivers_at_once_lose_and_double_nothing
tests/faults/test_record_faults.py::test_a_record_of_many_megabytes_becomes_its_row
tests/faults/test_record_faults.py::test_times_that_lie_decide_nothing_unless_they_are_configured_to
tests/faults/test_replay_faults.py::test_a_killed_replay_runs_again_and_ends_right
tests/faults/test_secrets.py::test_a_password_is_seen_nowhere_whatever_is_run_and_however_it_ends
tests/faults/test_secrets.py::test_a_secret_that_cannot_be_read_ends_each_command_with_its_scope_and_key
tests/faults/test_sink_faults.py::test_a_broker_that_freezes_while_it_is_sent_to_gets_every_record
tests/faults/test_table_faults.py::test_a_constraint_of_others_fails_the_batch_and_leaves_no_row
tests/faults/test_table_faults.py::test_a_merge_that_others_conflict_with_is_tried_again_with_the_same_range
tests/faults/test_table_faults.py::test_an_emptied_table_starts_over_once_that_is_accepted
tests/faults/test_task_faults.py::test_a_batch_whose_python_worker_is_killed_is_tried_again
tests/faults/test_task_faults.py::test_a_task_of_a_fold_that_is_tried_again_counts_its_records_once
tests/faults/test_task_faults.py::test_a_task_that_is_tried_again_or_runs_twice_writes_its_rows_once
tests/kafka/test_accepted_changes.py::test_a_form_of_message_keys_may_be_added_and_each_record_is_judged_by_its_own_time
tests/kafka/test_accepted_changes.py::test_a_pipeline_moves_to_another_cluster_whose_mirror_has_other_offsets
tests/kafka/test_accepted_changes.py::test_a_truncated_log_is_read_on_from_where_it_was_cut
tests/kafka/test_patterns.py::test_a_topic_that_goes_with_records_that_were_not_read_halts
tests/kafka/test_renamed.py::test_a_renamed_pipeline_goes_on_in_its_ledger_and_is_proved
tests/kafka/test_replay.py::test_rows_that_others_changed_are_put_right_and_all_is_proved
tests/kafka/test_run.py::test_another_cluster_behind_the_address_halts
tests/kafka/test_run.py::test_of_two_drivers_one_progresses_and_the_other_exits_with_3
tests/kafka/test_run.py::test_the_offsets_table_deleted_comes_back_equal
tests/kafka/test_sink_faults.py::test_a_topic_that_is_deleted_in_mid_run_ends_the_batch_and_nothing_is_committed
tests/kafka/test_sink_topics.py::test_a_topic_that_does_not_exist_is_named_before_anything_is_committed
tests/kafka/test_sinks_rivals.py::test_a_ledger_that_is_made_anew_in_mid_run_halts_and_is_not_written
tests/kafka/test_verify_compaction.py::test_append_rows_whose_records_were_compacted_away_are_unchecked
tests/kafka/test_verify_since.py::test_a_place_that_cannot_be_written_changes_no_verdict
tests/kafka/test_verify_since.py::test_a_restore_makes_a_proof_void_and_then_all_is_read
tests/logins/test_renewal.py::test_a_certificate_that_expires_ends_the_run_and_a_new_one_goes_on
tests/logins/test_renewal.py::test_a_run_goes_on_with_new_files_of_a_certificate
tests/logins/test_renewal.py::test_a_run_outlives_its_tokens
tests/logins/test_renewal.py::test_a_run_that_gets_no_new_token_ends_and_the_next_one_goes_on
tests/logins/test_renewal.py::test_a_run_waits_for_a_token_server_that_is_away
tests/spark/test_files.py::test_a_table_that_is_altered_between_batches_lands_through_spark_from_then_on
tests/spark/test_transform.py::test_a_function_that_breaks_a_rule_is_named_and_nothing_is_written
tests/spark/test_upsert.py::test_batches_lead_where_the_records_one_by_one_lead
"""
"""The faults of the page that need more than some seconds: most wait for brokers or clocks."""


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


def test_every_fault_of_the_page_happens_in_short_or_takes_long(runs: Runs) -> None:
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/]+\.py::test_\w+)`", page))
    assert named - functions(runs.test) == set(FAULTS_THAT_TAKE_LONG.split())
    assert named <= functions(runs.test_all)


@pytest.mark.parametrize("name", ["test", "test_all"])
def test_both_begin_with_every_room_of_the_product(runs: Runs, name: str) -> None:
    ids: frozenset[str] = getattr(runs, name)
    rooms = {each.split("/")[1] for each in ids}
    assert rooms == {
        *("bundle", "cdc", "connect", "faults", "kafka", "logins", "records", "spark", "unit"),
        *("cluster", "stores", "warehouse"),
        *(("report",) if name == "test_all" else ()),  # the browser is fetched first
    }


SENT = {"P14", "P15"}
"""The points that only a pipeline passes that sends."""
COMPACTION = {"P20", "P21"}
"""Those that only a run of many batches passes."""
SINK_KILL = "test_sink_kills.py::test_a_driver_killed_at_the_point_leaves_what_is_promised"
KILL = "test_kills.py::test_a_driver_killed_at_the_point_leaves_every_record_once"


def test_a_driver_is_killed_at_every_point_in_one_of_the_modes(runs: Runs) -> None:
    cases = {each.partition("-")[::2] for each in runs.cases(f"tests/kafka/{KILL}")}
    modes = {"append", "spark", "upsert", "merge", "aggregate", "sums"}
    assert {mode for mode, _ in cases} == modes
    elsewhere = {"P13", *SENT, *COMPACTION}
    assert sorted(point for _, point in cases) == sorted({*POINTS} - elsewhere)


def test_a_driver_that_sends_is_killed_before_and_after_it_sends(runs: Runs) -> None:
    cases = runs.cases(f"tests/kafka/{SINK_KILL}")
    assert cases == {"at-most-once-P14", "at-least-once-P15"}


def test_a_driver_over_connect_is_killed_where_no_local_one_comes(runs: Runs) -> None:
    cases = {tuple(each.rsplit("-", 1)) for each in runs.cases(f"tests/connect/{KILL}")}
    assert {shape for shape, _ in cases} == {"serverless-upsert"}
    assert sorted(point for _, point in cases) == ["P13"]
