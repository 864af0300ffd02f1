"""Clusters, as far as anybody asks: which runtime they have, or could have."""

from __future__ import annotations

from tests.bundle.workspace.messages import Request, Resource
from tests.bundle.workspace.shelf import Shelf


class Clusters:
    """``/api/2.1/clusters``: those that a test puts on the shelf."""

    def __init__(self) -> None:
        self.shelf = Shelf("Cluster")
        self.offered = ["16.4.x-scala2.12", "17.3.x-scala2.13", "18.x-scala2.13"]

    def get(self, request: Request) -> Resource:
        return self.shelf.get(request.query["cluster_id"])

    def versions(self, request: Request) -> Resource:
        return {"versions": [{"key": each, "name": each} for each in self.offered]}
