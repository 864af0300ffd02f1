"""Certificates of a test's own: an authority, and whom it vouches for."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from rivermouth.local.server import HOST

PASSWORD = "store-password"


@dataclass(frozen=True)
class Files:
    """PEM files of one certificate: apart, together, and as a store of type PKCS12."""

    certificate: Path
    key: Path
    both: Path
    store: Path


class Authority:
    """An authority, whose own certificate is in ``file``."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = self._builder(self._name, self._key.public_key(), timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        self._certificate = builder.add_extension(usage, True).sign(self._key, hashes.SHA256())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def issue(self, owner: str, life: timedelta = timedelta(days=1)) -> Files:
        """A certificate for a name, and for the address of this machine, with its key.

        Files of an earlier one of the same name are replaced, each at once.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, owner)])
        places = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
        builder = self._builder(subject, key.public_key(), life).add_extension(places, False)
        certificate = builder.sign(self._key, hashes.SHA256())
        text = certificate.public_bytes(Encoding.PEM)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        encryption = BestAvailableEncryption(PASSWORD.encode())
        store = pkcs12.serialize_key_and_certificates(
            owner.encode(), key, certificate, [self._certificate], encryption
        )
        return Files(
            certificate=self._replace(f"{owner}.crt", text),
            key=self._replace(f"{owner}.key", secret),
            both=self._replace(f"{owner}.pem", secret + text),
            store=self._replace(f"{owner}.p12", store),
        )

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, life: timedelta
    ) -> x509.CertificateBuilder:
        now = datetime.now(timezone.utc)
        # Python takes none without both identifiers, from 3.13 on.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=1))
            .not_valid_after(now + life)
            .add_extension(issuer, False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
        )

    def _replace(self, name: str, content: bytes) -> Path:
        file, fresh = self._folder / name, self._folder / f"{name}.new"
        fresh.write_bytes(content)
        os.replace(fresh, file)
        return file
