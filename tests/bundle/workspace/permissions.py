"""Permissions of jobs, dashboards, alerts and folders: one list each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.bundle.workspace.messages import Request, Resource, missing

PRINCIPALS = ("user_name", "group_name", "service_principal_name")


class Permissions:
    """``/api/2.0/permissions``, by the kind and id that stand in the path.

    ``keys_of`` tells which things there are: nothing else has permissions, and what is gone
    has none left.
    """

    def __init__(self, keys_of: Mapping[str, Callable[[], Iterable[str]]]) -> None:
        self._keys_of = keys_of
        self.lists: dict[tuple[str, str], list[Resource]] = {}

    def get(self, request: Request, kind: str, key: str) -> Resource:
        if kind not in self._keys_of or key not in self._keys_of[kind]():
            raise missing(f"{kind}/{key}")
        return {
            "object_id": f"/{kind}/{key}",
            "object_type": kind.rstrip("s"),
            "access_control_list": [_shown(entry) for entry in self.lists.get((kind, key), ())],
        }

    def set(self, request: Request, kind: str, key: str) -> Resource:
        self.get(request, kind, key)
        self.lists[kind, key] = request.json().get("access_control_list", [])
        return self.get(request, kind, key)


def _shown(entry: Resource) -> Resource:
    """As it is answered: the level inside a list, since levels may also be inherited."""
    principal = {name: entry[name] for name in PRINCIPALS if name in entry}
    level = {"permission_level": entry["permission_level"], "inherited": False}
    return {**principal, "all_permissions": [level]}
