"""Secret scopes, who may read them, and the secrets themselves."""

from __future__ import annotations

import base64

from tests.bundle.workspace.identity import USER
from tests.bundle.workspace.messages import Refused, Request, Resource, exists
from tests.bundle.workspace.shelf import Shelf


class Secrets:
    """``/api/2.0/secrets``. A scope holds its ACLs and its secrets; its maker may manage it."""

    def __init__(self) -> None:
        self.scopes = Shelf("Scope")

    def create_scope(self, request: Request) -> None:
        body = request.json()
        if body["scope"] in self.scopes:
            raise exists(f"Scope {body['scope']}")
        backend = body.get("scope_backend_type") or body.get("backend_type") or "DATABRICKS"
        manager = body.get("initial_manage_principal") or USER
        scope = {"backend_type": backend, "acls": {manager: "MANAGE"}, "secrets": {}}
        self.scopes.put(body["scope"], {"name": body["scope"], **scope})

    def list_scopes(self, request: Request) -> Resource:
        shown = ("name", "backend_type")
        return {"scopes": [{name: scope[name] for name in shown} for scope in self.scopes.all()]}

    def delete_scope(self, request: Request) -> None:
        self.scopes.remove(request.json()["scope"])

    def list_acls(self, request: Request) -> Resource:
        acls = self.scopes.get(request.query["scope"])["acls"]
        return {"items": [{"principal": who, "permission": what} for who, what in acls.items()]}

    def put_acl(self, request: Request) -> None:
        body = request.json()
        scope = self.scopes.get(body["scope"])
        scope["acls"][body["principal"]] = body["permission"]
        self.scopes.put(body["scope"], scope)

    def put_secret(self, request: Request) -> None:
        body = request.json()
        scope = self.scopes.get(body["scope"])
        plain = body.get("string_value")
        value = base64.b64encode(plain.encode()).decode() if plain else body["bytes_value"]
        scope["secrets"][body["key"]] = value
        self.scopes.put(body["scope"], scope)

    def get_secret(self, request: Request) -> Resource:
        """The value comes in base64, as from the real service."""
        scope, key = request.query["scope"], request.query["key"]
        secrets = self.scopes.get(scope)["secrets"]
        if key not in secrets:
            message = f"Secret does not exist with scope: {scope} and key: {key}"
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", message)
        return {"key": key, "value": secrets[key]}

    def list_secrets(self, request: Request) -> Resource:
        return {
            "secrets": [{"key": key} for key in self.scopes.get(request.query["scope"])["secrets"]]
        }
