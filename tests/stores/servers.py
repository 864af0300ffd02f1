"""Object stores of others on this machine, which keep the same promises as s3proxy or must not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
from collections.abc import Mapping
from email.utils import formatdate

from rivermouth.local.s3 import BUCKET, KEY, SECRET, LocalS3
from rivermouth.local.server import HOST
from tests.stores.parts import azurite, versitygw

ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = base64.b64encode(SECRET.encode()).decode()


class Versitygw(LocalS3):
    """versitygw over a folder: another one that speaks S3, written in Go."""

    def _command(self) -> list[str]:
        beside = self.directory / "attributes"  # not every folder keeps them with its files
        beside.mkdir(exist_ok=True)
        return [
            *(str(versitygw(self._environ)), "--access", KEY, "--secret", SECRET),
            *("--region", self.options["region"], "--port", f"{HOST}:{self.port}"),
            *("--quiet", "--disable-acl"),
            *("posix", "--sidecar", str(beside), str(self.objects)),
        ]


class Azurite(LocalS3):
    """Azurite, which speaks as Azure Blob Storage does. Its objects are no files."""

    address = f"az://{BUCKET}"

    def __init__(self) -> None:
        super().__init__()
        self._environ = {**self._environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}

    @property
    def options(self) -> dict[str, str]:
        """``storage`` of a configuration."""
        return {
            "endpoint": f"{self.endpoint}/{ACCOUNT}",
            "account_name": ACCOUNT,
            "account_key": ACCOUNT_KEY,
        }

    def start(self, *, timeout_seconds: float = 120.0) -> None:
        """Start it, with the container."""
        super().start(timeout_seconds=timeout_seconds)
        path = f"/{ACCOUNT}/{BUCKET}"
        told = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
        signature = _signature(f"/{ACCOUNT}{path}\nrestype:container", told)
        told["authorization"] = f"SharedKey {ACCOUNT}:{signature}"
        azure = http.client.HTTPConnection(HOST, self.port, timeout=60)
        azure.request("PUT", f"{path}?restype=container", headers=told)
        answer = azure.getresponse()
        assert answer.status in (201, 409), answer.read()
        azure.close()

    def _command(self) -> list[str]:
        return [
            *("node", str(azurite(self._environ)), "--location", str(self.directory / "blobs")),
            *("--blobHost", HOST, "--blobPort", str(self.port)),
            *("--silent", "--disableTelemetry", "--skipApiVersionCheck"),
        ]


def _signature(resource: str, told: Mapping[str, str]) -> str:
    """That of a put without a body, as Azure's shared keys make it."""
    told_ = "".join(f"{name}:{value}\n" for name, value in sorted(told.items()))
    text = "PUT" + "\n" * 12 + told_ + resource
    key = base64.b64decode(ACCOUNT_KEY)
    return base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()


STORES: Mapping[str, type[LocalS3]] = {
    "s3proxy": LocalS3,
    "versitygw": Versitygw,
    "azurite": Azurite,
}
"""The stores that the tests of this room may run over."""
