"""``--since`` as it is written, and the words in which proofs are told."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from rivermouth.errors import ConfigError
from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.run.outcome import Shares, ago, proof_note, proved, read_since, verified
from rivermouth.run.tables import status_table as render
from rivermouth.verification import Since, Verification
from rivermouth.verification.proved import Before, Place, Proved, Reach, Recording, RecordState
from rivermouth.verification.result import PipelineProof

pytestmark = pytest.mark.unit

NOW_S = 1_795_400_000.0
DAY_MS = 86_400_000
NOW_MS = int(NOW_S * 1000)
PROVED = Proved("p", "t.p", 1, Place(1200, "c", 9), {}, NOW_MS - DAY_MS, 1200, NOW_MS - DAY_MS)


def test_one_line_shows_every_pipeline_that_is_being_verified_and_goes_away() -> None:
    terminal = io.StringIO()
    shares = Shares(terminal)
    shares("orders", 10, 40)
    shares("bids", 3, 4)
    shares("x" * 80, 0, 7)
    shares("orders", 40, 40)
    shares("x" * 80, 7, 7)
    shares("bids", 4, 4)
    shares("empty", 0, 0)
    long = f"verifying orders 25 %, bids 75 %, {'x' * 80}"[:79]
    shown = ["verifying orders 25 %", "verifying orders 25 %, bids 75 %", long]
    left = [f"verifying bids 75 %, {'x' * 80}"[:79], "verifying bids 75 %", "", ""]
    assert terminal.getvalue().split("\r\x1b[K") == ["", *shown, *left]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("last", Since()),
        ("1d", Since(NOW_MS - DAY_MS)),
        ("90m", Since(NOW_MS - 5_400_000)),
        ("2026-11-21T06:00:00Z", Since(1_795_240_800_000)),
        ("2026-11-21T07:00:00+01:00", Since(1_795_240_800_000)),
    ],
)
def test_since_when(text: str, expected: Since | None) -> None:
    assert read_since(text, NOW_S) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yesterday", "write last, a time with its zone"),
        ("1w", "write last"),
        ("2026-11-21T06:00:00", "the zone is missing"),
        ("2027-11-21T06:00:00Z", "that time is still to come"),
    ],
)
def test_a_time_that_is_no_time_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_since(text, NOW_S)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (7200, "2 h ago"),
        (86_400, "yesterday"),
        (3 * 86_400, "3 days ago"),
    ],
)
def test_how_long_ago(seconds: float, text: str) -> None:
    assert ago(seconds) == text


@pytest.mark.parametrize(
    ("found", "cell", "note"),
    [
        (None, "never", ""),
        (RecordState(PROVED), "1,200, yesterday", ""),
        (
            RecordState(replace(PROVED, full_entry=7, full_ms=NOW_MS - 6 * DAY_MS)),
            "1,200, yesterday",
            "proof: read as a whole up to entry 7, 6 days ago",
        ),
        (
            RecordState(PROVED, "it was rolled back"),
            "void",
            "the proof up to entry 1,200, of 2026-11-22 02:13 UTC, is void: it was rolled back",
        ),
        (
            RecordState(replace(PROVED, left={"expired_offsets": 1200, "keys": 2}), unread=9000),
            "1,200, yesterday",
            "proof: not checked: expired offsets (1,200), keys (2); 9,000 commits since, too many "
            "to tell here whether it stands",
        ),
    ],
    ids=["never", "proved", "in parts", "void", "with holes"],
)
def test_status_has_the_proof_in_a_cell_and_a_note_only_where_there_is_more(
    found: RecordState | None, cell: str, note: str
) -> None:
    assert proved(found, NOW_S) == cell
    assert (proof_note(found, NOW_S) if found is not None else "") == note
    one = PipelineStatus("p", State.BLOCKED, "silver.orders", sequence=1_234, proof=found)
    text = render(Status([replace(one, lag_messages=123_456, lag_seconds=9e5)]), lambda: NOW_S)
    head, _, row, *notes = text.splitlines()[1:]
    assert row[head.index("proved up to") : head.index("table")].strip() == cell
    assert row.endswith(" silver.orders"), "the row is one line"
    assert " ".join(each.strip() for each in notes) == (f"p: {note}" if note else "")
    assert max(map(len, text.splitlines())) <= 80


def lines(proof: PipelineProof) -> list[str]:
    return [line for line in verified(Verification([proof])).splitlines() if line.startswith("p: ")]


def test_verify_says_what_it_left_out_and_what_it_did_not_record() -> None:
    plain = PipelineProof("p", 2, 4, 0, None)
    reach = Reach(3, Place(4, "c", 4), {}, Before(2, NOW_MS, 3))
    assert lines(plain) == []
    assert lines(replace(plain, read_all="no proof is recorded")) == [
        "p: everything was read: no proof is recorded"
    ]
    assert lines(replace(plain, reach=reach)) == [
        "p: entries up to 2: proved at 2026-11-23 02:13 UTC",
        "p: their rows were not read again: what was deleted or changed there is not seen",
        "p: of the keys that were read, 3 have a row from before",
    ]
    assert lines(replace(plain, reach=replace(reach, before=Before(2))))[0] == (
        "p: entries up to 2: not checked"
    )
    assert lines(replace(plain, recording=Recording(None, "no room"))) == [
        "p: not recorded: no room"
    ]
