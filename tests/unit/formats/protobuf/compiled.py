"""Message types of a text, by the compiler of Protobuf, and messages of its own parser."""

from __future__ import annotations

import subprocess
import sys
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from rivermouth.formats.protobuf.schema import Types, types_of


class Compiled:
    """What ``text`` defines."""

    def __init__(self, text: str) -> None:
        known = str(files("grpc_tools") / "_proto")
        with TemporaryDirectory() as folder:
            Path(folder, "it.proto").write_text(text, encoding="utf-8")
            into = Path(folder, "it.bin")
            words = [f"-I{folder}", f"-I{known}", "--include_imports"]
            compiler = [sys.executable, "-m", "grpc_tools.protoc", *words]
            subprocess.run([*compiler, f"--descriptor_set_out={into}", "it.proto"], check=True)
            self.files = FileDescriptorSet.FromString(into.read_bytes())

    @cached_property
    def types(self) -> Types:
        return Types.from_json(types_of(self.files).to_json())

    def message(self, name: str) -> Any:
        """The class of a message."""
        pool = descriptor_pool.DescriptorPool()
        for each in self.files.file:
            pool.Add(each)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
