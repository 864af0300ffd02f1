"""A store is tried before anything is committed there: one that is racy, or refuses, is named."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rivermouth.config.bucket import RENEWED
from rivermouth.errors.store import StoreRefused, StoreUnreachable
from rivermouth.local.s3 import LocalS3
from rivermouth.storage.client import Client
from rivermouth.storage.faults import StoreFault
from rivermouth.storage.lake import Lake
from rivermouth.storage.trial import tried
from tests.stores.lake import lake_in
from tests.stores.proxy import Fault, Trouble, between

pytestmark = pytest.mark.slow


class Racy(BaseHTTPRequestHandler):
    """It looks whether an object is there, and a moment later it writes."""

    protocol_version = "HTTP/1.1"
    there: set[str]

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written."""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        known = self.path in self.there
        time.sleep(0.02)
        self.there.add(self.path)
        self._say(412 if known else 200, b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._say(200, b"<DeleteResult/>")

    def do_GET(self) -> None:
        self._say(200, b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", '"1"')
        self.end_headers()
        self.wfile.write(body)


class NoStore(Racy):
    """It serves pages, and knows none of those names."""

    def _say(self, status: int, body: bytes) -> None:
        super()._say(404, b"<html>There is nothing here.</html>")


@contextmanager
def serving(kind: type[Racy]) -> Iterator[Lake]:
    """A lake at such a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Fresh", (kind,), {"there": set()}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {"endpoint": f"http://127.0.0.1:{server.server_port}", "skip_signature": "true"}
    try:
        yield Lake(Client("s3", "b", tuple(sorted(options.items()))), "wh", "s3://b/wh")
    finally:
        server.shutdown()
        server.server_close()


def changed(lake: Lake, **options: str) -> Lake:
    known = {**dict(lake.client.options), **options}
    return replace(lake, client=replace(lake.client, options=tuple(sorted(known.items()))))


def check_nothing_is_known(lake: Lake) -> None:
    """It is not said either that there is nothing."""
    with pytest.raises(StoreFault):
        lake.below().read("x")
    with pytest.raises(StoreFault):
        lake.below().names("log")


def test_a_store_that_keeps_the_promise_passes_and_nothing_is_left(
    rivermouth_store: LocalS3,
) -> None:
    lake = lake_in(rivermouth_store, "kept")
    tried(lake)
    assert [*lake.below().below(lambda name: True)] == []


def test_a_store_that_lets_several_win_is_refused() -> None:
    with (
        serving(Racy) as lake,
        pytest.raises(StoreRefused, match=r"RM211 .*several writers create one object"),
    ):
        tried(lake)


def test_what_is_no_store_is_refused() -> None:
    with serving(NoStore) as lake, pytest.raises(StoreRefused, match="404 Not Found") as caught:
        tried(lake)
    assert "\n" not in str(caught.value)


WRONG = {
    "s3": (
        ("secret_access_key", "another", "SignatureDoesNotMatch"),
        ("access_key_id", "another", "InvalidAccessKeyId|XAdminUserNotFound"),
    ),
    "az": (
        ("account_key", "YW5vdGhlcg==", "AuthorizationFailure"),
        ("account_key", "no base64!", "Invalid Access Key"),
        ("account_name", "another", "AuthorizationFailure"),
    ),
}


def test_a_store_that_refuses_says_so_in_one_line(rivermouth_store: LocalS3) -> None:
    lake = lake_in(rivermouth_store, "refused")
    for name, value, found in WRONG[lake.client.scheme]:
        wrong = changed(lake, **{name: value})
        with pytest.raises(StoreRefused, match=found) as caught:
            tried(wrong)
        check_nothing_is_known(wrong)
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 2
        assert "storage:" in caught.value.remedy


def test_options_that_name_no_store_are_refused_before_it_is_asked() -> None:
    with pytest.raises(StoreRefused, match="Account must be specified") as caught:
        tried(Lake(Client("az", "lake"), "x", "az://lake/x"))
    assert "\n" not in str(caught.value)


def test_keys_that_are_read_anew_open_the_store(rivermouth_store: LocalS3) -> None:
    lake = lake_in(rivermouth_store, "renewed")
    options = dict(lake.client.options)
    keys = {name: options.pop(name) for name in RENEWED if name in options}
    given = replace(lake.client, options=tuple(options.items()), renewed=lambda: keys)
    assert keys
    tried(replace(lake, client=given))


def test_a_bucket_that_is_not_there_is_named(rivermouth_store: LocalS3) -> None:
    lake = lake_in(rivermouth_store, "x")
    lake = replace(lake, client=replace(lake.client, container="none"))
    with pytest.raises(StoreRefused, match=r"NoSuchBucket|ContainerNotFound") as caught:
        tried(lake)
    assert "Create the " in caught.value.remedy
    check_nothing_is_known(lake)


def test_what_the_store_itself_answers_is_told_with_a_remedy(rivermouth_store: LocalS3) -> None:
    with between(rivermouth_store.port) as proxy:
        lake = lake_in(rivermouth_store, "y", proxy.endpoint)
        with (
            proxy.troubled(Trouble(strikes=(("PUT other", 0, Fault.EXPIRED.value),))),
            pytest.raises(StoreRefused, match="ExpiredToken"),
        ):
            tried(lake)
        for code, remedy in (("RequestTimeTooSkewed", "clock"), ("AccessDenied", "rights")):
            with (
                proxy.troubled(
                    Trouble(strikes=(("PUT other", 0, Fault.EXPIRED.value),), says=code)
                ),
                pytest.raises(StoreRefused, match=code) as caught,
            ):
                tried(lake)
            assert remedy in caught.value.remedy


def test_an_endpoint_that_does_not_answer_may_answer_later(rivermouth_store: LocalS3) -> None:
    with pytest.raises(StoreUnreachable, match="no connection") as caught:
        tried(changed(lake_in(rivermouth_store, "z"), endpoint="http://127.0.0.1:9"))
    assert caught.value.exit_code == 1
