"""What ``doctor`` says of the newest records of a topic, before a run reads them."""

from __future__ import annotations

import pytest

from tests.lake import Lake, append_pipeline, bid

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

BAD = b'{"another": "thing"}'


@pytest.mark.parametrize(
    ("values", "code", "said"),
    [
        ([], 0, "none is there yet"),
        ([bid(1), bid(2), BAD, None], 0, "of the newest 4 1 are bad: 1 RM610"),
        ([BAD] * 30, 2, "all of the newest records would go to quarantine"),
        ([b"\0\0\0\0\7" + bid(1)], 2, "as framed values do"),
    ],
    ids=["no record", "some bad", "all bad", "framed"],
)
def test_it_says_what_becomes_of_the_newest_records(
    lake: Lake, request: pytest.FixtureRequest, values: list[bytes | None], code: int, said: str
) -> None:
    topic = f"doctor-{len(values)}"
    lake.topic(topic)
    lake.configure(p=append_pipeline(topic))
    lake.produce(topic, [(None, each, 0) for each in values])

    done = lake.command("doctor")

    assert said in " ".join(done.stdout.split()), done.stdout + done.stderr
    assert done.returncode == code
    assert not (lake.folder / "lake").exists(), "it writes nothing"
