"""What everybody may do with a thing of the catalog, counting what its parents grant."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bundle.workspace.catalog import Catalog
from tests.bundle.workspace.messages import Request, Resource

KINDS = ("catalog", "schema", "volume")


class Effective:
    """``/api/2.1/unity-catalog/effective-permissions``, in pages of one principal each."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def get(self, request: Request, kind: str, full: str) -> Resource:
        """The first page is empty, as the real service allows itself."""
        look = {"catalog": self._catalog.get_catalog, "schema": self._catalog.get_schema}
        look.get(kind, self._catalog.get_volume)(request, full)
        held: dict[str, list[Resource]] = {}
        for each, name in _upwards(kind, full):
            for principal, privileges in self._catalog.grants.get((each, name), {}).items():
                origin = {"inherited_from_type": each.upper(), "inherited_from_name": name}
                told = origin if name != full else {}
                mine = held.setdefault(principal, [])
                mine += [{"privilege": privilege, **told} for privilege in sorted(privileges)]
        pages = [{}, *({"principal": who, "privileges": what} for who, what in held.items())]
        number = int(request.query.get("page_token") or 0)
        page: Resource = {"privilege_assignments": [pages[number]] if pages[number] else []}
        return {**page, "next_page_token": str(number + 1)} if pages[number + 1 :] else page


def _upwards(kind: str, full: str) -> Iterator[tuple[str, str]]:
    parts = full.split(".")
    for count in range(KINDS.index(kind) + 1, 0, -1):
        yield KINDS[count - 1], ".".join(parts[:count])
