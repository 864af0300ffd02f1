"""What an error of Kafka's means: the same for librdkafka's codes and for Java's exceptions.

Both clients know which errors may be tried again. librdkafka keeps that to itself outside of
transactions, so its codes are listed here, as Kafka's protocol classes them; Java's are the
subclasses of its ``RetriableException``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from rivermouth.errors import (
    KafkaRefused,
    KafkaUnreachable,
    KafkaUnsettled,
    Passing,
    SourceError,
    TopicMissing,
)


class Answer(Enum):
    """What a client says of a question that failed."""

    AWAY = "away"
    """No broker answered in time."""
    NO_TOKEN = "no token"
    """The server of tokens did not answer."""
    UNSETTLED = "unsettled"
    """A broker answered that it cannot answer yet."""
    NO_TOPIC = "no topic"
    UNKNOWN_LOGIN = "unknown login"
    """Authentication failed."""
    OLD_TOKEN = "old token"
    """There is no good token, for a reason that may pass: the last one expired, for example."""
    FORBIDDEN = "forbidden"
    """Authorisation failed."""
    TLS = "tls"
    """No connection came about; a broker that is about to end does that, too."""
    OPTION = "option"
    """The client refuses an option."""
    OTHER = "other"


_NATIVE = {
    Answer.AWAY: "_TRANSPORT _TIMED_OUT _TIMED_OUT_QUEUE _ALL_BROKERS_DOWN _RESOLVE"
    " REQUEST_TIMED_OUT NETWORK_EXCEPTION BROKER_NOT_AVAILABLE",
    Answer.UNSETTLED: "LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION REPLICA_NOT_AVAILABLE"
    " COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR NOT_CONTROLLER"
    " NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_MSG CONCURRENT_TRANSACTIONS"
    " KAFKA_STORAGE_ERROR LISTENER_NOT_FOUND FETCH_SESSION_ID_NOT_FOUND"
    " INVALID_FETCH_SESSION_EPOCH FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE"
    " PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED"
    " UNSTABLE_OFFSET_COMMIT THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID"
    " REBOOTSTRAP_REQUIRED _RETRY _WAIT_CACHE _WAIT_COORD _NODE_UPDATE _IN_PROGRESS"
    " _PREV_IN_PROGRESS",
    Answer.NO_TOPIC: "UNKNOWN_TOPIC_OR_PART _UNKNOWN_TOPIC _UNKNOWN_PARTITION",
    Answer.UNKNOWN_LOGIN: "_AUTHENTICATION SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM"
    " ILLEGAL_SASL_STATE DELEGATION_TOKEN_EXPIRED DELEGATION_TOKEN_NOT_FOUND",
    Answer.FORBIDDEN: "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED"
    " CLUSTER_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    " DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    Answer.TLS: "_SSL",
}
_JAVA = {
    Answer.AWAY: "Timeout Disconnect Network BrokerNotAvailable NoAvailableBrokers BufferExhausted",
    Answer.UNSETTLED: "LeaderNotAvailable NotLeaderForPartition NotLeaderOrFollower"
    " ReplicaNotAvailable CoordinatorLoadInProgress CoordinatorNotAvailable NotCoordinator"
    " NotController NotEnoughReplicas NotEnoughReplicasAfterAppend CorruptRecord"
    " ConcurrentTransactions KafkaStorage ListenerNotFound FetchSessionIdNotFound"
    " FetchSessionTopicId InvalidFetchSessionEpoch FencedLeaderEpoch UnknownLeaderEpoch"
    " OffsetNotAvailable PreferredLeaderNotAvailable EligibleLeadersNotAvailable"
    " ElectionNotNeeded UnstableOffsetCommit ThrottlingQuotaExceeded UnknownTopicId"
    " InconsistentTopicId InvalidMetadata StaleMetadata RetriableCommitFailed Retriable"
    " AuthorizerNotReady ShareSessionNotFound InvalidShareSessionEpoch",
    Answer.NO_TOPIC: "UnknownTopicOrPartition",
    Answer.UNKNOWN_LOGIN: "SaslAuthentication Authentication IllegalSaslState"
    " UnsupportedSaslMechanism DelayedResponseAuthentication DelegationTokenExpired"
    " DelegationTokenNotFound",
    Answer.FORBIDDEN: "TopicAuthorization GroupAuthorization ClusterAuthorization Authorization"
    " TransactionalIdAuthorization DelegationTokenAuthorization",
    Answer.TLS: "SslAuthentication",
    Answer.OPTION: "Config",
}


def _by_name(table: dict[Answer, str], suffix: str = "") -> dict[str, Answer]:
    return {name + suffix: each for each, names in table.items() for name in names.split()}


NATIVE = _by_name(_NATIVE)
"""librdkafka's codes by name, see ``KafkaError.name``; any other is OTHER."""
JAVA = _by_name(_JAVA, "Exception")
"""The exceptions of the Java client, without their packages; any other is OTHER."""
_JAVA_CLASS = re.compile(r"(?:kafkashaded\.)?org\.apache\.kafka\.(?:\w+\.)*(\w+)")
_NO_HOST = "No resolvable bootstrap urls"
_LATE_TOKEN = "not valid in current SASL state"
_TLS_ALERT = "tls alert"
_INVALID_TOKEN = '"invalid_token"'
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"
# The codes of OAuth 2.0 (RFC 6749, 5.2), whatever the server calls the field.
_NO = re.compile(r"invalid_\w+|unauthorized_client|unsupported_grant_type|access_denied")
_BUSY = re.compile(r"temporarily_unavailable|server_error|Service Unavailable|Bad Gateway")
_NO_ANSWER = re.compile(
    r"could ?n.t connect|could not (connect|resolve)|timed out|timeout|unexpected eof|reset by peer"
    r"|empty reply|returned nothing",
    re.IGNORECASE,
)


