"""Damaged records of every format: writer and checker judge them alike; see ``fuzz``."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from tests.unit.formats.fuzz import TOPICS, campaign

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("kind", TOPICS)
def test_each_record_makes_a_row_or_has_a_code(kind: str) -> None:
    counts = sum(islice(campaign(kind, seed=1), 4), Counter[str]())
    assert counts["good"] + counts["bad"] + counts["skipped"] == counts["records"]
    # Otherwise the records would not be of both kinds.
    assert counts["good"] > 0
    assert counts["bad"] > 0
