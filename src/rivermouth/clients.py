"""Kafka options for librdkafka, with which everything but the records themselves is asked.

The configuration speaks the Java client's names, since Spark reads with that one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from confluent_kafka import KafkaException

from rivermouth.errors import KafkaRefused

Client = TypeVar("Client")

_JAAS_FIELD = re.compile(r"(username|password)\s*=\s*[\"']?([^\"';\s]+)")
_JAVA_ONLY = re.compile(r"sasl\.jaas\.config|.*serializer|max\.poll\.records|ssl\.truststore\..*")
_UNKNOWN = re.compile(r'No such configuration property: "(.+)"')


def native_options(options: Mapping[str, str]) -> dict[str, str]:
    """Java client options as librdkafka knows them.

    Same names but for JAAS, whose user and password become ``sasl.username`` and
    ``sasl.password``, for trust stores and key stores of type PEM, and for options that
    only a Java client has, which are dropped.
    """
    native = {name: text for name, text in options.items() if not _JAVA_ONLY.fullmatch(name)}
    for field, value in _JAAS_FIELD.findall(options.get("sasl.jaas.config", "")):
        native.setdefault(f"sasl.{field}", value)
    if options.get("ssl.truststore.type") == "PEM" and "ssl.truststore.location" in options:
        native.setdefault("ssl.ca.location", options["ssl.truststore.location"])
    if native.pop("ssl.keystore.type", "") == "PEM" and "ssl.keystore.location" in native:
        file = native.pop("ssl.keystore.location")
        native.setdefault("ssl.certificate.location", file)
        native.setdefault("ssl.key.location", file)
    return native


def client_of(make: Callable[[dict[str, str]], Client], options: Mapping[str, str]) -> Client:
    """A client of librdkafka made with Java client options.

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
