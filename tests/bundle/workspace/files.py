"""Workspace files and folders."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import dirname

from tests.bundle.workspace.messages import Refused, Request, Resource, exists, invalid, missing

MOMENT = 1_790_000_000_000  # the creation time of everything, in milliseconds: it never matters


@dataclass
class Tree:
    """Paths to bytes, or to None for a folder. A path begins with a slash and ends in none."""

    nodes: dict[str, bytes | None] = field(default_factory=lambda: {"/": None})
    ids: dict[str, int] = field(default_factory=lambda: {"/": 1000})
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1001))

    def make_folder(self, path: str) -> None:
        """With its parents. Raises Refused when one of them is a file."""
        if self.nodes.get(path) is not None:
            raise exists(f"The file {path}")
        if path not in self.nodes:
            self.make_folder(dirname(path))
            self._put(path, None)

    def write(self, path: str, content: bytes, *, overwrite: bool) -> None:
        """Raises Refused when the folder is missing, or the path is taken and may not be."""
        if dirname(path) not in self.nodes:
            raise missing(f"The parent folder ({dirname(path)})")
        if path in self.nodes and (not overwrite or self.nodes[path] is None):
            raise exists(f"Path ({path})")
        self._put(path, content)

    def read(self, path: str) -> bytes:
        content = self.nodes.get(path)
        if content is None:
            raise missing(f"Path ({path})")
        return content

    def files(self) -> list[str]:
        return [path for path, content in self.nodes.items() if content is not None]

    def below(self, path: str) -> list[str]:
        return [other for other in self.nodes if other.startswith(path.rstrip("/") + "/")]

    def delete(self, path: str, *, recursive: bool) -> None:
        if path not in self.nodes:
            raise missing(f"Path ({path})")
        inside = self.below(path)
        if inside and not recursive:
            raise Refused(400, "DIRECTORY_NOT_EMPTY", f"Folder ({path}) is not empty")
        for each in [path, *inside]:
            del self.nodes[each], self.ids[each]

    def _put(self, path: str, content: bytes | None) -> None:
        self.nodes[path] = content
        self.ids.setdefault(path, next(self._numbers))


class WorkspaceFiles:
    """``/api/2.0/workspace`` and ``workspace-files``."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def _described(self, path: str) -> Resource:
        content = self.tree.nodes[path]
        described: Resource = {
            "path": path,
            "object_type": "DIRECTORY" if content is None else "FILE",
            "object_id": self.tree.ids[path],
            "resource_id": str(self.tree.ids[path]),
            "created_at": MOMENT,
            "modified_at": MOMENT,
        }
        if content is not None:
            described["size"] = len(content)
        return described

    def get_status(self, request: Request) -> Resource:
        path = _path(request.query.get("path"))
        if path not in self.tree.nodes:
            raise missing(f"Path ({path})")
        return self._described(path)

    def mkdirs(self, request: Request) -> None:
        self.tree.make_folder(_path(request.json().get("path")))

    def delete(self, request: Request) -> None:
        body = request.json()
        self.tree.delete(_path(body.get("path")), recursive=bool(body.get("recursive")))

    def export(self, request: Request) -> Resource | bytes:
        content = self.tree.read(_path(request.query.get("path")))
        if request.query.get("direct_download") == "true":
            return content
        return {"content": base64.b64encode(content).decode()}

    def import_file(self, request: Request, path: str) -> None:
        overwrite = request.query.get("overwrite") == "true"
        self.tree.write(_path(path), request.body, overwrite=overwrite)

    def read_file(self, request: Request, path: str) -> bytes:
        return self.tree.read(_path(path))


def _path(path: object) -> str:
    if not isinstance(path, str) or not path.startswith("/"):
        raise invalid(f"Path ({path}) must be absolute")
    return path.rstrip("/") or "/"
