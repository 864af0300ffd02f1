"""The page over HTTP, to this machine alone: made anew where somebody asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from rivermouth.errors import RivermouthError, SetupError

REFRESH_S = 5
"""A page is as old as that at most, and a browser asks for it as often."""


class PageServer(ThreadingHTTPServer):
    """Serves what ``make`` gives on a port of the loopback address; 0: a free one.

    Raises SetupError where the port cannot be had.
    """

    daemon_threads = True

    def __init__(self, port: int, make: Callable[[], str]) -> None:
        self._make, self._lock = make, Lock()
        self._page, self._made_s = b"", float("-inf")
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as fault:
            raise SetupError(
                "the report cannot be served there",
                where=f"127.0.0.1:{port}",
                found=fault.strerror or str(fault),
                remedy="Choose another port, or leave it out",
            ) from fault

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/"

    def page(self) -> bytes:
        """The page, for as many as ask. Raises RivermouthError."""
        with self._lock:
            if time.monotonic() - self._made_s >= REFRESH_S:
                self._page, self._made_s = self._make().encode(), time.monotonic()
            return self._page


class _Handler(BaseHTTPRequestHandler):
    """Answers GET of the page, and of nothing else."""

    server: PageServer

    def do_GET(self) -> None:
        """The page; nothing under the name of another site, which may lead here, too."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._answer()

    def _answer(self) -> None:
        status, kind = HTTPStatus.OK, "text/html"
        try:
            content = self.server.page()
        except RivermouthError as error:
            status, kind, content = (
                HTTPStatus.SERVICE_UNAVAILABLE,
                "text/plain",
                str(error).encode(),
            )
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is said of an answer."""
