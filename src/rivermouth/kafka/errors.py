"""What an error of a librdkafka client means, with what the client has reported beside it."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError

from rivermouth.errors import SourceError
from rivermouth.errors.kafka import Answer, native_answer, source_error

_NO_LOGIN = {Answer.UNKNOWN_LOGIN, Answer.OLD_TOKEN, Answer.NO_TOKEN, Answer.TLS}


def translated(
    error: KafkaError, reported: Sequence[KafkaError], where: str, topic: str = ""
) -> SourceError:
    """The error of a request that failed. ``reported`` is what ``error_cb`` got meanwhile.

    A request that got no answer in time does not know the cause. What was reported tells it.
    """
    answer = _answer(error)
    if answer is not Answer.AWAY:
        return source_error(answer, str(error.str()), where, topic)
    errors = [each for each in reported if each.code() != KafkaError._ALL_BROKERS_DOWN]
    refused = [each for each in errors if refuses_login(each)]
    if refused:
        newest = refused[-1]
        return source_error(_answer(newest), str(newest.str()), where)
    found = str(errors[0].str()) if errors else str(error.name())
    return source_error(Answer.AWAY, found, where)


def refuses_login(error: KafkaError) -> bool:
    """Whether an error tells why no login came about."""
    return _answer(error) in _NO_LOGIN


def _answer(error: KafkaError) -> Answer:
    return native_answer(str(error.name()), error.str(), retriable=error.retriable())
