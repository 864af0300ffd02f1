"""Java's Kafka options as librdkafka understands them, and those it refuses."""

from __future__ import annotations

import pytest

from rivermouth.clients import native_options
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
