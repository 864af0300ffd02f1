"""What a login needs beyond options: files that may be replaced, PEM texts, tokens.

Both clients read them when they are made, and keep what they read. So after a replacement a
client must be made anew before what it holds expires.

def token(options: Mapping[str, str]) -> Token: ...

The function gets the options of the section ``kafka``, with secrets revealed. It is called when
a client is made, and again each time when four fifths of the life of a token are over, from a
thread of librdkafka.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rivermouth.config.logins import LOGINS, PROVIDER, SYSTEM, named_once, read_jaas
from rivermouth.config.registry import Reference, own
from rivermouth.config.secret import MASK, sensitive
from rivermouth.errors import KafkaRefused, MissingPackage, Passing, RivermouthError

_NAMED = re.compile(r"(ssl\.(ca|certificate|key|keystore|truststore)|https\.ca)\.location")

SETTLED_S = 1.0
"""So long must all files stay as they are: key and certificate are replaced one after the other."""

Stamps = tuple[tuple[int, int, int] | None, ...]


class LoginFiles:
    """Whether a file that the options name was replaced since this was made."""

    def __init__(
        self, options: Mapping[str, str], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        every = {**read_jaas(options.get("sasl.jaas.config", "")), **options}
        named = {text for name, text in every.items() if _NAMED.fullmatch(name)}
        self._paths = sorted(Path(text) for text in named - {SYSTEM})
        self._first = self._last = self._stamps()
        self._now_s = now_s
        self._since_s = now_s()
        self._replaced = False

    def replaced(self) -> bool:
        """True once a file is another one than at first, and all have settled. It stays true."""
        before, self._last = self._last, self._stamps()
        if before != self._last:
            self._since_s = self._now_s()
        pairs = zip(self._first, self._last, strict=True)
        gone = any(first is not None and last is None for first, last in pairs)
        settled = self._now_s() - self._since_s >= SETTLED_S and not gone
        self._replaced = self._replaced or (settled and self._last != self._first)
        return self._replaced

    def _stamps(self) -> Stamps:
        return tuple(_stamp(path) for path in self._paths)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_JAVA_READS = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY")


def read_certificates(file: str | None) -> str:
    """The certificates in a file; nothing if no file is named. Raises KafkaRefused."""
    return _blocks(file, ("CERTIFICATE",), "certificate", "Name the PEM file of the certificate")


def read_key(file: str | None) -> str:
    """The private key in a file; nothing if no file is named. Raises KafkaRefused.

    Java reads keys in the form PKCS#8 alone, librdkafka others too.
    """
    remedy = "Convert it: openssl pkcs8 -topk8 -in OLD -out NEW, with -nocrypt for no password"
    return _blocks(file, _JAVA_READS, "private key in the form PKCS#8", remedy)


def _blocks(file: str | None, kinds: tuple[str, ...], what: str, remedy: str) -> str:
    if file is None:
        return ""
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or type(fault).__name__
        remedy = "Correct the path in the section 'kafka', or the permissions of the file"
        raise KafkaRefused(
            "a file of the login cannot be read", where=file, found=reason, remedy=remedy
        ) from None
    found = [match for match in _BLOCK.finditer(text) if match[1] in kinds]
    if not found:
        others = ", ".join(dict.fromkeys(match[1] for match in _BLOCK.finditer(text)))
        raise KafkaRefused(
            "a file of the login does not hold what the Java client needs",
            where=file,
            expected=f"a {what}",
            found=others or "no PEM block",
            remedy=remedy,
        )
    return "\n".join(match[0] for match in found) + "\n"


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Token:
    """What a provider gives. Printing shows no text of the token."""

    text: str = field(repr=False)
    expires_at: float
    """In seconds since 1970, as ``time.time()`` counts."""
    principal: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


Provider = Callable[[Mapping[str, str]], object]
"""It should give a ``Token``; what it gives is checked."""
Callback = Callable[[str], tuple[Any, ...]]
"""What confluent-kafka calls: token, end of life, principal, extensions."""


def token_callback(options: Mapping[str, str]) -> Callback | None:
    """The ``oauth_cb`` of a client with these options; None if its login needs no provider.

    The first token is asked for at once, so that a login without one is told with its reason.
    Raises KafkaRefused and MissingPackage.
    """
    login = LOGINS.get(named_once(options).get("sasl.mechanism", ""))
    reference = options.get(PROVIDER) or (login.provider if login else "")
    if not reference:
        return None
    ask = partial(_ask, _provider(reference), reference, options)
    first = [ask()]

    def callback(config: str) -> tuple[Any, ...]:
        del config  # of librdkafka's own unsecured tokens
        try:
            token = first.pop() if first else ask()
        except RivermouthError as fault:
            _LOG.warning("%s", fault)
            raise
        return token.text, token.expires_at, token.principal, dict(token.extensions)

    return callback


def _provider(reference: Reference) -> Provider:
    try:
        found: Provider = own(reference)
    except MissingPackage as fault:
        raise MissingPackage(
            "the provider of tokens cannot be imported",
            where=f"{PROVIDER}: {reference}",
            found=fault.found,
            remedy=fault.remedy,
        ) from fault
    return found


def _ask(provider: Provider, reference: Reference, options: Mapping[str, str]) -> Token:
    try:
        token = provider(options)
    except RivermouthError:
        raise
    except Exception as fault:  # a provider has its own errors, with any text
        found = _masked(f"{type(fault).__name__}: {fault}", options)
    else:
        if isinstance(token, Token):
            return token
        found = f"a value of type {type(token).__name__}"
    # Raised outside the handler: the new error must not hold the text of the old one.
    raise KafkaRefused(
        "the provider of tokens gave none",
        where=reference,
        expected="a rivermouth.kafka.login.Token",
        found=found,
        remedy="Check the credentials that it uses",
        passes=Passing.IF_IT_WORKED,  # what it asks may be away for a while
    ) from None


def _masked(text: str, options: Mapping[str, str]) -> str:
    """The text without secrets: those of the options, and those inside a line of JAAS."""
    secrets = {value for name, value in options.items() if sensitive(name)}
    lines = (read_jaas(value) for name, value in options.items() if "jaas" in name)
    secrets |= {text for line in lines for name, text in line.items() if sensitive(name)}
    for each in sorted(secrets - {""}, key=len, reverse=True):
        text = text.replace(each, MASK)
    return text
