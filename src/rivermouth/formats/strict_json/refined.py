"""A column, and which of its values are doubtful: their records must be read again, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.strict_json.marks import mask_of


@dataclass(frozen=True)
class Refined:
    """``doubtful``: None if no value is. A doubtful value is null, or is not to be used."""

    array: pa.Array
    doubtful: np.ndarray | None = None


def either(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """What is doubtful by one or the other."""
    if one is None or other is None:
        return other if one is None else one
    both: np.ndarray = one | other
    return both


def kept(array: pa.Array, fits: pa.BooleanArray) -> tuple[pa.Array, np.ndarray | None]:
    """The array with null where a value does not fit, and where that is."""
    misfits = pc.invert(fits.fill_null(True))
    if misfits.true_count == 0:
        return array, None
    nothing = pa.scalar(None, array.type)
    return pc.if_else(misfits, nothing, array), mask_of(misfits)
