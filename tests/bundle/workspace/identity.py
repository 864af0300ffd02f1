"""Who asks, whom the workspace knows, and what it tells about itself."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.bundle.workspace.messages import Request, Resource
from tests.bundle.workspace.server import ORGANISATION

USER = "deployer@example.com"
RUNNER: Resource = {
    "id": "4713",
    "applicationId": "0c8b7a64-92d1-4e0f-b5a3-7f4e2d1c6a90",
    "displayName": "rivermouth",
    "active": True,
}


class Identity:
    """One user, whose token is whatever token is sent, and one principal."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url

    def config(self, request: Request) -> Resource:
        return {"oidc_endpoint": f"{self._url()}/oidc", "workspace_id": ORGANISATION}

    def me(self, request: Request) -> Resource:
        groups = [{"display": "rivermouth-operators", "value": "4720"}]
        known = {"id": "4711", "userName": USER, "displayName": "Deployer", "active": True}
        return {**known, "groups": groups}

    def service_principals(self, request: Request) -> Resource:
        """Filtered by ``displayName eq '…'``, the only filter that is asked for."""
        wanted = re.fullmatch("displayName eq '(.*)'", request.query.get("filter", ""))
        known = (RUNNER,) if request.query.get("startIndex", "1") == "1" else ()
        found = [each for each in known if wanted is None or wanted[1] == each["displayName"]]
        return {"totalResults": len(found), "itemsPerPage": len(found), "Resources": found}
