"""The ways to log in: those that docs/configuration.md shows, word for word, and others.

Only places are put in: servers, files, the token endpoint, and the Java class, of which the page
can show none that is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ruamel.yaml import YAML

from rivermouth.config.logins import HANDLER, LOGINS
from tests import pages
from tests.logins.certificates import PASSWORD
from tests.logins.guarded_broker import SECRET, GuardedBroker
from tests.logins.token_server import CLIENT

OAUTH = "org.apache.kafka.common.security.oauthbearer"
SNIPPETS: Mapping[str, tuple[str, int]] = {
    "scram": ("User and password", 0),
    "mtls": ("Certificates (mTLS)", 0),
    "mtls as text": ("Certificates (mTLS)", 1),
    "oauth": ("OAuth by client credentials", 0),
    "provider": ("Tokens from a function of your own", 0),
}
"""Where the page shows a way: the heading, and which of its examples."""

OTHERS = ("plain", "mtls in one file", "mtls in PKCS12", "scram in JAAS", "oauth in JAAS")
WAYS = (*SNIPPETS, *OTHERS)

Section = dict[str, str]


def shown(heading: str, language: str) -> list[str]:
    """The examples under a heading of the page."""
    part = pages.section(pages.page("configuration"), f"#### {heading}")
    return pages.snippets(part, language)


def section(way: str, guarded: GuardedBroker) -> Section:
    """The section ``kafka`` of a configuration that logs in this way."""
    if way in SNIPPETS:
        heading, number = SNIPPETS[way]
        text = shown(heading, "yaml")[number]
        return _placed(YAML(typ="safe", pure=True).load(text)["kafka"], guarded)
    return _other(way, guarded)


def environ(guarded: GuardedBroker) -> Mapping[str, str]:
    """The variables that the examples name."""
    return {
        "KAFKA_PASSWORD": SECRET,
        "KAFKA_CLIENT_SECRET": SECRET,
        "KAFKA_CERTIFICATE": guarded.client.certificate.read_text(encoding="utf-8"),
        "KAFKA_KEY": guarded.client.key.read_text(encoding="utf-8"),
    }


def token_file(guarded: GuardedBroker) -> Path:
    """Where the provider of the page finds its token."""
    return guarded.broker.directory.parent / "token"


def write_provider(folder: Path) -> None:
    """The package of the page, with the function that gives tokens."""
    [code] = shown("Tokens from a function of your own", "python")
    package = folder / "my_package"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "logins.py").write_text(code, encoding="utf-8")


def _placed(options: Mapping[str, str], guarded: GuardedBroker) -> Section:
    places = {
        "/etc/kafka/ca.pem": str(guarded.authority.file),
        "/etc/kafka/client.crt": str(guarded.client.certificate),
        "/etc/kafka/client.key": str(guarded.client.key),
        "/run/kafka/token": str(token_file(guarded)),
        "https://login.example.com/oauth2/token": guarded.tokens.endpoint,
        "broker-1.example.com:9093": (
            guarded.tls if options["security.protocol"] == "SSL" else guarded.sasl
        ),
    }
    placed = {name: places.get(text, text) for name, text in options.items()}
    if placed.get(HANDLER) == "com.example.TokenFromFile":
        placed |= _java_class(guarded)
    return placed


def _java_class(guarded: GuardedBroker) -> Section:
    """A class that gives Spark tokens: Kafka's own, as no other is here."""
    return {
        HANDLER: LOGINS["OAUTHBEARER"].java[HANDLER],
        "sasl.oauthbearer.token.endpoint.url": guarded.tokens.endpoint,
        "sasl.jaas.config": _oauth_line(guarded),
    }


def _oauth_line(guarded: GuardedBroker) -> str:
    trusted = f'ssl.truststore.type="PEM" ssl.truststore.location="{guarded.authority.file}"'
    return (
        f'{OAUTH}.OAuthBearerLoginModule required clientId="{CLIENT}" clientSecret="{SECRET}"'
        f' scope="kafka" {trusted};'
    )


def _other(way: str, guarded: GuardedBroker) -> Section:
    scram, tls, oauth = (section(each, guarded) for each in ("scram", "mtls", "oauth"))
    server = {name: scram[name] for name in ("bootstrap.servers", "security.protocol")}
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(guarded.authority.file)}
    module = LOGINS["SCRAM-SHA-256"].module
    ways: Mapping[str, Section] = {
        "plain": {**scram, "sasl.mechanism": "PLAIN"},
        "mtls in one file": {
            "bootstrap.servers": tls["bootstrap.servers"],
            "security.protocol": "SSL",
            **trusted,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(guarded.client.both),
        },
        "mtls in PKCS12": {
            "bootstrap.servers": tls["bootstrap.servers"],
            "security.protocol": "SSL",
            **trusted,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(guarded.client.store),
            "ssl.keystore.password": PASSWORD,
        },
        "scram in JAAS": {
            **server,
            **trusted,
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{module} required username="{CLIENT}" password="{SECRET}";',
        },
        "oauth in JAAS": {
            **server,
            **trusted,
            "sasl.mechanism": oauth["sasl.mechanism"],
            **_java_class(guarded),
        },
    }
    return ways[way]
