"""Tokens of AWS IAM for Amazon MSK, by the extra ``msk``.

Credentials come from where AWS looks for them: the environment, a profile, the role of the
machine. ``rivermouth.login.profile`` or ``rivermouth.login.role`` names another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from rivermouth.config.logins import named_once
from rivermouth.errors import KafkaRefused, MissingPackage
from rivermouth.kafka.login import Token

_REGION = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com")
_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


def token(options: Mapping[str, str]) -> Token:
    """A token that lives 15 minutes. Raises MissingPackage and KafkaRefused."""
    signer, named = _signer(), named_once(options)
    region = region_of(options)
    profile, role = (named.get(f"rivermouth.login.{each}") for each in ("profile", "role"))
    if role is not None:
        session = named.get("rivermouth.login.session", "rivermouth")
        text, expires_ms = signer.generate_auth_token_from_role_arn(region, role, session)
    elif profile is not None:
        text, expires_ms = signer.generate_auth_token_from_profile(region, profile)
    else:
        text, expires_ms = signer.generate_auth_token(region)
    return Token(text, expires_ms / 1000)


def region_of(options: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> str:
    """The region: as configured, as the servers are named, or as the environment says.

    Raises KafkaRefused where none of them tells it.
    """
    servers = _REGION.search(options["bootstrap.servers"])
    named = (environ.get(each) for each in _VARIABLES)
    found = options.get("rivermouth.login.region") or (
        servers[1] if servers else next(filter(None, named), "")
    )
    if found:
        return found
    raise KafkaRefused(
        "the region of the cluster is not known",
        where=options["bootstrap.servers"],
        expected="a server *.kafka.REGION.amazonaws.com",
        remedy="Add rivermouth.login.region, or set AWS_REGION",
    )


def _signer() -> Any:
    try:
        return import_module("aws_msk_iam_sasl_signer.MSKAuthTokenProvider")
    except ImportError:
        raise MissingPackage(
            "sasl.mechanism: AWS_MSK_IAM needs a package that is not installed",
            where="aws-msk-iam-sasl-signer-python",
            remedy="Install rivermouth with its extra: pip install 'rivermouth[msk]'",
        ) from None
