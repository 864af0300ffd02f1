"""Logins: what each SASL mechanism is to the Java client and to librdkafka. Pure.

Spark reads records with the Java client; librdkafka asks for everything else. A configuration
says a login once. This table says what becomes of it for each of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rivermouth.config.registry import Reference

_SECURITY = "org.apache.kafka.common.security"
TOKEN_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE = "sasl.oauthbearer.scope"
HANDLER = "sasl.login.callback.handler.class"
"""The option that names the Java class which logs in."""

SYSTEM = "probe"
"""As the place of an authority: what the system trusts."""

PROVIDER = "rivermouth.login.provider"
"""The option that names the Python function which gives librdkafka its tokens."""


@dataclass(frozen=True)
class Login:
    """One SASL mechanism.

    ``module`` is Java's login module. ``fields`` are the fields of its JAAS line, each with the
    option that says the same. ``required`` are the options without which nobody can log in.
    ``java`` and ``native`` are options that each client needs besides; where a configuration has
    one of them, its own counts for the Java client. ``provider`` gives librdkafka its tokens, see
    ``kafka.login``. ``java_alone`` are fields that nothing but the Java client understands.
    """

    module: str
    fields: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    java: Mapping[str, str] = field(default_factory=dict)
    native: Mapping[str, str] = field(default_factory=dict)
    provider: Reference = ""
    java_alone: frozenset[str] = frozenset()


_PASSWORD = {"username": "sasl.username", "password": "sasl.password"}
_SCRAM = Login(f"{_SECURITY}.scram.ScramLoginModule", _PASSWORD, (*_PASSWORD.values(),))

LOGINS: Mapping[str, Login] = {
    "PLAIN": Login(f"{_SECURITY}.plain.PlainLoginModule", _PASSWORD, (*_PASSWORD.values(),)),
    "SCRAM-SHA-256": _SCRAM,
    "SCRAM-SHA-512": _SCRAM,
    "OAUTHBEARER": Login(
        f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
        {"clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET, "scope": SCOPE},
        (TOKEN_ENDPOINT, CLIENT_ID, CLIENT_SECRET),
        java={HANDLER: f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"},
        native={"sasl.oauthbearer.method": "oidc"},
    ),
    "AWS_MSK_IAM": Login(
        "software.amazon.msk.auth.iam.IAMLoginModule",
        {
            "awsProfileName": "rivermouth.login.profile",
            "awsRoleArn": "rivermouth.login.role",
            "awsRoleSessionName": "rivermouth.login.session",
        },
        java={
            "sasl.client.callback.handler.class": (
                "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
            )
        },
        native={"sasl.mechanism": "OAUTHBEARER"},
        provider="rivermouth.kafka.msk:token",
        java_alone=frozenset(
            {
                "awsRoleAccessKeyId",
                "awsRoleSecretAccessKey",
                "awsRoleSessionToken",
                "awsRoleExternalId",
            }
        ),
    ),
}
"""By the value of ``sasl.mechanism``."""

WORD_FOR_WORD = frozenset({"GSSAPI"})
"""Mechanisms whose options are passed on as they are: each client has its own."""

SAME: Mapping[str, str] = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.id": CLIENT_ID,
    "sasl.oauthbearer.client.secret": CLIENT_SECRET,
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
"""Options with two names: the other one, and the one that is used here."""

SHADED: Mapping[str, str] = {
    "org.apache.kafka.": "kafkashaded.",
    "software.amazon.msk.": "shadedmskiam.",
}
"""How names of Java classes begin, and what Databricks puts before them."""
