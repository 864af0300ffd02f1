"""Settings of the Spark session that a command starts on this machine, as the file gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rivermouth.config.problems import Fault, Kind, checked
from rivermouth.config.values import not_yours

_DECODING = "it changes what records are decoded to, and verify would decode them otherwise"
_DELTA = "without Delta's own there is no commit to carry the offsets"
_LEDGER = "every commit of the session would carry it, and ours carry the ledger"
_TABLES = "every reader of the tables relies on it"
NOT_YOURS: Mapping[str, str] = {
    "spark.master": "a command runs on the cores of this machine",
    "spark.sql.extensions": _DELTA,
    "spark.sql.catalog.spark_catalog": _DELTA,
    "spark.databricks.delta.commitinfo.usermetadata": _LEDGER,
    "spark.databricks.delta.write.": _LEDGER,
    "spark.databricks.delta.merge.materializesource": "a MERGE gets its source materialised once",
    "spark.delta.logstore.": "it decides whether two drivers can write one commit",
    "spark.sql.session.timezone": _DECODING,
    "spark.sql.ansi.": _DECODING,
    "spark.sql.casesensitive": _DECODING,
    "spark.sql.json.": _DECODING,
    "spark.sql.jsongenerator.": _DECODING,
    "spark.sql.legacy.": _DECODING,
    "spark.sql.columnnameofcorruptrecord": _DECODING,
    "spark.sql.storeassignmentpolicy": _DECODING,
    "spark.sql.timestamptype": _DECODING,
    "spark.sql.variable.substitute": "a path or a name may contain ${",
    "spark.sql.parquet.outputtimestamptype": _TABLES,
    "spark.sql.warehouse.dir": "the setting warehouse says where the tables are",
    "spark.driver.extraclasspath": "rivermouth sets it: the locked jars",
    "spark.driver.extrajavaoptions": (
        "rivermouth sets it: the time zone of the JVM; spark.driver.defaultJavaOptions is yours"
    ),
    "spark.jars": "the jars of Spark, Delta and Kafka are locked together",
}
"""What may not be set, and why, see ``not_yours``."""


def check_spark_names(conf: Mapping[str, str]) -> Mapping[str, str]:
    """The settings, without any on which the guarantee hangs. Raises ``Refused``."""
    faults = [*not_yours(conf, NOT_YOURS), *_without_prefix(conf)]
    return checked(conf, faults)


def catalog_faults(warehouse: object, conf: Mapping[str, str]) -> Iterator[Fault]:
    """A fault where there are settings and the tables are in a catalog, not in a folder."""
    if conf and not isinstance(warehouse, Path):
        message = "{path} has no meaning where the tables are in a catalog"
        fix = "set it for the cluster of the job: spark_conf"
        yield Fault(Kind.NOT_YOURS, message, path=("spark",), fix=fix, at_key=True)


def _without_prefix(names: Iterable[str]) -> Iterator[Fault]:
    for name in names:
        if not name.startswith("spark."):
            message, fix = "{path} does not start with spark.", f"write spark.{name}, or remove it"
            yield Fault(Kind.UNKNOWN_KEY, message, path=(name,), fix=fix, at_key=True)
