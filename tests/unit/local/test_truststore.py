"""A trust store that Python wrote and Java reads."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from rivermouth.local.ivy import write_truststore
from rivermouth.local.java import find_java

pytestmark = pytest.mark.unit

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBijCCATGgAwIBAgIUL/VUsh8F0NylXKEaPvMIU7Ohje0wCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPcml2ZXJtb3V0aCB0ZXN0MCAXDTI2MTEyMTA4MzA0NVoYDzIx
MjYxMDI4MDgzMDQ1WjAaMRgwFgYDVQQDDA9yaXZlcm1vdXRoIHRlc3QwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAAQ0LunkYfY0B0U0fD3H+nkDGyoK7t83B3xtP0Av
0CXsvu5hEkQ5OErjgR6okDmY9kt+YN3Shb8cNt48gJl85wP5o1MwUTAdBgNVHQ4E
FgQUpkjtz/0UADPKTX3MiW8VTwGiqCcwHwYDVR0jBBgwFoAUpkjtz/0UADPKTX3M
iW8VTwGiqCcwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAjkN0n
Ka2ykWGSXeJT243w+jNRqYFK9T9kz16HTFp+ngIgKIQT6hzu0zBEE3n2wN5uV2Ty
jfUsAWujYHI/RpDSyEM=
-----END CERTIFICATE-----
"""


def java_lists(store: Path) -> str:
    """Java's own keytool, which checks the seal and parses every certificate."""
    tool = [str(find_java().command), "-m", "java.base/sun.security.tools.keytool.Main"]
    asked = ["-list", "-v", "-keystore", str(store), "-storetype", "JKS", "-storepass", "changeit"]
    done = subprocess.run([*tool, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_java_reads_every_certificate(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    write_truststore([ssl.PEM_cert_to_DER_cert(CERTIFICATE)] * 2, store)
    listed = java_lists(store)
    assert "contains 2 entries" in listed
    assert listed.count("Owner: CN=rivermouth test") == 2
