"""Unity Catalog: schemas, volumes, and who may do what with them."""

from __future__ import annotations

from tests.bundle.workspace.files import MOMENT
from tests.bundle.workspace.identity import USER
from tests.bundle.workspace.messages import Refused, Request, Resource, exists, invalid
from tests.bundle.workspace.shelf import Shelf


class Catalog:
    """``/api/2.1/unity-catalog``."""

    def __init__(self) -> None:
        self.catalogs: tuple[str, ...] = ("main", "spark_catalog")
        self.schemas = Shelf("Schema")
        self.volumes = Shelf("Volume")
        self.grants: dict[tuple[str, str], dict[str, set[str]]] = {}

    def make_volume(self, full: str) -> None:
        """A volume that is there before anything is deployed, and its schema."""
        schema = full.rpartition(".")[0]
        self.schemas.put(schema, {"full_name": schema})
        self.volumes.put(full, {"full_name": full})

    def create_schema(self, request: Request) -> Resource:
        body = request.json()
        full = f"{body['catalog_name']}.{body['name']}"
        if body["catalog_name"] not in self.catalogs:
            raise _absent("Catalog", body["catalog_name"])
        return self._create(self.schemas, full, body)

    def create_volume(self, request: Request) -> Resource:
        body = request.json()
        schema = f"{body['catalog_name']}.{body['schema_name']}"
        if schema not in self.schemas:
            raise _absent("Schema", schema)
        full = f"{schema}.{body['name']}"
        return self._create(self.volumes, full, {**body, "volume_id": f"volume-{full}"})

    def get_catalog(self, request: Request, name: str) -> Resource:
        if name not in self.catalogs:
            raise _absent("Catalog", name)
        return {"name": name, "owner": "metastore-admins", "catalog_type": "MANAGED_CATALOG"}

    def get_schema(self, request: Request, full: str) -> Resource:
        return self._get(self.schemas, full)

    def get_volume(self, request: Request, full: str) -> Resource:
        return self._get(self.volumes, full)

    def delete_schema(self, request: Request, full: str) -> None:
        """A schema that holds something goes only by force, and with all that it holds."""
        self._get(self.schemas, full)
        inside = [name for name in self.volumes if name.startswith(f"{full}.")]
        if inside and request.query.get("force") != "true":
            raise Refused(400, "INVALID_STATE", f"Schema '{full}' is not empty")
        for volume in inside:
            self._delete(self.volumes, "volume", volume)
        self._delete(self.schemas, "schema", full)

    def delete_volume(self, request: Request, full: str) -> None:
        self._get(self.volumes, full)
        self._delete(self.volumes, "volume", full)

    def get_grants(self, request: Request, kind: str, full: str) -> Resource:
        self._get({"schema": self.schemas, "volume": self.volumes}[kind], full)
        held = self.grants.get((kind, full), {})
        return {
            "privilege_assignments": [
                {"principal": principal, "privileges": sorted(privileges)}
                for principal, privileges in held.items()
                if privileges
            ]
        }

    def change_grants(self, request: Request, kind: str, full: str) -> Resource:
        held = self.grants.setdefault((kind, full), {})
        for change in request.json().get("changes", ()):
            added, removed = set(change.get("add", ())), set(change.get("remove", ()))
            if added & removed:
                raise invalid(f"Duplicate privileges to add and delete: {added & removed}")
            privileges = held.setdefault(change["principal"], set())
            privileges -= removed
            privileges |= added
        return self.get_grants(request, kind, full)

    def _create(self, shelf: Shelf, full: str, body: Resource) -> Resource:
        if full in shelf:
            raise exists(f"{shelf.kind} '{full}'")
        known = {"full_name": full, "owner": USER, "created_at": MOMENT, "created_by": USER}
        shelf.put(full, {**body, **known})
        return shelf.get(full)

    def _get(self, shelf: Shelf, full: str) -> Resource:
        if full not in shelf:
            raise _absent(shelf.kind, full)
        return shelf.get(full)

    def _delete(self, shelf: Shelf, kind: str, full: str) -> None:
        shelf.remove(full)
        self.grants.pop((kind, full), None)


def _absent(kind: str, name: str) -> Refused:
    return Refused(404, f"{kind.upper()}_DOES_NOT_EXIST", f"{kind} '{name}' does not exist.")
