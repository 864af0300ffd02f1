"""The page over HTTP: made anew, for this machine, and for no other site's name."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rivermouth.errors import LogUnreadable, SetupError
from rivermouth.report import serving
from rivermouth.report.serving import PageServer

pytestmark = pytest.mark.unit


class Pages:
    """A page with a number that rises; it fails where it is told to."""

    def __init__(self) -> None:
        self.made, self.fails = 0, False

    def __call__(self) -> str:
        if self.fails:
            raise LogUnreadable("the store does not answer")
        self.made += 1
        return f"<p>{self.made}</p>"


@contextmanager
def served(pages: Pages) -> Iterator[PageServer]:
    with PageServer(0, pages) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(server: PageServer, path: str = "/", host: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_page_is_made_again_once_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Pages()) as server:
        assert [get(server), get(server)] == [(200, "<p>1</p>")] * 2
        monkeypatch.setattr(serving, "REFRESH_S", 0)
        assert get(server) == (200, "<p>2</p>")


def test_an_error_is_said_and_the_next_page_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REFRESH_S", 0)
    pages = Pages()
    with served(pages) as server:
        pages.fails = True
        status, text = get(server)
        assert (status, "does not answer" in text) == (503, True)
        pages.fails = False
        assert get(server) == (200, "<p>1</p>")


def test_nothing_else_is_answered_nor_under_another_name() -> None:
    with served(Pages()) as server:
        assert get(server, "/etc/passwd")[0] == 404
        assert get(server, host="evil.example")[0] == 403
        assert get(server, host=f"localhost:{server.server_port}")[0] == 200


def test_a_port_that_is_taken_is_one_line() -> None:
    with served(Pages()) as server, pytest.raises(SetupError, match=r"127\.0\.0\.1"):
        PageServer(server.server_port, Pages())
