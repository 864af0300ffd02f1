"""Tokens from a Python function: given, refused, of Amazon's IAM."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from rivermouth.config.logins import PROVIDER
from rivermouth.errors import KafkaRefused, MissingPackage
from rivermouth.kafka.client import Kafka
from rivermouth.kafka.login import Token, token_callback
from rivermouth.kafka.msk import region_of

pytestmark = pytest.mark.unit

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}
SASL = {**SERVERS, "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
ASKED: list[Mapping[str, str]] = []


def gives(options: Mapping[str, str]) -> Token:
    ASKED.append(options)
    return Token(f"token {len(ASKED)}", time.time() + 3600, "me", {"pool": "a"})


def fails(options: Mapping[str, str]) -> Token:
    raise PermissionError(f"no role for {options['sasl.password']}")


def says(options: Mapping[str, str]) -> str:
    return "a token"


@pytest.fixture
def provider() -> Iterator[ModuleType]:
    """This module under a name that a configuration may say."""
    module = ModuleType("providers_of_a_test")
    for each in (gives, fails, says):
        setattr(module, each.__name__, each)
    sys.modules[module.__name__] = module
    ASKED.clear()
    yield module
    del sys.modules[module.__name__]


def options(name: str, **more: str) -> dict[str, str]:
    return {**SASL, PROVIDER: f"providers_of_a_test:{name}", **more}


@pytest.mark.usefixtures("provider")
def test_a_provider_is_asked_at_once_and_again_for_each_further_token() -> None:
    own = options("gives")
    callback = token_callback(own)
    assert callback is not None
    assert len(ASKED) == 1
    assert callback("")[::2] == ("token 1", "me")
    assert callback("")[::3] == ("token 2", {"pool": "a"})
    assert [own, own] == ASKED
    assert "token 1" not in repr(Token("token 1", 0.0))


@pytest.mark.usefixtures("provider")
def test_a_client_with_a_provider_starts_and_asks_for_its_token() -> None:
    Kafka(options("gives"))
    assert len(ASKED) >= 1


@pytest.mark.usefixtures("provider")
def test_a_provider_that_fails_is_said_at_once_without_a_secret() -> None:
    began = time.monotonic()
    with pytest.raises(KafkaRefused, match="the provider of tokens gave none") as caught:
        Kafka(options("fails", **{"sasl.password": "hunter2"}))
    assert caught.value.where == "providers_of_a_test:fails"
    assert caught.value.found == "PermissionError: no role for ********"
    assert caught.value.__context__ is None or "hunter2" not in repr(caught.value.__cause__)
    assert time.monotonic() - began < 5


@pytest.mark.usefixtures("provider")
def test_a_provider_that_gives_something_else_is_said() -> None:
    with pytest.raises(KafkaRefused) as caught:
        token_callback(options("says"))
    assert caught.value.found == "a value of type str"


@pytest.mark.parametrize("reference", ["no_such_package.logins:token", "rivermouth.kafka:token"])
def test_a_provider_that_cannot_be_imported_is_said_with_its_name(reference: str) -> None:
    with pytest.raises(MissingPackage, match="cannot be imported") as caught:
        token_callback({**SASL, PROVIDER: reference})
    assert caught.value.where == f"{PROVIDER}: {reference}"


def test_a_login_that_options_describe_needs_no_provider() -> None:
    assert token_callback(SASL) is None


IAM = {**SASL, "sasl.mechanism": "AWS_MSK_IAM"}
SERVER = "b-1.x.y.c2.kafka.eu-west-1.amazonaws.com:9098"
SERVERLESS = "boot-x.c2.kafka-serverless.us-east-2.amazonaws.com:9098"
REGIONS = [
    ({"bootstrap.servers": SERVER}, {}, "eu-west-1"),
    (
        {"bootstrap.servers": SERVERLESS},
        {},
        "us-east-2",
    ),
    ({"bootstrap.servers": SERVER, "rivermouth.login.region": "eu-north-1"}, {}, "eu-north-1"),
    ({"bootstrap.servers": "k:1"}, {"AWS_DEFAULT_REGION": "eu-south-1"}, "eu-south-1"),
]


@pytest.mark.parametrize(("own", "environ", "region"), REGIONS)
def test_the_region_is_configured_or_that_of_the_servers_or_of_the_environment(
    own: dict[str, str], environ: dict[str, str], region: str
) -> None:
    assert region_of(own, environ) == region


def test_a_region_that_nothing_tells_is_said() -> None:
    with pytest.raises(KafkaRefused, match="region of the cluster is not known"):
        region_of(SERVERS, {})


def test_without_the_package_of_amazon_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)
    with pytest.raises(MissingPackage) as caught:
        Kafka({**IAM, "bootstrap.servers": SERVER})
    assert "rivermouth[msk]" in caught.value.remedy


LOGINS = [
    ({}, ("generate_auth_token", "eu-west-1")),
    (
        {"rivermouth.login.profile": "ingest"},
        ("generate_auth_token_from_profile", "eu-west-1", "ingest"),
    ),
    (
        {"sasl.jaas.config": 'x.IAMLoginModule required awsProfileName="ingest";'},
        ("generate_auth_token_from_profile", "eu-west-1", "ingest"),
    ),
    (
        {"rivermouth.login.role": "arn:x"},
        ("generate_auth_token_from_role_arn", "eu-west-1", "arn:x", "rivermouth"),
    ),
]


@pytest.mark.parametrize(("own", "call"), LOGINS)
def test_the_package_of_amazon_is_asked_as_configured(
    own: dict[str, str], call: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []

    class Signer(ModuleType):
        def __getattr__(self, name: str) -> Any:
            def sign(*given: str) -> tuple[str, int]:
                calls.append((name, *given))
                return "signed", 5_000

            return sign

    name = "aws_msk_iam_sasl_signer"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    path = f"{name}.MSKAuthTokenProvider"
    monkeypatch.setitem(sys.modules, path, Signer(path))
    callback = token_callback({**IAM, "bootstrap.servers": SERVER, **own})
    assert callback is not None
    assert callback("")[:2] == ("signed", 5.0)
    assert calls == [call]
