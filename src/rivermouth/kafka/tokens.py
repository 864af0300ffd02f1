"""Tokens for librdkafka, from a Python function: for logins that no option describes.

    def token(options: Mapping[str, str]) -> Token: ...

The function gets the options of the section ``kafka``, with secrets revealed. It is called when
a client is made, and again each time when four fifths of the life of a token are over, from a
thread of librdkafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rivermouth.config.jaas import read_jaas
from rivermouth.config.logins import named_once
from rivermouth.config.secret import MASK, sensitive
from rivermouth.errors import KafkaRefused, MissingPackage, Passing, RivermouthError
from rivermouth.registry.logins import LOGINS, PROVIDER
from rivermouth.registry.references import Reference, own

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
        expected="a rivermouth.kafka.tokens.Token",
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
