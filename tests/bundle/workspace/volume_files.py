"""The Files API: what lies in volumes."""

from __future__ import annotations

from posixpath import basename, dirname

from tests.bundle.workspace.files import MOMENT, Tree
from tests.bundle.workspace.messages import Request, Resource, missing

VOLUME_DEPTH = 4  # /Volumes/catalog/schema/volume


class VolumeFiles:
    """``/api/2.0/fs``. Only a volume that exists takes anything; folders come by themselves."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def upload(self, request: Request, path: str) -> None:
        self._in_a_volume(path)
        self.tree.make_folder(dirname(path))
        overwrite = request.query.get("overwrite") == "true"
        self.tree.write(path, request.body, overwrite=overwrite)

    def download(self, request: Request, path: str) -> bytes:
        return self.tree.read(path)

    def describe(self, request: Request, path: str) -> bytes:
        """For HEAD: the server sends the length and keeps the bytes."""
        return self.tree.read(path)

    def delete_file(self, request: Request, path: str) -> None:
        self.tree.read(path)
        self.tree.delete(path, recursive=False)

    def make_folder(self, request: Request, path: str) -> None:
        self._in_a_volume(path)
        self.tree.make_folder(path)

    def list(self, request: Request, path: str) -> Resource:
        self.describe_folder(request, path)
        children = [each for each in self.tree.below(path) if dirname(each) == path]
        return {"contents": [self._described(each) for each in children]}

    def describe_folder(self, request: Request, path: str) -> None:
        if path not in self.tree.nodes or self.tree.nodes[path] is not None:
            raise missing(f"The directory {path}")

    def delete_folder(self, request: Request, path: str) -> None:
        self.describe_folder(request, path)
        self.tree.delete(path, recursive=False)

    def _described(self, path: str) -> Resource:
        content = self.tree.nodes[path]
        described: Resource = {
            "path": path,
            "name": basename(path),
            "is_directory": content is None,
            "last_modified": MOMENT,
        }
        if content is not None:
            described["file_size"] = len(content)
        return described

    def _in_a_volume(self, path: str) -> None:
        volume = "/".join(path.split("/")[: VOLUME_DEPTH + 1])
        if volume not in self.tree.nodes or path.count("/") < VOLUME_DEPTH:
            raise missing(f"The volume {volume}")
