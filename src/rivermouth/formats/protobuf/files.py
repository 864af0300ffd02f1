"""Message types from files: ``.proto`` by the compiler of Protobuf, or sets of descriptors."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from rivermouth.errors import MissingPackage
from rivermouth.errors.error import one_line
from rivermouth.formats.protobuf.schema import BadSchema, types_of

_FAULT = re.compile(r"\S+:\d+:\d+: (?!warning)|\S+: (File not found|Import)")
"""What the compiler says of a file, among what its libraries say of themselves."""


def text_of(file: Path) -> str:
    """The types in a file, as ``Types.to_json``. Raises BadSchema, MissingPackage and OSError.

    A ``.proto`` file may import those that are beside it or in folders there; any other file is a
    ``FileDescriptorSet``, with all that is imported.
    """
    if file.suffix == ".proto":
        return _described(_compiled(file.parent, file.name))
    return _described(file.read_bytes())


def text_of_files(files: Mapping[str, str]) -> str:
    """The same for texts by the names by which they import each other; the last one counts."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return _described(_compiled(Path(folder), [*files][-1]))


def _described(descriptors: bytes) -> str:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        found = FileDescriptorSet.FromString(descriptors)
    except DecodeError as fault:
        raise BadSchema(f"it is no set of descriptors: {fault}") from fault
    if not any(each.message_type for each in found.file):
        raise BadSchema("it defines no message")
    return types_of(found).to_json()


def _compiled(folder: Path, name: str) -> bytes:
    """The descriptors of a ``.proto`` file and of all that it imports.

    The compiler is a process of its own: it writes its reasons to standard error.
    """
    if find_spec("grpc_tools") is None:
        raise MissingPackage(
            "the compiler of Protobuf is not installed",
            where=name,
            expected="the package grpcio-tools",
            remedy="pip install 'rivermouth[protobuf]', or give a set of descriptors instead",
        )
    known = str(resources.files("grpc_tools") / "_proto")
    with tempfile.TemporaryDirectory() as out:
        into = Path(out, "descriptors")
        words = [f"-I{folder}", f"-I{known}", "--include_imports", f"--descriptor_set_out={into}"]
        done = subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", *words, name],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.replace(f"{folder}/", "").splitlines()
            faults = [each for each in said if _FAULT.match(each)] or said
            raise BadSchema(one_line(" ".join(faults)))
        return into.read_bytes()
