"""Every route that the workspace knows, and which room answers it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.bundle.workspace.catalog import Catalog
from tests.bundle.workspace.clusters import Clusters
from tests.bundle.workspace.dashboards import Dashboards
from tests.bundle.workspace.effective import Effective
from tests.bundle.workspace.files import WorkspaceFiles
from tests.bundle.workspace.identity import Identity
from tests.bundle.workspace.jobs import Jobs
from tests.bundle.workspace.permissions import Permissions
from tests.bundle.workspace.queries import Alerts, Warehouses
from tests.bundle.workspace.runs import Runs
from tests.bundle.workspace.secrets import Secrets
from tests.bundle.workspace.server import Route


@dataclass(frozen=True)
class Rooms:
    alerts: Alerts
    catalog: Catalog
    dashboards: Dashboards
    files: WorkspaceFiles
    identity: Identity
    jobs: Jobs
    permissions: Permissions
    runs: Runs
    secrets: Secrets
    warehouses: Warehouses
    clusters: Clusters = field(default_factory=Clusters)


def routes(rooms: Rooms) -> tuple[Route, ...]:
    return (
        *_of_itself(rooms.identity, rooms.permissions),
        *_of_files(rooms.files),
        *_of_jobs(rooms.jobs, rooms.runs),
        *_of_the_catalog(rooms.catalog, Effective(rooms.catalog)),
        *_of_secrets(rooms.secrets),
        *_of_queries(rooms.dashboards, rooms.alerts, rooms.warehouses),
        Route("GET", "/api/2.1/clusters/get", rooms.clusters.get),
        Route("GET", "/api/2.1/clusters/spark-versions", rooms.clusters.versions),
    )


def _of_itself(identity: Identity, permissions: Permissions) -> tuple[Route, ...]:
    return (
        Route("GET", "/.well-known/databricks-config", identity.config),
        Route("GET", "/api/2.0/preview/scim/v2/Me", identity.me),
        Route("GET", "/api/2.0/preview/scim/v2/ServicePrincipals", identity.service_principals),
        Route("GET", "/api/2.0/permissions/{}/{}", permissions.get),
        Route("PUT", "/api/2.0/permissions/{}/{}", permissions.set),
    )


def _of_files(files: WorkspaceFiles) -> tuple[Route, ...]:
    return (
        Route("GET", "/api/2.0/workspace/get-status", files.get_status),
        Route("GET", "/api/2.0/workspace/export", files.export),
        Route("POST", "/api/2.0/workspace/mkdirs", files.mkdirs),
        Route("POST", "/api/2.0/workspace/delete", files.delete),
        Route("POST", "/api/2.0/workspace-files/import-file/{...}", files.import_file),
        Route("GET", "/api/2.0/workspace-files/{...}", files.read_file),
    )


def _of_jobs(jobs: Jobs, runs: Runs) -> tuple[Route, ...]:
    return (
        Route("POST", "/api/2.2/jobs/create", jobs.create),
        Route("GET", "/api/2.2/jobs/get", jobs.get),
        Route("POST", "/api/2.2/jobs/delete", jobs.delete),
        Route("POST", "/api/2.2/jobs/run-now", runs.run_now),
        Route("GET", "/api/2.2/jobs/runs/get", runs.get),
        Route("GET", "/api/2.2/jobs/runs/list", runs.list_runs),
        Route("GET", "/api/2.2/jobs/runs/get-output", runs.get_output),
        Route("POST", "/api/2.2/jobs/runs/cancel", runs.cancel),
        Route("POST", "/api/2.2/jobs/runs/cancel-all", runs.cancel_all),
    )


def _of_the_catalog(catalog: Catalog, effective: Effective) -> tuple[Route, ...]:
    return (
        Route("GET", "/api/2.1/unity-catalog/catalogs/{}", catalog.get_catalog),
        Route("POST", "/api/2.1/unity-catalog/schemas", catalog.create_schema),
        Route("GET", "/api/2.1/unity-catalog/schemas/{}", catalog.get_schema),
        Route("DELETE", "/api/2.1/unity-catalog/schemas/{}", catalog.delete_schema),
        Route("POST", "/api/2.1/unity-catalog/volumes", catalog.create_volume),
        Route("GET", "/api/2.1/unity-catalog/volumes/{}", catalog.get_volume),
        Route("DELETE", "/api/2.1/unity-catalog/volumes/{}", catalog.delete_volume),
        Route("GET", "/api/2.1/unity-catalog/permissions/{}/{}", catalog.get_grants),
        Route("PATCH", "/api/2.1/unity-catalog/permissions/{}/{}", catalog.change_grants),
        Route("GET", "/api/2.1/unity-catalog/effective-permissions/{}/{}", effective.get),
    )


def _of_secrets(secrets: Secrets) -> tuple[Route, ...]:
    return (
        Route("POST", "/api/2.0/secrets/scopes/create", secrets.create_scope),
        Route("GET", "/api/2.0/secrets/scopes/list", secrets.list_scopes),
        Route("POST", "/api/2.0/secrets/scopes/delete", secrets.delete_scope),
        Route("GET", "/api/2.0/secrets/acls/list", secrets.list_acls),
        Route("POST", "/api/2.0/secrets/acls/put", secrets.put_acl),
        Route("POST", "/api/2.0/secrets/put", secrets.put_secret),
        Route("GET", "/api/2.0/secrets/get", secrets.get_secret),
        Route("GET", "/api/2.0/secrets/list", secrets.list_secrets),
    )


def _of_queries(
    dashboards: Dashboards, alerts: Alerts, warehouses: Warehouses
) -> tuple[Route, ...]:
    return (
        Route("GET", "/api/2.0/sql/warehouses", warehouses.list),
        Route("GET", "/api/2.0/sql/warehouses/{}", warehouses.get),
        Route("POST", "/api/2.0/lakeview/dashboards", dashboards.create),
        Route("GET", "/api/2.0/lakeview/dashboards/{}", dashboards.get),
        Route("DELETE", "/api/2.0/lakeview/dashboards/{}", dashboards.trash),
        Route("POST", "/api/2.0/lakeview/dashboards/{}/published", dashboards.publish),
        Route("GET", "/api/2.0/lakeview/dashboards/{}/published", dashboards.get_published),
        Route("POST", "/api/2.0/alerts", alerts.create),
        Route("GET", "/api/2.0/alerts/{}", alerts.get),
        Route("DELETE", "/api/2.0/alerts/{}", alerts.trash),
    )
