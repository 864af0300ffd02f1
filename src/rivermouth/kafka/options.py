"""Kafka client options for the two clients that read: Java's and librdkafka.

Spark reads the records with the Java client; everything else is asked through librdkafka.
Where the two differ in how one says it, either way will do in the configuration. On
Databricks the Java client's classes have other names, and it may be given a credential of
Unity Catalog in place of a login.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from confluent_kafka import KafkaException

from rivermouth.errors import KafkaRefused

Client = TypeVar("Client")

_JAAS_FIELD = re.compile(r'(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^"\s;]+))')
_JAVA_ONLY = re.compile(
    r"sasl\.jaas\.config|.*serializer|max\.poll\.records|ssl\.truststore\..*|databricks\..*"
)
_LOGIN = re.compile(r"sasl\..*|security\.protocol")
_UNKNOWN = re.compile(r'No such configuration property: "(.+)"')
# A login module opens an entry of a JAAS line; what is quoted is no name of a class.
_JAAS_CLASS = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(^\s*|;\s*)(?=org\.apache\.kafka\.)"""
)
_SHADED = "kafkashaded."
CREDENTIAL = "databricks.serviceCredential"
"""Names the credential of Unity Catalog that Spark logs in with."""

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_options(options: Mapping[str, str], *, databricks: bool = False) -> dict[str, str]:
    """The options as a Java client knows them: user and password as JAAS, a CA as trust store.

    On ``databricks`` Kafka's own classes carry the prefix ``kafkashaded.``, once.
    """
    java = dict(options)
    user, password = (java.pop(f"sasl.{name}", None) for name in ("username", "password"))
    module = _LOGIN_MODULES.get(options.get("sasl.mechanism", ""))
    if user is not None and password is not None and module is not None:
        login = f"{module} required username={_quoted(user)} password={_quoted(password)};"
        java.setdefault("sasl.jaas.config", login)
    authority = java.pop("ssl.ca.location", None)
    if authority is not None and "ssl.truststore.location" not in java:
        java.update({"ssl.truststore.type": "PEM", "ssl.truststore.location": authority})
    return {name: _shaded(name, text) for name, text in java.items()} if databricks else java


def _shaded(name: str, text: str) -> str:
    """The value of an option with the names that Kafka's classes have on Databricks."""
    if name == "sasl.jaas.config":
        return _JAAS_CLASS.sub(lambda it: it[1] or f"{it[2]}{_SHADED}", text)
    if name.endswith(".class") and text.startswith("org.apache.kafka."):
        return _SHADED + text
    return text


def spark_options(options: Mapping[str, str], *, databricks: bool = False) -> dict[str, str]:
    """The options of Spark's Kafka source for these of the client, under their whole names.

    With ``databricks.serviceCredential`` Spark logs in by that alone: it is not told what is
    there for librdkafka. Raises KafkaRefused for such an option elsewhere than on Databricks.
    """
    own = {name: text for name, text in options.items() if name.startswith("databricks.")}
    if own and not databricks:
        raise KafkaRefused(
            f"the option {min(own)} is known on Databricks only",
            where=options["bootstrap.servers"],
            remedy="Run it there, or log in with sasl.* and without this option",
        )
    java = java_options(options, databricks=databricks)
    kafka = {name: text for name, text in java.items() if name not in own}
    if CREDENTIAL in own:
        kafka = {name: text for name, text in kafka.items() if not _LOGIN.fullmatch(name)}
    return {**{f"kafka.{name}": text for name, text in kafka.items()}, **own}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def native_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options as librdkafka knows them.

    Same names but for JAAS, whose user and password become ``sasl.username`` and
    ``sasl.password``, for trust stores and key stores of type PEM, and for options that
    only a Java client has, which are dropped. Raises KafkaRefused where it would be left
    without a login, because there is one for Spark alone.
    """
    if CREDENTIAL in options and "security.protocol" not in options:
        raise KafkaRefused(
            f"{CREDENTIAL} logs in Spark alone, and the guards have no login",
            where=options["bootstrap.servers"],
            remedy="Add security.protocol and sasl.* for them; Spark is not told these",
        )
    native = {name: text for name, text in options.items() if not _JAVA_ONLY.fullmatch(name)}
    for field, quoted, bare in _JAAS_FIELD.findall(options.get("sasl.jaas.config", "")):
        native.setdefault(f"sasl.{field}", bare or re.sub(r"\\(.)", r"\1", quoted))
    if options.get("ssl.truststore.type") == "PEM" and "ssl.truststore.location" in options:
        native.setdefault("ssl.ca.location", options["ssl.truststore.location"])
    if native.pop("ssl.keystore.type", "") == "PEM" and "ssl.keystore.location" in native:
        file = native.pop("ssl.keystore.location")
        native.setdefault("ssl.certificate.location", file)
        native.setdefault("ssl.key.location", file)
    return native


def client_of(make: Callable[[dict[str, str]], Client], options: Mapping[str, str]) -> Client:
    """A client of librdkafka made with the options of a configuration.

    What only a Java client knows is left out. Raises KafkaRefused for an option it refuses.
    """
    native = native_options(options)
    while True:
        try:
            return make(native)
        except KafkaException as fault:
            complaint = str(fault.args[0].str())
            unknown = _UNKNOWN.search(complaint)
            if unknown is None or native.pop(unknown[1], None) is None:
                raise KafkaRefused(
                    "the Kafka client refuses an option",
                    where=options["bootstrap.servers"],
                    found=complaint,
                    remedy="Correct it in the section kafka: of the configuration",
                ) from fault
