"""Archives of our own, unpacked by any Python that is supported."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(file: Path, folder: Path, below: str = "") -> None:
    """Unpack what is below a folder of the archive; by default all of it.

    The argument ``filter`` came with Python 3.10.12 and 3.11.4. A Python that does not know the
    attribute ignores it.
    """
    with tarfile.open(file) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder, [each for each in archive if each.name.startswith(below)])
