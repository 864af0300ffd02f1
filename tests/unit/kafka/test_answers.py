"""What an error of Kafka's means, by the word of either client."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from rivermouth.errors import Passing, SourceError
from rivermouth.errors.kafka import JAVA, NATIVE, Answer, java_answer, native_answer, source_error
from rivermouth.kafka.client import Kafka

pytestmark = pytest.mark.unit

NO, MAYBE, YES = Passing.NO, Passing.IF_IT_WORKED, Passing.YES
NOWHERE = "127.0.0.1:1"


def told(code: int, topic: str = "t") -> SourceError:
    """What the client of a broker that is not there makes of an error code."""
    kafka = Kafka({"bootstrap.servers": NOWHERE}, timeout_s=0.1)
    return kafka._translate(KafkaException(KafkaError(code)), topic)


@pytest.mark.parametrize(
    ("code", "expected", "passes"),
    [
        (KafkaError.NOT_LEADER_FOR_PARTITION, "RM304", YES),
        (KafkaError.LEADER_NOT_AVAILABLE, "RM304", YES),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, "RM304", YES),
        (KafkaError.KAFKA_STORAGE_ERROR, "RM304", YES),
        (KafkaError.OFFSET_NOT_AVAILABLE, "RM304", YES),
        (KafkaError._TIMED_OUT, "RM301", YES),
        (KafkaError._TRANSPORT, "RM301", YES),
        (KafkaError._RESOLVE, "RM301", YES),
        (KafkaError.NETWORK_EXCEPTION, "RM301", YES),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "RM302", MAYBE),
        (KafkaError._AUTHENTICATION, "RM303", NO),
        (KafkaError.SASL_AUTHENTICATION_FAILED, "RM303", NO),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "RM303", NO),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "RM303", NO),
        (KafkaError._SSL, "RM303", MAYBE),
        (KafkaError.UNKNOWN, "RM303", MAYBE),
        (KafkaError.INVALID_REQUEST, "RM303", MAYBE),
    ],
)
def test_a_code_of_librdkafka_is_told_by_what_it_means(
    code: int, expected: str, passes: Passing
) -> None:
    error = told(code)
    assert (error.code, error.passes) == (expected, passes)
    if expected == "RM303":
        assert "Check the credentials" not in error.remedy or passes is NO


def test_a_broker_that_elects_a_leader_is_not_told_to_check_credentials() -> None:
    text = str(told(KafkaError.NOT_LEADER_FOR_PARTITION))
    assert "credentials" not in text
    assert "found Broker: Not leader for partition" in text


def test_a_right_and_a_login_have_remedies_of_their_own() -> None:
    assert told(KafkaError.TOPIC_AUTHORIZATION_FAILED).remedy.startswith("Grant the user")
    assert told(KafkaError._AUTHENTICATION).remedy == "Check the credentials"


def test_every_code_that_is_listed_is_one_of_librdkafka() -> None:
    known = {
        KafkaError(getattr(KafkaError, name)).name() for name in dir(KafkaError) if is_code(name)
    }
    assert set(NATIVE) <= known


def is_code(name: str) -> bool:
    return name.strip("_").replace("_", "").isupper() and isinstance(getattr(KafkaError, name), int)


NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token: {}"


def test_what_the_client_calls_retriable_is() -> None:
    assert native_answer("OF_TOMORROW", retriable=True) is Answer.UNSETTLED
    assert native_answer("OF_TOMORROW") is Answer.OTHER


@pytest.mark.parametrize(
    ("name", "said", "answer"),
    [
        ("_TRANSPORT", "Receive failed: SSL routines::ssl/tls alert certificate", Answer.TLS),
        ("_AUTHENTICATION", "Request not valid in current SASL state", Answer.UNSETTLED),
        ("_AUTHENTICATION", "Invalid username or password", Answer.UNKNOWN_LOGIN),
        ("_TRANSPORT", "Connection refused", Answer.AWAY),
        ("_AUTHENTICATION", NO_TOKEN.format("Could not connect to server"), Answer.NO_TOKEN),
        ("_AUTHENTICATION", NO_TOKEN.format("SSL_read: unexpected eof"), Answer.NO_TOKEN),
        ("_AUTHENTICATION", NO_TOKEN.format("Service Unavailable"), Answer.NO_TOKEN),
        ("_AUTHENTICATION", NO_TOKEN.format('{"error": "server_error"}'), Answer.NO_TOKEN),
        ("_AUTHENTICATION", NO_TOKEN.format('{"error": "invalid_client"}'), Answer.UNKNOWN_LOGIN),
        ("_AUTHENTICATION", NO_TOKEN.format('{"errorCode":"invalid_scope"}'), Answer.UNKNOWN_LOGIN),
        ("_AUTHENTICATION", NO_TOKEN.format("<html>404"), Answer.OLD_TOKEN),
        ("_AUTHENTICATION", NO_TOKEN.format("a provider's own words"), Answer.OLD_TOKEN),
        ("_AUTHENTICATION", 'SASL: {"status":"invalid_token"}', Answer.OLD_TOKEN),
        ("_AUTHENTICATION", NO_TOKEN.format("SSL certificate problem"), Answer.TLS),
    ],
)
def test_where_a_code_says_too_little_its_text_tells(name: str, said: str, answer: Answer) -> None:
    assert native_answer(name, said) is answer


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("org.apache.kafka.common.errors.NotLeaderOrFollowerException", Answer.UNSETTLED),
        ("kafkashaded.org.apache.kafka.common.errors.TimeoutException", Answer.AWAY),
        ("org.apache.kafka.common.config.ConfigException", Answer.OPTION),
        ("org.apache.kafka.common.KafkaException", Answer.OTHER),
        ("java.util.concurrent.TimeoutException", None),
        ("org.apache.kafkaesque.TimeoutException", None),
    ],
)
def test_an_exception_of_java_is_told_by_its_class(name: str, answer: Answer | None) -> None:
    assert java_answer(name) is answer


def test_every_answer_has_an_error_and_a_remedy() -> None:
    for each in Answer:
        error = source_error(each, "said", "k:9092", "t")
        assert error.remedy, each
        assert error.where.startswith("k:9092")
    by_text = {Answer.NO_TOKEN, Answer.OLD_TOKEN}
    assert {*JAVA.values()} | by_text | {Answer.OTHER} == {*Answer}
