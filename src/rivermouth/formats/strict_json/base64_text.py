"""Base64 of a whole array at once."""

from __future__ import annotations

import base64
import binascii

import numpy as np
import pyarrow as pa


def decoded(array: pa.StringArray) -> tuple[pa.BinaryArray, np.ndarray]:
    """The bytes, null where the text is not base64 by the letter, and where that is."""
    found = [None if each is None else from_text(each) for each in array.to_pylist()]
    result = pa.array(found, pa.binary())
    doubtful = result.is_null().to_numpy(zero_copy_only=False)
    return result, doubtful & array.is_valid().to_numpy(zero_copy_only=False)


def from_text(text: str) -> bytes | None:
    """The bytes; None for text that an encoder of base64 does not write."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if base64.b64encode(found).decode("ascii") == text else None
