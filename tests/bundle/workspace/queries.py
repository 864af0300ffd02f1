"""SQL warehouses, and the alerts that run on them."""

from __future__ import annotations

from tests.bundle.workspace.identity import USER
from tests.bundle.workspace.messages import Request, Resource
from tests.bundle.workspace.shelf import Shelf

WAREHOUSES: tuple[Resource, ...] = (
    {"id": "aaaa000011112222", "name": "small", "state": "RUNNING"},
    {"id": "bbbb000011112222", "name": "Serverless Starter Warehouse", "state": "RUNNING"},
)


class Warehouses:
    """``/api/2.0/sql/warehouses``: two stand there from the beginning."""

    def __init__(self) -> None:
        self.shelf = Shelf("Warehouse")
        for warehouse in WAREHOUSES:
            self.shelf.put(warehouse["id"], warehouse)

    def list(self, request: Request) -> Resource:
        return {"warehouses": self.shelf.all()}

    def get(self, request: Request, key: str) -> Resource:
        return self.shelf.get(key)


class Alerts:
    """``/api/2.0/alerts``: version 2."""

    def __init__(self) -> None:
        self.shelf = Shelf("Alert", numbers_from=900_001)

    def create(self, request: Request) -> Resource:
        key = str(self.shelf.number())
        known = {"id": key, "owner_user_name": USER, "lifecycle_state": "ACTIVE"}
        self.shelf.put(key, {**request.json(), **known})
        return self.shelf.get(key)

    def get(self, request: Request, key: str) -> Resource:
        return self.shelf.get(key)

    def trash(self, request: Request, key: str) -> None:
        self.shelf.remove(key)
