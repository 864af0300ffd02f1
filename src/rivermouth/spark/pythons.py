"""The Pythons that a batch needs, the driver's and that of Spark's workers: what they lack."""

from __future__ import annotations

import re
import sys

from rivermouth.errors import MissingPackage, SetupError, WorkersUnfit
from rivermouth.spark.causes import raised_in_worker, said

_NOT_IMPORTED = re.compile(r"(?:[\w.]+\.)?((?:ModuleNotFound|PySparkImport|Import)Error: .+)")
_OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\] (?P<said>[^,\n]+)")
_DOCTOR = "`rivermouth doctor` names each package with its version"


def lacking(fault: Exception, where: str) -> SetupError | None:
    """What one of the Pythons cannot import, or that they differ; None: it is something else."""
    if isinstance(fault, ImportError):
        return MissingPackage(
            "the driver cannot import what a batch needs",
            where=where,
            found=str(fault),
            remedy=f"Run: pip install 'rivermouth[local]'. {_DOCTOR}",
        )
    text = said(fault)
    other = _OTHER_PYTHON.search(text)
    if other is not None:
        return WorkersUnfit(
            "Spark's Python workers have another Python than the driver",
            where=where,
            expected="the same minor version",
            found=other["said"],
            remedy=f"Set PYSPARK_PYTHON to a Python {sys.version_info[0]}.{sys.version_info[1]} of"
            " the workers before the session is made, and run again",
        )
    missing = _NOT_IMPORTED.match(raised_in_worker(text))
    if missing is None:
        return None
    return WorkersUnfit(
        "Spark's Python workers cannot import what a batch needs", where=where, found=missing[1]
    )
