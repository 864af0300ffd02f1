"""A broker of a test's own that wants a login: a password, a token, or a certificate; with TLS."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka.admin

from rivermouth.local.broker import Broker
from rivermouth.local.server import HOST, free_port
from tests.logins.certificates import Authority, Files
from tests.logins.token_server import AUDIENCE, CLIENT, TokenServer

_ADMIN: Any = confluent_kafka.admin  # users have no types

SECRET = "right-secret"
"""The password of the user, and the secret of the client."""

_SECURITY = "org.apache.kafka.common.security"
_SASL = "listener.name.sasl_ssl"
_MAP = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL"


@dataclass(frozen=True)
class GuardedBroker:
    """``broker`` itself lets everybody in; ``sasl`` and ``tls`` are where a login is wanted.

    The user ``ingest`` may do everything.
    """

    broker: Broker
    sasl: str
    tls: str
    authority: Authority
    client: Files
    tokens: TokenServer


@contextmanager
def guarded_broker(folder: Path) -> Iterator[GuardedBroker]:
    """A running one, with its own authority and its own server of tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = Authority(folder)
    files = authority.issue("broker")
    with TokenServer(files, authority.file, SECRET) as tokens:
        ports = _ports(4)
        listeners = dict(zip(("PLAINTEXT", "CONTROLLER", "SASL_SSL", "SSL"), ports, strict=True))
        settings = {
            "listeners": ",".join(f"{name}://{HOST}:{at}" for name, at in listeners.items()),
            "listener.security.protocol.map": _MAP,
            "controller.quorum.voters": f"1@{HOST}:{listeners['CONTROLLER']}",
            "broker.session.timeout.ms": "30000",
            # A connection without requests ends soon: a client must log in again.
            "connections.max.idle.ms": "4000",
            **_tls(files, authority),
            **_logins(authority, tokens),
        }
        environ = {**os.environ, "JDK_JAVA_OPTIONS": f"{_ALLOWED}={tokens.keys}"}
        kept = Broker(folder / "broker", listeners["PLAINTEXT"], settings=settings, environ=environ)
        with kept as broker:
            _add_users(broker.bootstrap_servers)
            sasl, tls = (f"{HOST}:{listeners[name]}" for name in ("SASL_SSL", "SSL"))
            yield GuardedBroker(broker, sasl, tls, authority, authority.issue(CLIENT), tokens)


_ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"


def _tls(files: Files, authority: Authority) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
    }


def _logins(authority: Authority, tokens: TokenServer) -> dict[str, str]:
    oauth = f"{_SASL}.oauthbearer.sasl"
    trusted = f'ssl.truststore.type="PEM" ssl.truststore.location="{authority.file}"'
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{_SASL}.plain.sasl.jaas.config": (
            f'{_SECURITY}.plain.PlainLoginModule required user_{CLIENT}="{SECRET}";'
        ),
        **{
            f"{_SASL}.scram-sha-{size}.sasl.jaas.config": (
                f"{_SECURITY}.scram.ScramLoginModule required;"
            )
            for size in (256, 512)
        },
        f"{oauth}.jaas.config": (
            # The claim is for a login of the broker itself, which none asks for.
            f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required {trusted}"
            ' unsecuredLoginStringClaim_sub="broker";'
        ),
        f"{oauth}.server.callback.handler.class": (
            f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": tokens.keys,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.clock.skew.seconds": "1",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{CLIENT}",
    }


def _add_users(servers: str) -> None:
    admin = _ADMIN.AdminClient({"bootstrap.servers": servers, "log_level": 2})
    kinds = _ADMIN.ScramMechanism
    for mechanism in (kinds.SCRAM_SHA_256, kinds.SCRAM_SHA_512):
        info = _ADMIN.ScramCredentialInfo(mechanism, 4096)
        user = _ADMIN.UserScramCredentialUpsertion(CLIENT, info, SECRET.encode())
        for added in admin.alter_user_scram_credentials([user]).values():
            added.result(30)


def _ports(count: int) -> list[int]:
    found: dict[int, None] = {}
    while len(found) < count:
        found[free_port()] = None
    return [*found]
