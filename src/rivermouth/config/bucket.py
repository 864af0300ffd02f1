"""Where tables are in an object store: a bucket and a prefix, and the options of its client."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rivermouth.config.problems import Fault, Kind, Refused, checked, closest
from rivermouth.config.secret import Secret, sensitive

S3, AZURE, GOOGLE = "s3", "az", "gs"
SCHEMES: Mapping[str, str] = {
    "s3": S3,
    "s3a": S3,
    "az": AZURE,
    "abfs": AZURE,
    "abfss": AZURE,
    "gs": GOOGLE,
}
"""What an address begins with, and whose store it is."""

_PLAIN = ("endpoint",)
OPTIONS: Mapping[str, tuple[str, ...]] = {
    S3: (
        *_PLAIN,
        "region",
        "access_key_id",
        "secret_access_key",
        "session_token",
        "virtual_hosted_style_request",
        "role_arn",
        "server_side_encryption",
        "sse_kms_key_id",
        "skip_signature",
    ),
    AZURE: (
        *_PLAIN,
        "account_name",
        "account_key",
        "sas_token",
        "client_id",
        "client_secret",
        "tenant_id",
        "use_emulator",
    ),
    GOOGLE: ("service_account", "service_account_key"),
}
"""The options of each store, as its client calls them (object_store, obstore, delta-rs)."""
RENEWED: Mapping[str, str] = {
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "session_token": "token",
    "account_key": "access_key",
    "sas_token": "sas_token",
}
"""The options that may be read anew in a run, each as a credential is called."""
_URL = re.compile(r"(?P<scheme>[a-z0-9]+)://(?P<host>[^/\s?#]+)(?P<path>/[^\s?#]*)?")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,254}")


@dataclass(frozen=True)
class Bucket:
    """The tables are below ``prefix`` of a bucket; empty: the bucket itself.

    ``account`` is the one of Azure that an address of ``abfss:`` names.
    """

    store: str
    name: str
    prefix: str = ""
    account: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (f"{self.store}://{self.name}", self.prefix)))


def read_bucket(value: str) -> Bucket | None:
    """An address as ``s3://bucket/prefix``; None: it is no address. Raises ``Refused``."""
    begins = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", value)
    if begins is None:
        return None
    message = "{path} must be a folder or the address of a bucket, not {value}"
    if begins[1] not in SCHEMES:
        known = ", ".join(f"{each}://" for each in SCHEMES)
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=f"write a path, or one of {known}"))
    match = _URL.fullmatch(value)
    if match is None:
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=f"write {begins[1]}://bucket/prefix"))
    name, host, path = match["host"], "", (match["path"] or "").strip("/")
    if "@" in name:
        name, _, host = name.partition("@")
    parts = path.split("/") if path else []
    if not _NAME.fullmatch(name) or not all(parts) or {".", ".."} & {*parts}:
        raise Refused(Fault(Kind.BAD_VALUE, message, fix=f"write {begins[1]}://bucket/prefix"))
    return Bucket(SCHEMES[match["scheme"]], name, path, host.partition(".")[0])


def read_storage(value: object) -> Mapping[str, str | Secret]:
    """Options of the client of a store; those under sensitive names become ``Secret``.

    Raises ``Refused`` with all faults. Which of them a store knows, ``storage_faults`` says.
    """
    if not isinstance(value, Mapping):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be options by name, not {value}"))
    options, faults = dict[str, str | Secret](), list[Fault]()
    for name, given in value.items():
        if isinstance(given, bool):
            text: object = str(given).lower()
        else:
            text = str(given) if isinstance(given, int) else given
        if isinstance(text, Secret):
            options[name] = text
        elif isinstance(text, str):
            hide = sensitive(name) or name in RENEWED
            options[name] = Secret(text) if hide else text
        else:
            message = "{path} must be text, a number, true or false, not {value}"
            faults.append(Fault(Kind.WRONG_TYPE, message, path=(name,)))
    return checked(options, faults)


def storage_faults(warehouse: object, storage: Mapping[str, object] | None) -> Iterator[Fault]:
    """What stands against the options of a store, as far as the warehouse tells."""
    if storage is None:
        return
    if not isinstance(warehouse, Bucket):
        message, fix = "{path} has no meaning: the warehouse is in no object store", "remove it"
        yield Fault(Kind.NOT_YOURS, message, path=("storage",), fix=fix, at_key=True)
        return
    known = OPTIONS[warehouse.store]
    for name in storage:
        if name not in known:
            guess = closest(name, known)
            fix = "" if guess else f"known are {', '.join(known)}"
            message, path = "{path} is not known", ("storage", name)
            yield Fault(
                Kind.UNKNOWN_KEY, message, path=path, fix=fix, suggestion=guess, at_key=True
            )
