"""Kafka client options for the two clients: the Java client and librdkafka.

Spark reads the records with the Java client; librdkafka asks for everything else. If the two
name an option differently, a configuration may use either name. On Databricks the classes of
the Java client have other names, and Spark may authenticate with a credential of Unity Catalog.
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
# An entry of a JAAS line begins with a login module; a quoted text is never a class name.
_JAAS_CLASS = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(^\s*|;\s*)(?=org\.apache\.kafka\.)"""
)
_SHADED = "kafkashaded."
CREDENTIAL = "databricks.serviceCredential"
"""The option that names the credential of Unity Catalog with which Spark authenticates."""

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_options(options: Mapping[str, str], *, databricks: bool = False) -> dict[str, str]:
    """The options of a Java client: user and password as JAAS, a CA as trust store.

    On ``databricks`` the names of Kafka's own classes begin with ``kafkashaded.``.
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
    """The value of an option, with the names of Kafka's classes on Databricks."""
    if name == "sasl.jaas.config":
        return _JAAS_CLASS.sub(lambda it: it[1] or f"{it[2]}{_SHADED}", text)
    if name.endswith(".class") and text.startswith("org.apache.kafka."):
        return _SHADED + text
    return text


def spark_options(options: Mapping[str, str], *, databricks: bool = False) -> dict[str, str]:
    """The options of Spark's Kafka source, under their full names.

    ``databricks.serviceCredential`` replaces every other login of Spark: the options
    ``sasl.*`` and ``security.protocol`` are then for librdkafka only. Raises KafkaRefused for
    an option ``databricks.*`` on another platform.
    """
    own = {name: text for name, text in options.items() if name.startswith("databricks.")}
    if own and not databricks:
        raise KafkaRefused(
            f"only Databricks knows the option {min(own)}",
            where=options["bootstrap.servers"],
            remedy="Run it on Databricks, or remove this option and authenticate with sasl.*",
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
    """The options of librdkafka.

    User and password of a JAAS line become ``sasl.username`` and ``sasl.password``; trust
    stores and key stores of type PEM get librdkafka's names; options that only a Java client
    has are dropped; the others keep their names. Raises KafkaRefused if the options
    authenticate only Spark.
    """
    if CREDENTIAL in options and "security.protocol" not in options:
        raise KafkaRefused(
            f"{CREDENTIAL} authenticates only Spark; the broker checks need sasl.*",
            where=options["bootstrap.servers"],
            remedy="Add security.protocol and sasl.* for the checks; Spark does not use them",
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
    """A librdkafka client with the options of a configuration.

    Options that librdkafka does not know are dropped. Raises KafkaRefused for an option that
    it knows and refuses.
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
                    remedy="Correct it in the section 'kafka' of the configuration",
                ) from fault
