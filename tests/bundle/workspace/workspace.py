"""The workspace: its rooms, its server, and what a test may look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from types import TracebackType

from tests.bundle.workspace.catalog import Catalog
from tests.bundle.workspace.dashboards import Dashboards
from tests.bundle.workspace.executor import Executor, Means, refuses
from tests.bundle.workspace.files import Tree, WorkspaceFiles
from tests.bundle.workspace.identity import Identity
from tests.bundle.workspace.jobs import Jobs
from tests.bundle.workspace.messages import Resource
from tests.bundle.workspace.permissions import Permissions
from tests.bundle.workspace.queries import Alerts, Warehouses
from tests.bundle.workspace.routes import Rooms, routes
from tests.bundle.workspace.runs import Runs
from tests.bundle.workspace.secrets import Secrets
from tests.bundle.workspace.server import Exchange, Server


class Workspace:
    """``with Workspace() as workspace:`` is up at ``workspace.url`` until the end of the block."""

    def __init__(self, executor: Executor = refuses) -> None:
        self.tree = Tree()
        alerts, dashboards, jobs = Alerts(), Dashboards(self.tree), Jobs()
        catalog = Catalog()
        permitted: dict[str, Callable[[], Iterable[str]]] = {
            "alertsv2": lambda: alerts.shelf,
            "dashboards": lambda: dashboards.drafts,
            "directories": lambda: map(str, self.tree.ids.values()),
            "jobs": lambda: jobs.shelf,
        }
        means = Means(
            executor=executor,
            read_file=self.tree.read,
            paths=self.tree.files,
            schemas=lambda: list(catalog.schemas),
            host=lambda: self.url,
        )
        self.rooms = Rooms(
            alerts=alerts,
            catalog=catalog,
            dashboards=dashboards,
            files=WorkspaceFiles(self.tree),
            identity=Identity(lambda: self.url),
            jobs=jobs,
            permissions=Permissions(permitted),
            runs=Runs(jobs, means),
            secrets=Secrets(),
            warehouses=Warehouses(),
        )
        self.server = Server(routes(self.rooms))

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def log(self) -> list[Exchange]:
        """Everything that was asked, in its order."""
        return self.server.log

    @property
    def unknown(self) -> list[Exchange]:
        """What was asked that no route knows: a test's last line asserts that it is empty."""
        return [exchange for exchange in self.log if not exchange.known]

    def stored(self) -> dict[str, list[str]]:
        """The keys of all that was made here, by kind; a kind with nothing is left out."""
        rooms = self.rooms
        shelves = {
            "alerts": rooms.alerts.shelf,
            "dashboards": rooms.dashboards.drafts,
            "jobs": rooms.jobs.shelf,
            "schemas": rooms.catalog.schemas,
            "scopes": rooms.secrets.scopes,
            "volumes": rooms.catalog.volumes,
        }
        return {kind: list(shelf) for kind, shelf in shelves.items() if list(shelf)}

    def counts(self) -> Counter[str]:
        """How much of each kind was made here."""
        return Counter({kind: len(keys) for kind, keys in self.stored().items()})

    def job(self, name: str) -> Resource:
        """The one job with that name, whatever a target puts before it."""
        jobs = self.rooms.jobs.shelf.all()
        [found] = (each for each in jobs if each["settings"]["name"].split()[-1] == name)
        return found

    def changes(self, since: int = 0) -> list[str]:
        """The requests that may change something, from a place in the log on, but for files."""
        return [
            str(exchange.request)
            for exchange in self.log[since:]
            if exchange.request.method not in ("GET", "HEAD")
            and not exchange.request.path.startswith("/api/2.0/workspace")
        ]

    def __enter__(self) -> Workspace:
        self.server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.rooms.runs.stop()
        self.server.stop()