def native_answer(name: str, said: str = "", *, retriable: bool = False) -> Answer:
    """What librdkafka says by the error code of that name; ``retriable`` is its own word.

    Some codes say too little. With TLS 1.3 a refused certificate comes as an alert on a connection
    that stands, which is an error of transport there. A token that is renewed while the broker is
    about to close the connection is no refused login: that passes. Nor is a server of tokens that
    does not answer.
    """
    if _NO_TOKEN in said:
        return _without_token(said)
    if _LATE_TOKEN in said:
        return Answer.UNSETTLED
    if _TLS_ALERT in said:
        return Answer.TLS
    if _INVALID_TOKEN in said:
        return Answer.OLD_TOKEN
    return NATIVE.get(name, Answer.UNSETTLED if retriable else Answer.OTHER)


def _without_token(said: str) -> Answer:
    """Why there is no token: librdkafka tells the answer of the server, or curl's error."""
    if _BUSY.search(said):
        return Answer.NO_TOKEN
    if _NO.search(said):
        return Answer.UNKNOWN_LOGIN
    if "certificate" in said:
        return Answer.TLS
    return Answer.NO_TOKEN if _NO_ANSWER.search(said) else Answer.OLD_TOKEN


def java_answer(java_class: str, said: str = "") -> Answer | None:
    """What an exception of that full class name says; None where it is not one of Kafka's."""
    match = _JAVA_CLASS.fullmatch(java_class)
    if match is None:
        return None
    answer = JAVA.get(match[1], Answer.OTHER)
    if answer is Answer.UNKNOWN_LOGIN and _INVALID_TOKEN in said:
        return Answer.OLD_TOKEN
    return Answer.AWAY if answer is Answer.OPTION and _NO_HOST in said else answer


def source_error(answer: Answer, said: str, where: str, topic: str = "") -> SourceError:
    """The error that stands for an answer; ``said`` is what the client said, in its words."""
    place = f"{where} {topic}".strip()
    if answer is Answer.AWAY:
        return KafkaUnreachable("no broker answers", where=where, found=said)
    if answer is Answer.NO_TOKEN:
        remedy = "Check sasl.oauthbearer.token.endpoint.url, and that its server is up"
        return KafkaUnreachable("no token for the login", where=where, found=said, remedy=remedy)
    if answer is Answer.UNSETTLED:
        return KafkaUnsettled("the cluster cannot answer yet", where=place, found=said)
    if answer is Answer.NO_TOPIC:
        if topic:
            return no_topics([topic], where)
        return TopicMissing("a topic does not exist", where=where, found=said)
    remedy, passes = _REFUSALS[answer]
    return KafkaRefused("the broker refused", where=place, found=said, remedy=remedy, passes=passes)


def no_topics(topics: Sequence[str], where: str) -> TopicMissing:
    """The error that names all topics, of those that were asked for, that do not exist."""
    if len(topics) == 1:
        return TopicMissing(f"topic {topics[0]} does not exist", where=where)
    return TopicMissing(
        f"topics {', '.join(topics)} do not exist",
        where=where,
        remedy="Create the topics or correct source.topics; they are never created for you",
    )


_REFUSALS = {
    Answer.UNKNOWN_LOGIN: ("Check the credentials", Passing.NO),
    Answer.OLD_TOKEN: (
        "Check the credentials, and whether the server of tokens answers",
        Passing.IF_IT_WORKED,
    ),
    Answer.FORBIDDEN: ("Grant the user the rights on topic and cluster", Passing.NO),
    Answer.TLS: ("Check security.protocol and the certificates", Passing.IF_IT_WORKED),
    Answer.OPTION: ("Correct it in the section 'kafka' of the configuration", Passing.NO),
    Answer.OTHER: ("Look for this error in the log of the broker", Passing.IF_IT_WORKED),
}
