"""PEM files whose text the Java client is told: it takes key and certificate from one place."""

from __future__ import annotations

import re
from pathlib import Path

from rivermouth.errors import KafkaRefused

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
