"""The code of a value that is not there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rivermouth.formats.arrow import absent

pytestmark = pytest.mark.unit

NOTHING, EMPTY = "RM601", "RM602"


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([], []),
        ([b"x", b"yz"], [None, None]),
        ([None], [NOTHING]),
        ([b""], [EMPTY]),
        ([b"x", None, b"", b"y"], [None, NOTHING, EMPTY, None]),
        ([b"x", b""], [None, EMPTY]),
        ([None, b"x"], [NOTHING, None]),
    ],
    ids=str,
)
def test_null_and_empty_values_have_a_code(
    values: list[bytes | None], codes: list[str | None], kind: pa.DataType
) -> None:
    for given in (pa.array(values, kind), pa.array([None, *values, b""], kind)[1:-1]):
        found = absent(given)
        assert (found.to_pylist(), found.type) == (codes, pa.string())
