"""Checks that a workspace has what a configuration needs: login, objects, privileges.

A check never raises, as in ``operate.doctor``. Secrets are listed by name; no value is fetched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rivermouth.config import Catalog, Config, Pipeline, SecretName
from rivermouth.config.pipeline import check_platform
from rivermouth.config.platforms import CLASSIC, SERVERLESS, STANDARD, Platform, platform_of
from rivermouth.databricks.workspace import trouble, workspace_client
from rivermouth.errors import MissingPackage, SinkUnsupported
from rivermouth.operate.doctor import Check, check_file, refused

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient


_COMPUTE = {
    CLASSIC: "clusters in dedicated mode",
    STANDARD: "clusters in standard mode",
    SERVERLESS: "serverless compute",
}
_MODES = {
    "SINGLE_USER": CLASSIC,
    "DATA_SECURITY_MODE_DEDICATED": CLASSIC,
    "USER_ISOLATION": STANDARD,
    "DATA_SECURITY_MODE_STANDARD": STANDARD,
}
"""Platforms by the access mode of a cluster."""


def asked_platform(
    client: WorkspaceClient, cluster: str, environ: Mapping[str, str]
) -> Platform | None:
    """The platform of a cluster, or of this process; None where that cannot be told."""
    if cluster:
        with suppress(Exception):  # the check of the cluster itself tells of it
            mode = client.clusters.get(cluster).data_security_mode
            return _MODES.get(mode.value) if mode is not None else None
        return None
    serverless = environ.get("IS_SERVERLESS", "").lower() == "true"
    return platform_of(environ) if serverless or environ.get("RIVERMOUTH_PLATFORM") else None


def check_sends(config: Config, platform: Platform | None) -> Iterator[Check]:
    """Of each pipeline that sends: where it can run, or that it cannot run on ``platform``."""
    for each in config.pipelines.values():
        if each.shape.sends:
            yield _check(each, [*_COMPUTE] if platform is None else [platform])


def _check(pipeline: Pipeline, platforms: list[Platform]) -> Check:
    name, fits = f"pipeline {pipeline.name}", []
    error: SinkUnsupported | None = None
    for each in platforms:
        try:
            check_platform(pipeline, each)
            fits.append(_COMPUTE.get(each, each.name))
        except SinkUnsupported as unsupported:
            error = error or unsupported
    if error is not None and not fits:
        return refused(name, error)
    only = "only " if error is not None else ""
    return Check(name, True, f"{pipeline.delivery.value}, {only}on {', '.join(fits)}")


OLDEST_RUNTIME, OLDEST_SERVERLESS = (17, 3), (4, 0)
_WANTED = "Databricks Runtime 17.3"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "catalog": ("USE_CATALOG",),
    "schema": ("USE_SCHEMA", "SELECT", "MODIFY", "CREATE_TABLE"),
    "volume": ("READ_VOLUME", "WRITE_VOLUME"),
}
"""The privileges that a run needs on each kind of object."""


def check_workspace(
    file: Path,
    client: Callable[[], WorkspaceClient] = workspace_client,
    environ: Mapping[str, str] = os.environ,
    *,
    warehouse: str = "",
    cluster: str = "",
) -> Iterator[Check]:
    """Check the workspace and everything in it that ``file`` names.

    ``warehouse`` and ``cluster`` are ids of what to check besides. Without an id, one of that
    kind must exist; a process on a cluster checks its own runtime.
    """
    check, config = check_file(file)
    yield check
    if config is None:
        return
    check, workspace = _workspace(client)
    yield check
    if workspace is None:
        return
    if isinstance(config.warehouse, Catalog):
        yield from _securables(workspace, config, config.warehouse)
    else:
        fix = "Write warehouse: {catalog: …}: jobs, dashboard and alerts ask Unity Catalog"
        yield Check("warehouse", False, f"{config.warehouse} is no catalog", fix)
    yield from check_sends(config, asked_platform(workspace.client, cluster, environ))
    for scope, names in groupby(config.kafka.secret_names, lambda name: name.scope):
        yield workspace.scope(scope, names)
    yield workspace.warehouse(warehouse) if warehouse else workspace.warehouses()
    running = environ.get("DATABRICKS_RUNTIME_VERSION")
    if running:
        yield _runtime("runtime", running)
    if cluster:
        yield workspace.cluster(cluster)
    elif not running:
        yield workspace.runtimes()


def _workspace(client: Callable[[], WorkspaceClient]) -> tuple[Check, _Workspace | None]:
    name = "workspace"
    try:
        reached = client()
        me = reached.current_user.me()
    except MissingPackage as missing:
        return refused(name, missing), None
    except Exception as fault:  # each way to log in has its own errors
        return Check(name, False, *trouble(fault)), None
    user = me.user_name or ""
    groups = {each.display for each in me.groups or () if each.display}
    found = Check(name, True, f"{reached.config.host} as {user}")
    return found, _Workspace(reached, user, frozenset({user, *groups, "account users"}))


def _securables(workspace: _Workspace, config: Config, names: Catalog) -> Iterator[Check]:
    catalog, get = names.catalog, workspace.client
    yield workspace.securable("catalog", catalog, lambda: get.catalogs.get(catalog).owner)
    tables = (each.target.table.schema for each in config.pipelines.values())
    for schema in dict.fromkeys([names.schema, *tables]):
        full = f"{catalog}.{schema}"
        yield workspace.securable("schema", full, partial(_schema_owner, get, full))
    full = f"{catalog}.{names.schema}.{names.volume}"
    yield workspace.securable("volume", full, lambda: get.volumes.read(full).owner)


def _schema_owner(client: WorkspaceClient, full: str) -> str | None:
    return client.schemas.get(full).owner


@dataclass(frozen=True)
class _Workspace:
    """A workspace that answers. ``principals``: the user, and all groups the user belongs to."""

    client: WorkspaceClient
    user: str
    principals: frozenset[str]

    def securable(self, kind: str, full: str, owner: Callable[[], str | None]) -> Check:
        """Whether it exists, and the user has the privileges of a run on it."""
        words = kind.upper()

        def look() -> Check:
            owned = owner() in self.principals
            held = {"ALL_PRIVILEGES"} if owned else self._privileges(kind, full)
            needed = NEEDED[kind]
            lacking = [] if "ALL_PRIVILEGES" in held else [x for x in needed if x not in held]
            if lacking:
                grant = f"GRANT {_listed(lacking)} ON {words} {_quoted(full)} TO `{self.user}`"
                return Check(name, False, f"lacks {_listed(lacking)}", f"In SQL: {grant}")
            return Check(name, True, "owned" if owned else _listed(needed))

        name = f"{kind} {full}"
        deploy = "" if kind == "catalog" else ", deploy the bundle"
        create = f"Correct the name{deploy}, or: CREATE {words} {_quoted(full)}"
        return self._looked(name, look, (f"there is no such {kind}, or it is hidden", create))

    def _privileges(self, kind: str, full: str) -> set[str]:
        held: set[str] = set()
        token: str | None = None
        while True:  # an empty page may not be the last one
            page = self.client.grants.get_effective(kind, full, max_results=0, page_token=token)
            for each in page.privilege_assignments or ():
                if each.principal in self.principals:
                    held |= {it.privilege.value for it in each.privileges or () if it.privilege}
            token = page.next_page_token
            if not token:
                return held

    def scope(self, scope: str, names: Iterable[SecretName]) -> Check:
        """Whether the scope has the keys. To list them needs READ, as to read them does."""
        wanted = [name.key for name in names]

        def look() -> Check:
            found = {each.key for each in self.client.secrets.list_secrets(scope)}
            missing = [key for key in wanted if key not in found]
            if missing:
                fix = f"databricks secrets put-secret {scope} {missing[0]}"
                return Check(name, False, f"has no key {', '.join(missing)}", fix)
            return Check(name, True, f"{', '.join(wanted)}: there, not read")

        name = f"secrets {scope}"
        create = f"Correct the name, or: databricks secrets create-scope {scope}"
        allow = f"databricks secrets put-acl {scope} {self.user} READ"
        return self._looked(name, look, ("there is no such scope", create), allow)

    def warehouses(self) -> Check:
        """Whether the user can see a SQL warehouse."""

        def look() -> Check:
            names = sorted(each.name or "" for each in self.client.warehouses.list())
            none = "Ask for CAN USE on one"
            return Check("SQL warehouse", bool(names), ", ".join(names) or "none is visible", none)

        return self._looked("SQL warehouse", look, ("none is visible", "Create one"))

    def runtimes(self) -> Check:
        """Whether a new cluster can have a supported runtime."""
        fix = f"Use {_WANTED} or later"

        def look() -> Check:
            offered = self.client.clusters.spark_versions().versions or ()
            fit = [each.key for each in offered if each.key and _runtime("", each.key).ok]
            found = f"{len(fit)} to choose from" if fit else "none of the offered ones is supported"
            return Check("runtime", bool(fit), found, fix)

        return self._looked("runtime", look, ("none is offered", fix))

    def warehouse(self, key: str) -> Check:
        def look() -> Check:
            found = self.client.warehouses.get(key)
            state = found.state.value if found.state else "state unknown"
            return Check("SQL warehouse", True, f"{found.name}: {state}")

        absent = (f"there is no SQL warehouse {key}", "Look it up: databricks warehouses list")
        return self._looked("SQL warehouse", look, absent, "Ask for CAN USE on it")

    def cluster(self, key: str) -> Check:
        def look() -> Check:
            return _runtime("cluster", self.client.clusters.get(key).spark_version or "")

        absent = (f"there is no cluster {key}", "Look it up: databricks clusters list")
        return self._looked("cluster", look, absent, "Ask for CAN ATTACH TO on it")

    def _looked(
        self, name: str, look: Callable[[], Check], absent: tuple[str, str], allow: str = ""
    ) -> Check:
        from databricks.sdk.errors import InvalidParameterValue, NotFound, PermissionDenied

        try:
            return look()
        except (NotFound, InvalidParameterValue):
            return Check(name, False, *absent)
        except PermissionDenied:
            fix = allow or "Ask its owner for the right to see it"
            return Check(name, False, f"{self.user} may not see it", fix)
        except (OSError, ValueError) as fault:
            return Check(name, False, *trouble(fault))


def _runtime(name: str, version: str) -> Check:
    """``18.x-scala2.13``, ``17.3``, or ``client.5.1`` on serverless."""
    serverless = version.startswith("client.")
    oldest = OLDEST_SERVERLESS if serverless else OLDEST_RUNTIME
    numbers = re.match(r"(?:client\.)?(\d+)\.(\d+|x)", version)
    found = (int(numbers[1]), int(numbers[2].replace("x", "0"))) if numbers else (0, 0)
    wanted = "serverless environment 4" if serverless else _WANTED
    return Check(name, found >= oldest, version or "version unknown", f"Use {wanted} or later")


def _listed(privileges: Iterable[str]) -> str:
    return ", ".join(each.replace("_", " ") for each in privileges)


def _quoted(full: str) -> str:
    return ".".join(f"`{part}`" for part in full.split("."))
