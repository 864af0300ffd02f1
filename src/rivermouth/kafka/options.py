"""Kafka client options for the two clients: the Java client and librdkafka.

Spark reads the records with the Java client; librdkafka asks for everything else. If the two
name an option differently, a configuration may use either name. ``config.logins`` is the table
of logins. On Databricks the classes of the Java client have other names, and Spark may
authenticate with a credential of Unity Catalog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from rivermouth.config.logins import (
    CLIENT_ID,
    CREDENTIAL,
    LOGINS,
    PROVIDER,
    SHADED,
    SYSTEM,
    TOKEN_ENDPOINT,
    named_once,
    write_jaas,
)
from rivermouth.errors import KafkaRefused
from rivermouth.kafka.login import read_certificates, read_key, token_callback

Client = TypeVar("Client")

_JAVA_ONLY = re.compile(
    r"sasl\.(jaas\.config|login\..*|client\.callback\.handler\.class)|.*serializer"
    r"|max\.poll\.records|ssl\.(truststore\..*|keystore\.type|engine\.factory\.class)"
    r"|(databricks|rivermouth)\..*"
)
_NATIVE_ONLY = re.compile(
    r"sasl\.(username|password|mechanisms)|ssl\.(ca|certificate|key)\.(location|pem)|https\..*"
    r"|sasl\.oauthbearer\.(client\..*|scope|method|extensions)|rivermouth\..*"
    r"|enable\.ssl\.certificate\.verification"
)
_LOGIN_OF_SPARK = re.compile(r"sasl\..*|security\.protocol")
_UNKNOWN = re.compile(r'No such configuration property: "(.+)"')
# An entry of a JAAS line begins with a login module; a quoted text is never a class name.
_JAAS_CLASS = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(^\s*|;\s*)"""
    rf"(?=({'|'.join(map(re.escape, SHADED))}))"
)
_CHECKED = "ssl.endpoint.identification.algorithm"


def java_options(options: Mapping[str, str], *, databricks: bool = False) -> dict[str, str]:
    """The options of a Java client: user and password as JAAS, PEM files as its stores.

    Where key and certificate are in two files, it holds their text: Java reads only one file.
    On ``databricks`` the names of Kafka's own classes begin with ``kafkashaded.``. Raises
    KafkaRefused for a file that cannot be used.
    """
    named = named_once(options)
    java = {name: text for name, text in options.items() if not _NATIVE_ONLY.fullmatch(name)}
    if "sasl.mechanism" in named:
        java["sasl.mechanism"] = named["sasl.mechanism"]
    java |= {**_java_login(named), **_java_stores(named), **java}
    if java.get(_CHECKED) == "none":
        java[_CHECKED] = ""
    return {name: _shaded(name, text) for name, text in java.items()} if databricks else java


def _java_login(named: Mapping[str, str]) -> dict[str, str]:
    """The JAAS line of the mechanism, and the classes that go with it."""
    login = LOGINS.get(named.get("sasl.mechanism", ""))
    if login is None:
        return {}
    fields = {field: named[name] for field, name in login.fields.items() if name in named}
    if login.required and not fields and PROVIDER not in named:
        return {}
    if CLIENT_ID in login.fields.values():
        fields |= _java_oauth(named)
    needs_endpoint = TOKEN_ENDPOINT in login.required and TOKEN_ENDPOINT not in named
    return {
        "sasl.jaas.config": write_jaas(login.module, fields),
        **({} if needs_endpoint else login.java),
    }


def _java_oauth(named: Mapping[str, str]) -> dict[str, str]:
    """Fields of the JAAS line for OAuth: extensions, and whom to trust at the token endpoint."""
    pairs = (
        each.partition("=") for each in named.get("sasl.oauthbearer.extensions", "").split(",")
    )
    fields = {f"extension_{key.strip()}": text.strip() for key, sign, text in pairs if sign}
    for name, store in (("location", "location"), ("pem", "certificates")):
        text = named.get(f"https.ca.{name}", SYSTEM)
        if text != SYSTEM:
            fields |= {"ssl.truststore.type": "PEM", f"ssl.truststore.{store}": text}
    return fields


def _java_stores(named: Mapping[str, str]) -> dict[str, str]:
    """Authorities, certificate and key as stores of type PEM."""
    stores: dict[str, str] = {}
    if "ssl.truststore.location" not in named:
        for name, store in (("pem", "certificates"), ("location", "location")):
            text = named.get(f"ssl.ca.{name}", SYSTEM)
            if text != SYSTEM:
                stores = {"ssl.truststore.type": "PEM", f"ssl.truststore.{store}": text}
    if "ssl.keystore.location" in named:
        return stores
    certificate, key = (named.get(f"ssl.{each}.location") for each in ("certificate", "key"))
    if certificate is not None and certificate == key:
        return {**stores, "ssl.keystore.type": "PEM", "ssl.keystore.location": certificate}
    chain = named.get("ssl.certificate.pem") or read_certificates(certificate)
    secret = named.get("ssl.key.pem") or read_key(key)
    if chain and secret:
        stores |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": chain,
            "ssl.keystore.key": secret,
        }
    return stores


def _shaded(name: str, text: str) -> str:
    """The value of an option, with the names of Java classes on Databricks."""
    if name == "sasl.jaas.config":
        return _JAAS_CLASS.sub(lambda it: it[1] or f"{it[2]}{SHADED[it[3]]}", text)
    if name.endswith(".class"):
        for start, prefix in SHADED.items():
            if text.startswith(start):
                return prefix + text
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
        kafka = {name: text for name, text in kafka.items() if not _LOGIN_OF_SPARK.fullmatch(name)}
    return {**{f"kafka.{name}": text for name, text in kafka.items()}, **own}


def native_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of librdkafka.

    Fields of a JAAS line become options; trust stores and key stores of type PEM get
    librdkafka's names; options that only a Java client has are dropped; the others keep their
    names. Raises KafkaRefused if the options authenticate only Spark.
    """
    if CREDENTIAL in options and "security.protocol" not in options:
        raise KafkaRefused(
            f"{CREDENTIAL} authenticates only Spark; the broker checks need sasl.*",
            where=options["bootstrap.servers"],
            remedy="Add security.protocol and sasl.* for the checks; Spark does not use them",
        )
    named = named_once(options)
    if options.get("ssl.keystore.type") != "PKCS12" and "ssl.certificate.location" in named:
        named = {name: text for name, text in named.items() if not name.startswith("ssl.keystore.")}
    native = {name: text for name, text in named.items() if not _JAVA_ONLY.fullmatch(name)}
    login = LOGINS.get(named.get("sasl.mechanism", ""))
    if login is not None:
        if PROVIDER in named or login.provider:
            native = {k: v for k, v in native.items() if not k.startswith("sasl.oauthbearer.")}
        if login.provider or (TOKEN_ENDPOINT in login.required and TOKEN_ENDPOINT in native):
            native |= login.native
    for long in [name for name in native if ".client.credentials." in name]:
        native[long.replace(".client.credentials.", ".")] = native.pop(long)
    if native.get(_CHECKED) == "":
        native[_CHECKED] = "none"
    return native


def client_of(make: Callable[[dict[str, Any]], Client], options: Mapping[str, str]) -> Client:
    """A librdkafka client with the options of a configuration.

    Options that librdkafka does not know are dropped. Raises KafkaRefused for an option that it
    knows and refuses, and for a login without a token; MissingPackage for one without its code.
    """
    native: dict[str, Any] = {**native_options(options)}
    callback = token_callback(options)
    if callback is not None:
        native["oauth_cb"] = callback
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
