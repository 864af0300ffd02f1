"""Logins: what each SASL mechanism is to both clients, and what a configuration says of its own.

Spark reads records with the Java client; librdkafka asks for everything else. A configuration says
a login once, under one name for each option. What one of the clients cannot use is refused.

Pure: it opens no file that an option names, and it reads no secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rivermouth.config.problems import Fault, KeyPath, Kind, listed
from rivermouth.config.registry import Reference
from rivermouth.config.secret import Secret

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


_FIELD = re.compile(
    r"""([\w.$-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^"'\s;]+))""", re.DOTALL
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_jaas(line: str) -> dict[str, str]:
    """The fields of a JAAS line; of a field that is given twice, the first one."""
    fields: dict[str, str] = {}
    for name, double, single, bare in _FIELD.findall(line):
        quoted = re.sub(r"\\(.)", lambda it: _ESCAPES.get(it[1], it[1]), double or single)
        fields.setdefault(name, bare or quoted)
    return fields


def write_jaas(module: str, fields: Mapping[str, str]) -> str:
    """The JAAS line with these fields. Their text may hold any characters."""
    words = [module, "required", *(f"{name}={_quoted(text)}" for name, text in fields.items())]
    return " ".join(words) + ";"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r") + '"'


CREDENTIAL = "databricks.serviceCredential"
"""The option that names the credential of Unity Catalog with which Spark authenticates."""

BELONGS_TO_LOGIN = re.compile(r"(sasl|ssl|https|enable\.ssl|rivermouth)\..*")
"""Names of options with which a client logs in or trusts a broker."""

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_STORES = {
    "keystore": (
        "key store",
        ("ssl.certificate.location", "ssl.certificate.pem"),
        ("PEM", "PKCS12"),
        "write ssl.keystore.type: PKCS12 if it is one, or convert it; or write PEM files under"
        " ssl.certificate.location and ssl.key.location",
    ),
    "truststore": (
        "trust store",
        ("ssl.ca.location", "ssl.ca.pem"),
        ("PEM",),
        "convert it to type PEM; or add ssl.ca.location: a PEM file, or probe for what the system"
        " trusts",
    ),
}


def named_once(options: Mapping[str, str]) -> dict[str, str]:
    """The options with each part of a login under one name, whichever client's name was written.

    Fields of a JAAS line and stores of type PEM have become options of their own. An option that
    is given under its own name counts before its other names.
    """
    named = {name: text for name, text in options.items() if name not in SAME}
    for other, name in SAME.items():
        if other in options:
            named.setdefault(name, options[other])
    for name, text in _said_in_jaas(options, named.get("sasl.mechanism", "")).items():
        named.setdefault(name, text)
    if options.get("ssl.truststore.type") == "PEM" and "ssl.truststore.location" in options:
        named.setdefault("ssl.ca.location", named.pop("ssl.truststore.location"))
    if options.get("ssl.keystore.type") == "PEM" and "ssl.keystore.location" in options:
        file = named.pop("ssl.keystore.location")
        named.setdefault("ssl.certificate.location", file)
        named.setdefault("ssl.key.location", file)
    return named


def _said_in_jaas(options: Mapping[str, str], mechanism: str) -> dict[str, str]:
    """What the JAAS line says, as options."""
    fields = read_jaas(options.get("sasl.jaas.config", ""))
    known = LOGINS.get(mechanism, LOGINS["PLAIN"]).fields
    said = {known[field]: text for field, text in fields.items() if field in known}
    if CLIENT_ID not in said:
        return said
    start = "extension_"
    extensions = [
        f"{field[len(start) :]}={text}" for field, text in fields.items() if field.startswith(start)
    ]
    if extensions:
        said["sasl.oauthbearer.extensions"] = ",".join(extensions)
    if fields.get("ssl.truststore.type") == "PEM" and "ssl.truststore.location" in fields:
        said["https.ca.location"] = fields["ssl.truststore.location"]
    return said


def login_faults(options: Mapping[str, str | Secret]) -> Iterator[Fault]:
    """What one of the two clients could not use, or what is missing; paths lead to an option."""
    texts = {name: _text(value) for name, value in options.items()}
    named = named_once(texts)
    protocol = named.get("security.protocol", "")
    if CREDENTIAL in named and not protocol:
        fix = "add security.protocol and sasl.* for librdkafka; Spark does not use them"
        message = "{path} authenticates only Spark, not the checks of a run"
        yield _fault(message, (CREDENTIAL,), fix)
    yield from _provider_faults(texts)
    if protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        place = "sasl.mechanism" if "sasl.mechanism" in texts else "sasl.mechanisms"
        jaas = options.get("sasl.jaas.config")
        # What a secret holds is not known here.
        unseen = isinstance(jaas, Secret) and jaas.names and not read_jaas(_text(jaas))
        if not unseen:
            yield from _mechanism_faults(named, place)
    if protocol in ("SSL", "SASL_SSL"):
        yield from _tls_faults(texts, named)


def _text(value: str | Secret) -> str:
    return value.reveal(lambda scope, key: "secret") if isinstance(value, Secret) else value


def _fault(message: str, path: KeyPath, fix: str, *, at_key: bool = True) -> Fault:
    return Fault(Kind.LOGIN, message, path=path, fix=fix, at_key=at_key)


def _provider_faults(options: Mapping[str, str]) -> Iterator[Fault]:
    for name in options:
        if name.startswith("rivermouth.") and not name.startswith("rivermouth.login."):
            fix = f"such options begin with rivermouth.login., for example {PROVIDER}"
            message = "{path} is no option of a Kafka client, and none of rivermouth"
            yield Fault(Kind.UNKNOWN_KEY, message, path=(name,), fix=fix, at_key=True)
    provider = options.get(PROVIDER)
    if provider is not None and not _REFERENCE.fullmatch(provider):
        fix = "write the name of a Python function, for example my_package.logins:token"
        message = "{path} must be module:name, not {value}"
        yield Fault(Kind.BAD_VALUE, message, path=(PROVIDER,), fix=fix)


def _mechanism_faults(named: Mapping[str, str], place: str) -> Iterator[Fault]:
    name = named.get("sasl.mechanism")
    known = listed([*LOGINS, *sorted(WORD_FOR_WORD)])
    if name is None:
        message = "{path} is {value}, but sasl.mechanism is missing"
        fix = f"add sasl.mechanism, one of: {known}"
        yield _fault(message, ("security.protocol",), fix, at_key=False)
    elif name in LOGINS:
        yield from _login_faults(LOGINS[name], named, place)
    elif name not in WORD_FOR_WORD:
        message = "{path} is {value}, which librdkafka does not know"
        yield _fault(message, (place,), f"write one of: {known}", at_key=False)


def _login_faults(login: Login, named: Mapping[str, str], place: str) -> Iterator[Fault]:
    for name in sorted(login.java_alone & {*read_jaas(named.get("sasl.jaas.config", ""))}):
        fix = "remove it; let the surroundings give the credentials, or name a profile or a role"
        message = f"{{path}} has {name}, which only the Java client understands"
        yield _fault(message, ("sasl.jaas.config",), fix)
    missing = [each for each in login.required if each not in named]
    python, java = PROVIDER in named, _gives_java_tokens(login, named)
    if python and (TOKEN_ENDPOINT not in login.required and not login.provider):
        message = "{path} has no meaning with this sasl.mechanism"
        yield _fault(message, (PROVIDER,), "write sasl.mechanism: OAUTHBEARER, or remove it")
    elif not missing or login.provider or (python and java):
        return
    elif python:
        message = "{path} is a Python function, which the Java client of Spark cannot call"
        fix = f"add {HANDLER}: a Java class that gives Spark its tokens"
        yield _fault(message, (PROVIDER,), fix)
    elif java and HANDLER in named:
        message = "{path} is a Java class, which librdkafka cannot call"
        fix = f"add {PROVIDER}: module:name, a Python function that gives librdkafka its tokens"
        yield _fault(message, (HANDLER,), fix)
    else:
        message = f"{{path}} is {{value}}, which needs {listed(missing)}"
        yield _fault(message, (place,), f"add {listed(missing)}", at_key=False)


def _gives_java_tokens(login: Login, named: Mapping[str, str]) -> bool:
    """Whether Spark logs in by other means than client credentials."""
    kafkas_own = login.java.get(HANDLER, "").rpartition(".")[2]
    handler = named.get(HANDLER, "").rpartition(".")[2]
    return CREDENTIAL in named or handler not in ("", kafkas_own)


def _tls_faults(options: Mapping[str, str], named: Mapping[str, str]) -> Iterator[Fault]:
    for store, (words, others, types, fix) in _STORES.items():
        location, password = f"ssl.{store}.location", f"ssl.{store}.password"
        kind = options.get(f"ssl.{store}.type", "JKS")
        if location in options and kind not in types and not {*others} & {*named}:
            shown = f"type {kind}" if kind in ("JKS", "PKCS12") else "another type"
            message = f"{{path}} is a {words} of {shown}, which librdkafka cannot read"
            yield _fault(message, (location,), fix)
        if kind == "PEM" and password in options:
            message = f"{{path}} is refused by the Java client for a {words} of type PEM"
            fix = "remove it; the password of a key is ssl.key.password"
            yield _fault(message, (password,), fix)
    for one, other in (("certificate", "key"), ("key", "certificate")):
        have = [f"ssl.{one}.{form}" for form in ("location", "pem") if f"ssl.{one}.{form}" in named]
        if have and not any(f"ssl.{other}.{form}" in named for form in ("location", "pem")):
            written = next((each for each in have if each in options), None)
            path = written or next(old for old, new in SAME.items() if new in have)
            message = f"{{path}} is given without ssl.{other}.location"
            yield _fault(message, (path,), f"add ssl.{other}.location: a PEM file")
