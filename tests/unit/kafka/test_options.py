"""The Kafka options of each client, and those that are refused."""

from __future__ import annotations

import pytest

from rivermouth.errors import KafkaRefused
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.options import java_options, native_options, spark_options

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
def test_the_options_of_librdkafka_are_translated(
    options: dict[str, str], java: dict[str, str]
) -> None:
    assert java.items() <= java_options(options).items()


def test_a_password_with_any_characters_reaches_both_clients() -> None:
    told = java_options({"sasl.mechanism": "PLAIN", **USER})
    assert native_options(told) == {"sasl.mechanism": "PLAIN", **USER}


def test_an_option_that_only_a_java_client_has_is_dropped() -> None:
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


LOGIN = "org.apache.kafka.common.security"
ON_DATABRICKS = [
    ({"sasl.mechanism": "PLAIN", **USER}, {"sasl.jaas.config": f"kafkashaded.{PLAIN}{SECRET}"}),
    (
        {"sasl.mechanism": "SCRAM-SHA-256", **USER},
        {"sasl.jaas.config": f"kafkashaded.{SCRAM}{SECRET}"},
    ),
    ({"sasl.jaas.config": PLAIN}, {"sasl.jaas.config": f"kafkashaded.{PLAIN}"}),
    (
        {"sasl.jaas.config": f"kafkashaded.{PLAIN}"},
        {"sasl.jaas.config": f"kafkashaded.{PLAIN}"},
    ),
    (
        {"sasl.jaas.config": f" {LOGIN}.A required;\n {LOGIN}.B optional;"},
        {"sasl.jaas.config": f" kafkashaded.{LOGIN}.A required;\n kafkashaded.{LOGIN}.B optional;"},
    ),
    (
        {"sasl.jaas.config": f'{LOGIN}.A required password="; {LOGIN} \\"; {LOGIN}";'},
        {"sasl.jaas.config": f'kafkashaded.{LOGIN}.A required password="; {LOGIN} \\"; {LOGIN}";'},
    ),
    ({"sasl.jaas.config": JAAS}, {"sasl.jaas.config": JAAS}),
    (
        {"sasl.login.callback.handler.class": f"{LOGIN}.oauthbearer.Handler"},
        {"sasl.login.callback.handler.class": f"kafkashaded.{LOGIN}.oauthbearer.Handler"},
    ),
    (
        {"sasl.login.callback.handler.class": f"kafkashaded.{LOGIN}.oauthbearer.Handler"},
        {"sasl.login.callback.handler.class": f"kafkashaded.{LOGIN}.oauthbearer.Handler"},
    ),
    (
        {"sasl.login.callback.handler.class": "com.example.Handler"},
        {"sasl.login.callback.handler.class": "com.example.Handler"},
    ),
    ({"client.id": f"{LOGIN}.x"}, {"client.id": f"{LOGIN}.x"}),
]


@pytest.mark.parametrize(("options", "java"), ON_DATABRICKS)
def test_on_databricks_the_classes_of_kafka_get_their_prefix_once(
    options: dict[str, str], java: dict[str, str]
) -> None:
    told = java_options(options, databricks=True)
    assert java.items() <= told.items()
    assert java_options(told, databricks=True) == told


@pytest.mark.parametrize("options", [given for given, _ in ON_DATABRICKS])
def test_on_other_platforms_no_class_gets_a_prefix(options: dict[str, str]) -> None:
    written = "kafkashaded" in str(options)
    assert ("kafkashaded" in str(java_options(options))) is written


def test_librdkafka_gets_user_and_password_whatever_the_module_is_called() -> None:
    told = java_options({"sasl.mechanism": "PLAIN", **USER}, databricks=True)
    assert native_options(told) == {"sasl.mechanism": "PLAIN", **USER}


CREDENTIAL = {"databricks.serviceCredential": "events", "databricks.serviceCredential.scope": "x"}
OWN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", **USER}


def test_spark_gets_the_options_of_kafka_under_their_full_names() -> None:
    told = spark_options({**SERVERS, "client.id": "a"})
    assert told == {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.client.id": "a"}


def test_with_a_service_credential_only_librdkafka_gets_the_other_login() -> None:
    options = {**SERVERS, **CREDENTIAL, **OWN, "client.id": "a"}
    assert spark_options(options, databricks=True) == {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.client.id": "a",
        **CREDENTIAL,
    }
    assert native_options(options) == {**SERVERS, **OWN, "client.id": "a"}


@pytest.mark.parametrize("name", CREDENTIAL)
def test_a_service_credential_is_refused_on_other_platforms(name: str) -> None:
    with pytest.raises(KafkaRefused, match=f"only Databricks knows the option {name}") as it:
        spark_options({**SERVERS, **OWN, name: "hunter"})
    assert it.value.where == "127.0.0.1:1"
    assert "hunter" not in str(it.value)


def test_a_service_credential_alone_leaves_the_broker_checks_without_a_login() -> None:
    with pytest.raises(
        KafkaRefused, match="authenticates only Spark; the broker checks need"
    ) as caught:
        Kafka({**SERVERS, **CREDENTIAL})
    assert "Add security.protocol and sasl" in caught.value.remedy
