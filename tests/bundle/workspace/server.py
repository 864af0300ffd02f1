"""HTTP on the loopback address: finds a request's route, writes all down, injects faults."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.bundle.workspace.faults import Faults, refusal
from tests.bundle.workspace.messages import Refused, Request, Resource, Response, invalid

HOST = "127.0.0.1"
ORGANISATION = "7474644325691"  # the workspace's number; every answer carries it

Handler = Callable[..., Resource | bytes | None]  # the request, then what the pattern caught


@dataclass(frozen=True)
class Route:
    """``{}`` in the pattern catches one segment of the path, ``{...}`` all that are left."""

    method: str
    pattern: str
    handler: Handler

    def catches(self, request: Request) -> tuple[str, ...] | None:
        """What the pattern's braces stand for in this request; None if it does not fit."""
        wanted = self.pattern.strip("/").split("/")
        found = list(request.segments)
        if request.method != self.method:
            return None
        caught: tuple[str, ...] = ()
        if wanted[-1] == "{...}":
            count = len(wanted) - 1
            if len(found) <= count:
                return None
            caught = ("/" + "/".join(found[count:]).lstrip("/"),)
            wanted, found = wanted[:-1], found[:count]
        if len(wanted) != len(found):
            return None
        pairs = list(zip(wanted, found, strict=True))
        if any(want not in ("{}", got) for want, got in pairs):
            return None
        return (*(got for want, got in pairs if want == "{}"), *caught)


@dataclass(frozen=True)
class Exchange:
    """One line of the log: what was asked, whether a route knew it, what was answered."""

    request: Request
    known: bool
    status: int

    def __str__(self) -> str:
        return f"{self.request} -> {self.status}{'' if self.known else ' (unknown route)'}"


class _Http(ThreadingHTTPServer):
    request_queue_size = 128  # a deploy opens many connections at once; one refused costs a second


class Server:
    """Answers one request at a time, from ``start`` to ``stop``, on a free port."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = tuple(routes)
        self._turn = threading.RLock()
        self.faults = Faults()
        self.log: list[Exchange] = []
        self._http = _Http((HOST, 0), _handler_for(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._http.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, request: Request) -> Response:
        with self._turn:
            known, response = self._routed(request)
            self.log.append(Exchange(request, known, response.status))
            return response

    def _routed(self, request: Request) -> tuple[bool, Response]:
        """Whether a route knows it, and the answer; never 5xx, which a client would try again."""
        fault = self.faults.of(request)
        if fault and not fault.done:
            return True, refusal(fault).response()
        for route in self._routes:
            caught = route.catches(request)
            if caught is not None:
                response = _answered(route, request, caught)
                return True, refusal(fault).response() if fault else response
        return False, Refused(404, "ENDPOINT_NOT_FOUND", f"No API found for {request}").response()


def _answered(route: Route, request: Request, caught: tuple[str, ...]) -> Response:
    try:
        return Response.of(route.handler(request, *caught))
    except Refused as refused:
        return refused.response()
    except KeyError as absent:  # a handler looks for what the request must hold
        return invalid(f"{absent} is missing").response()


def _handler_for(server: Server) -> type[BaseHTTPRequestHandler]:
    class Exchanges(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each answer's body waits 40 ms for its head's receipt

        def exchange(self) -> None:
            response = server.answer(Request.parse(self.command, self.path, self.body()))
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.send_header("X-Databricks-Org-Id", ORGANISATION)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            if self.command != "HEAD":
                with suppress(ConnectionError):  # a client that fails hangs up on the others
                    self.wfile.write(response.body)

        def body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        # CONNECT: who asks a proxy to reach another host finds no route, and is written down.
        do_CONNECT = do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = exchange

        def log_message(self, format: str, *args: Any) -> None:
            """The server's log is a list; nothing goes to standard error."""

    return Exchanges
