"""Options of the Kafka client and settings of the Spark session, as the file gives them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from rivermouth.config.logins import BELONGS_TO_LOGIN, login_faults
from rivermouth.config.names import Catalog
from rivermouth.config.problems import Fault, Kind, Refused, checked
from rivermouth.config.secret import Secret, sensitive
from rivermouth.config.values import KAFKA_NOT_YOURS, check_servers, not_yours


def read_kafka_options(value: object) -> Mapping[str, str | Secret]:
    """The section ``kafka``; values under sensitive names are ``Secret``. Raises ``Refused``."""
    if not isinstance(value, Mapping):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be a mapping, not {value}"))
    faults = [*not_yours(value, KAFKA_NOT_YOURS)]
    options: dict[str, str | Secret] = {}
    for name, text in value.items():
        if not isinstance(text, (str, Secret)):
            faults.append(Fault(Kind.WRONG_TYPE, "{path} must be text, not {value}", path=(name,)))
        elif name.startswith("kafka."):
            message, fix = "{path} has the prefix kafka. twice", "remove it from the option"
            faults.append(Fault(Kind.UNKNOWN_KEY, message, path=(name,), fix=fix, at_key=True))
        hide = isinstance(text, str) and sensitive(name)
        options[name] = Secret(str(text)) if hide else text
    servers = value.get("bootstrap.servers")
    if isinstance(servers, str):
        faults += check_servers(servers)
    elif isinstance(servers, Secret):
        message = "{path} cannot be a secret: messages name the servers"
        faults.append(Fault(Kind.BAD_VALUE, message, path=("bootstrap.servers",)))
    elif "bootstrap.servers" not in value:
        fix = "add bootstrap.servers: host:port"
        message = "{path} lacks bootstrap.servers"
        faults.append(Fault(Kind.MISSING_KEY, message, fix=fix, at_key=True))
    sound = [name for name, text in value.items() if isinstance(text, (str, Secret))]
    faults += login_faults({name: options[name] for name in sound})
    return checked(options, faults)


NUMBERS = (
    *("timeout", "cache.capacity", "cache.latest.ttl.sec"),
    *("max.retries", "retries.wait.ms", "retries.max.wait.ms"),
)
"""The options of the client of schema registries that are numbers."""


def read_registry_options(value: object) -> Mapping[str, str | Secret]:
    """The section ``schema_registry``, as that of ``kafka``. Raises ``Refused``."""
    if not isinstance(value, Mapping):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be a mapping, not {value}"))
    faults: list[Fault] = []
    options: dict[str, str | Secret] = {}
    for name, text in value.items():
        if not isinstance(text, (str, Secret)):
            faults.append(Fault(Kind.WRONG_TYPE, "{path} must be text, not {value}", path=(name,)))
            continue
        number = isinstance(text, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text)
        if name in NUMBERS and not number:
            fault = Fault(Kind.WRONG_TYPE, "{path} must be a number, not {value}", path=(name,))
            faults.append(fault)
        hide = isinstance(text, str) and sensitive(name)
        options[name] = Secret(str(text)) if hide else text
    if "url" not in value:
        fix = "add url: http://host:8081"
        faults.append(Fault(Kind.MISSING_KEY, "{path} lacks url", fix=fix, at_key=True))
    elif not isinstance(value["url"], str):
        message = "{path} cannot be a secret: messages name the address"
        faults.append(Fault(Kind.BAD_VALUE, message, path=("url",)))
    else:
        faults += _url_faults(value["url"])
    return checked(options, faults)


def _url_faults(urls: str) -> Iterator[Fault]:
    for each in urls.split(","):
        if not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", each.strip()):
            message = "{path} must be http://host:port, or several with commas, not {value}"
            fix = "write a login as basic.auth.user.info" if "@" in each else ""
            yield Fault(Kind.BAD_VALUE, message, path=("url",), fix=fix)
            return


def check_source_options(value: Mapping[str, str]) -> Mapping[str, str]:
    """Options of one source: ``kafka.…``, but no server, login or secret. Raises ``Refused``."""
    faults = [*not_yours(value, KAFKA_NOT_YOURS, "kafka.")]
    for name in value:
        if name == "kafka.bootstrap.servers" or sensitive(name):
            message = "{path} belongs in the section kafka: at the top of the file"
            fix = "one file reads one cluster, and its secrets belong there"
            faults.append(Fault(Kind.NOT_YOURS, message, path=(name,), fix=fix, at_key=True))
        elif BELONGS_TO_LOGIN.fullmatch(name.removeprefix("kafka.")):
            message = "{path} belongs in the section kafka: at the top of the file"
            fix = "both Kafka clients log in with it, and here only Spark would get it"
            faults.append(Fault(Kind.LOGIN, message, path=(name,), fix=fix, at_key=True))
        elif not name.startswith("kafka."):
            message = "{path} does not start with kafka."
            faults.append(Fault(Kind.UNKNOWN_KEY, message, path=(name,), at_key=True))
    return checked(value, faults)


_DECODING = "it changes what records are decoded to, and verify would decode them otherwise"
_DELTA = "without Delta's own there is no commit to carry the offsets"
_LEDGER = "every commit of the session would carry it, and ours carry the ledger"
_TABLES = "every reader of the tables relies on it"
NOT_YOURS: Mapping[str, str] = {
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


MASTER = "spark.master"
"""The setting that says where tasks run: on a cluster, or in this process if it is not set."""
PYTHON = "spark.pyspark.python"
"""The setting that names the Python of the executors, which then has all packages."""
_CLUSTER = re.compile(r"spark://[^\s/]+:\d+|yarn|k8s://\S+")


def check_spark_names(conf: Mapping[str, str]) -> Mapping[str, str]:
    """The settings, without any on which the guarantee hangs. Raises ``Refused``."""
    faults = [*not_yours(conf, NOT_YOURS), *_without_prefix(conf), *_master(conf)]
    return checked(conf, faults)


def _master(conf: Mapping[str, str]) -> Iterator[Fault]:
    if MASTER in conf and not _CLUSTER.fullmatch(conf[MASTER]):
        message = "{path} must be spark://host:port, yarn or k8s://address, not {value}"
        fix = "leave it out to run on the cores of this machine"
        yield Fault(Kind.BAD_VALUE, message, path=(MASTER,), fix=fix)


def catalog_faults(warehouse: object, conf: Mapping[str, str]) -> Iterator[Fault]:
    """A fault where there are settings and the tables are in a catalog, not in a folder."""
    if conf and isinstance(warehouse, Catalog):
        message = "{path} has no meaning where the tables are in a catalog"
        fix = "set it for the cluster of the job: spark_conf"
        yield Fault(Kind.NOT_YOURS, message, path=("spark",), fix=fix, at_key=True)


def _without_prefix(names: Iterable[str]) -> Iterator[Fault]:
    for name in names:
        if not name.startswith("spark."):
            message, fix = "{path} does not start with spark.", f"write spark.{name}, or remove it"
            yield Fault(Kind.UNKNOWN_KEY, message, path=(name,), fix=fix, at_key=True)
