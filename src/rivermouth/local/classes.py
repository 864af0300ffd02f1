"""Where the archives of the classes of our JVMs are, and the options that use one.

``local.archive`` records them, one for each Java and set of jars.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

from rivermouth.local.java import Java


def archive_file(java: Java, classpath: Sequence[Path]) -> Path:
    """The file of the class archive for this Java and these jars."""
    facts = "\n".join([str(java.home), *map(str, classpath)])
    key = hashlib.sha256(facts.encode()).hexdigest()[:16]
    return Path(sys.prefix) / "share" / "rivermouth" / f"classes-{key}.jsa"


def archive_options(java: Java, classpath: Sequence[Path]) -> tuple[str, ...]:
    """The options of a JVM that uses the archive; none where there is no archive."""
    file = archive_file(java, classpath)
    # Without a log: the JVM ignores an archive that does not fit, and would print that.
    return (f"-XX:SharedArchiveFile={file}", "-Xlog:disable") if file.exists() else ()
