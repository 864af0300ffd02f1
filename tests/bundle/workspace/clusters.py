"""Clusters, as far as anybody asks: which runtime they have."""

from __future__ import annotations

from tests.bundle.workspace.messages import Request, Resource
from tests.bundle.workspace.shelf import Shelf


class Clusters:
    """``/api/2.1/clusters``: those that a test puts on the shelf."""

    def __init__(self) -> None:
        self.shelf = Shelf("Cluster")

    def get(self, request: Request) -> Resource:
        return self.shelf.get(request.query["cluster_id"])
