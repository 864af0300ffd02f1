"""Writes a Java trust store (format JKS) without a Java tool.

The layout, with big-endian numbers: magic, version 2, number of entries; for each certificate the
tag 2, an alias, a time in milliseconds, the type "X.509" and the DER bytes; last the SHA-1 of the
password in UTF-16, a fixed phrase and all bytes before.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path

__all__ = ["write_truststore"]

_PASSWORD = "changeit"  # Java's default; certificates are public and need no protection


def write_truststore(certificates: Sequence[bytes], path: Path) -> None:
    """Write ``certificates`` (DER) to ``path``, as a trust store of type JKS."""
    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, der in enumerate(certificates):
        body += struct.pack(">I", 2) + _text(f"ca{number}") + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(der)) + der
    seal = hashlib.sha1(_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body)
    path.write_bytes(body + seal.digest())


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
