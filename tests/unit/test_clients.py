"""Java's Kafka options as librdkafka understands them, and those it refuses."""

from __future__ import annotations

import pytest

from rivermouth.clients import java_options, native_options
from rivermouth.errors import KafkaRefused
from rivermouth.kafka import Kafka

pytestmark = pytest.mark.unit

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}
JAAS = 'x.PlainLoginModule required username="owner" password="right";'


@pytest.mark.parametrize(
    ("options", "native"),
    [
        ({"client.id": "a"}, {"client.id": "a"}),
        ({"sasl.jaas.config": JAAS}, {"sasl.username": "owner", "sasl.password": "right"}),
        ({"max.poll.records": "5", "value.serializer": "x"}, {}),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"},
            {"ssl.ca.location": "/ca.pem"},
        ),
        ({"ssl.truststore.location": "/ca.jks", "ssl.truststore.password": "s"}, {}),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/me.pem"},
            {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"},
        ),
        (
            {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/me.p12"},
            {"ssl.keystore.location": "/me.p12"},
        ),
    ],
)
def test_the_options_of_java_are_translated(
    options: dict[str, str], native: dict[str, str]
) -> None:
    assert native_options(options) == native


USER = {"sasl.username": "me", "sasl.password": 'a "b\\c'}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" '
SCRAM = PLAIN.replace("plain.Plain", "scram.Scram")
SECRET = r'password="a \"b\\c";'


@pytest.mark.parametrize(
    ("options", "java"),
    [
        (
            {"sasl.mechanism": "PLAIN", **USER},
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN + SECRET},
        ),
        (
            {"sasl.mechanism": "SCRAM-SHA-512", **USER},
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM + SECRET},
        ),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS, **USER}, {"sasl.jaas.config": JAAS}),
        (
            {"ssl.ca.location": "/ca.pem"},
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"},
        ),
        ({"ssl.truststore.location": "/ca.jks"}, {"ssl.truststore.location": "/ca.jks"}),
    ],
)
def test_what_librdkafka_understands_a_java_client_is_told_too(
    options: dict[str, str], java: dict[str, str]
) -> None:
    assert java.items() <= java_options(options).items()


def test_a_password_of_any_signs_reaches_both_clients() -> None:
    told = java_options({"sasl.mechanism": "PLAIN", **USER})
    assert native_options(told) == {"sasl.mechanism": "PLAIN", **USER}


def test_what_only_a_java_client_knows_is_left_out() -> None:
    Kafka({**SERVERS, "default.api.timeout.ms": "5000", "metrics.num.samples": "3"})


@pytest.mark.parametrize(
    "options",
    [
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "NOSUCH"},
        {"security.protocol": "SSL", "ssl.ca.location": "/nowhere"},
        {"socket.timeout.ms": "soon"},
    ],
    ids=lambda it: next(reversed(it)),
)
def test_an_option_that_is_refused_is_an_error_with_a_remedy(options: dict[str, str]) -> None:
    with pytest.raises(KafkaRefused, match="the Kafka client refuses an option") as caught:
        Kafka({**SERVERS, **options})
    assert caught.value.remedy
