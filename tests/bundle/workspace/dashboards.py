"""Lakeview dashboards: a draft with an etag, and what of it is published."""

from __future__ import annotations

import uuid
from posixpath import join

from tests.bundle.workspace.files import MOMENT, Tree
from tests.bundle.workspace.messages import Request, Resource, exists, missing
from tests.bundle.workspace.shelf import Shelf


class Dashboards:
    """``/api/2.0/lakeview/dashboards``. A draft lies as a file in its parent folder."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.drafts = Shelf("Dashboard")
        self.published = Shelf("Published dashboard")

    def create(self, request: Request) -> Resource:
        body = {**request.json(), **request.query}  # the data sets' catalog and schema come there
        path = join(body["parent_path"], f"{body['display_name']}.lvdash.json")
        if path in self.tree.nodes:
            raise exists(f"Node named '{body['display_name']}.lvdash.json'")
        self.tree.write(path, body.get("serialized_dashboard", "").encode(), overwrite=False)
        dashboard_id = uuid.uuid4().hex
        known = {"dashboard_id": dashboard_id, "path": path, "lifecycle_state": "ACTIVE"}
        times = {"create_time": "2026-09-21T00:00:00Z", "update_time": "2026-09-21T00:00:00Z"}
        self.drafts.put(dashboard_id, {**body, **known, **times, "etag": self._etag()})
        return self.drafts.get(dashboard_id)

    def get(self, request: Request, dashboard_id: str) -> Resource:
        return self.drafts.get(dashboard_id)

    def trash(self, request: Request, dashboard_id: str) -> None:
        path = self.drafts.get(dashboard_id)["path"]
        self.drafts.remove(dashboard_id)
        if dashboard_id in self.published:
            self.published.remove(dashboard_id)
        if path in self.tree.nodes:
            self.tree.delete(path, recursive=False)

    def publish(self, request: Request, dashboard_id: str) -> Resource:
        draft = self.drafts.get(dashboard_id)
        shown = {"display_name": draft["display_name"], "revision_create_time": str(MOMENT)}
        self.published.put(dashboard_id, {**shown, **request.json()})
        return self.published.get(dashboard_id)

    def get_published(self, request: Request, dashboard_id: str) -> Resource:
        if dashboard_id not in self.published:
            raise missing(f"A published form of dashboard {dashboard_id}")
        return self.published.get(dashboard_id)

    def _etag(self) -> str:
        return str(self.drafts.number())
