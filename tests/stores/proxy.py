"""What comes between an object store and its clients: requests are counted, delayed, lost or cut.

A request is forwarded as it came, for its signature covers the host that the client has named. So a
fault is one of the network, or an answer that the store may give.

The proxy is a process of its own (``python -m tests.stores.proxy STORE_PORT``): some clients hold
the lock of their interpreter while they wait. It is told what to do by lines of JSON.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.processes import ROOT


class Fault(Enum):
    """What becomes of one request."""

    NONE = "none"
    LOST = "lost"
    """It never arrives."""
    UNANSWERED = "unanswered"
    """It is carried out, and the answer is lost."""
    LATE = "late"
    """The client loses the connection at once; the request arrives seconds later."""
    BUSY = "busy"
    """503, and nothing is done."""
    BUSY_AFTER = "busy after"
    """It is carried out, and the answer is 503."""
    MANY = "many"
    """429, and nothing is done."""
    CONFLICT = "conflict"
    """409 to a conditional put, and nothing is done."""
    CUT = "cut"
    """The answer ends amid its bytes."""
    SLOW = "slow"
    """It takes two more seconds."""
    EXPIRED = "expired"
    """The credentials have expired."""


@dataclass(frozen=True)
class Request:
    """A request: its method, and its path below the bucket. ``once``: if there is no such object.

    ``size`` is that of its body.
    """

    method: str
    path: str
    once: bool
    size: int

    @property
    def kind(self) -> str:
        """``commit``, ``log``, ``list``, ``data``, or another word for what it is about."""
        if self.method == "GET" and "list-type=2" in self.path:
            return "list of log" if "_delta_log" in self.path else "list"
        name = self.path.partition("?")[0].rpartition("/")[2]
        offsets = "offsets " if "/rivermouth/offsets/" in self.path else ""
        if "_delta_log/" in self.path:
            what = "commit" if re.fullmatch(r"\d{20}\.json", name) else "checkpoint"
        elif name.endswith(".parquet"):
            what = "data"
        else:
            what = "vector" if name.endswith(".bin") else "other"
        return f"{self.method} {offsets}{what}"


LATE_S = 2.0
ANY = (
    Fault.LOST,
    Fault.UNANSWERED,
    Fault.LATE,
    Fault.BUSY,
    Fault.BUSY_AFTER,
    Fault.MANY,
    Fault.CONFLICT,
    Fault.CUT,
    Fault.SLOW,
)
"""What a client has to live with."""


@dataclass(frozen=True)
class Trouble:
    """What happens to requests.

    Each takes ``delay_s`` longer. By dice of ``seed``, the part ``rate`` of them meets a fault of
    ``ANY``, and the part ``commits`` of those that create what is not there. ``strikes``: the fault
    of the nth request of a kind from now on, as ``("PUT commit", 1, "unanswered")``; 0: of all.
    ``held``: what is late waits until something else is to happen; else, as what is slow, for two
    seconds.
    """

    delay_s: float = 0.0
    seed: str = ""
    rate: float = 0.0
    commits: float = 0.0
    strikes: tuple[tuple[str, int, str], ...] = ()
    held: bool = False
    says: str = "ExpiredToken"
    """What the store says to what has ``EXPIRED``."""


@dataclass
class Deciding:
    """Which fault each request meets."""

    trouble: Trouble = Trouble()
    dice: random.Random = field(default_factory=random.Random)
    seen: Counter[str] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)

    def fault(self, request: Request) -> Fault:
        """That of one more request."""
        self.seen[request.kind] += 1
        for kind, nth, fault in self.trouble.strikes:
            if kind == request.kind and nth in (0, self.seen[kind]):
                return Fault(fault)
        trial = "/rivermouth/trial/" in request.path
        rate = self.trouble.commits if request.once and not trial else self.trouble.rate
        if self.dice.random() >= rate:
            return Fault.NONE
        fault_ = self.dice.choice(ANY)
        return Fault.NONE if fault_ is Fault.CONFLICT and not request.once else fault_


@dataclass(frozen=True)
class Counts:
    """How many requests of each kind there were, and how many met each fault."""

    kinds: Counter[str]
    faults: Counter[str]

    def __sub__(self, other: Counts) -> Counts:
        return Counts(self.kinds - other.kinds, self.faults - other.faults)


class Proxy:
    """A running one, from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._told()["port"])

    @property
    def endpoint(self) -> str:
        """``storage.endpoint`` of a configuration."""
        return f"http://127.0.0.1:{self.port}"

    def set(self, trouble: Trouble = Trouble()) -> Counts:
        """Let this happen from now on; what has happened so far."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(asdict(trouble)) + "\n")
        self._process.stdin.flush()
        told = self._told()
        return Counts(Counter(told["kinds"]), Counter(told["faults"]))

    @contextmanager
    def troubled(self, trouble: Trouble) -> Iterator[None]:
        """Let this happen within the block."""
        self.set(trouble)
        try:
            yield
        finally:
            self.set()

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout
        return dict(json.loads(self._process.stdout.readline()))


@contextmanager
def between(store: int) -> Iterator[Proxy]:
    """A proxy before the store at that port of this machine, on a free port."""
    command = [sys.executable, "-m", "tests.stores.proxy", str(store)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield Proxy(process)
    finally:
        process.kill()
        process.communicate()


class _Server(ThreadingHTTPServer):
    store: int
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, store: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store, self.deciding, self.lock = store, Deciding(), threading.Lock()
        self.kinds, self.faults = Counter[str](), Counter[str]()

    def fault(self, request: Request) -> tuple[Fault, float]:
        """What a request meets, and how much longer it takes."""
        with self.lock:
            fault = self.deciding.fault(request)
            self.kinds[request.kind] += 1
            self.faults[fault.value] += fault is not Fault.NONE
            return fault, self.deciding.trouble.delay_s

    def set(self, said: dict[str, Any]) -> dict[str, Any]:
        """See ``Proxy.set``."""
        said["strikes"] = tuple(map(tuple, said["strikes"]))
        trouble = Trouble(**said)
        with self.lock:
            if self.deciding.trouble.held:
                self.deciding.over.set()
            self.deciding = Deciding(trouble, random.Random(trouble.seed))
            return {"kinds": dict(self.kinds), "faults": dict(self.faults)}

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is none of ours to tell of."""


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


_SAID = {
    Fault.BUSY: (503, "SlowDown"),
    Fault.BUSY_AFTER: (503, "InternalError"),
    Fault.MANY: (429, "TooManyRequests"),
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
    Fault.EXPIRED: (403, ""),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written."""

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        below = self.path.lstrip("/").partition("/")[2] or self.path
        request = Request(
            self.command, "/" + below, self.headers.get("if-none-match") == "*", len(body)
        )
        fault, delay_s = self.server.fault(request)
        if delay_s:
            time.sleep(delay_s)
        self._answer(fault, body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle

    def _answer(self, fault: Fault, body: bytes) -> None:
        if fault is Fault.LOST:
            self._hang_up()
            return
        if fault is Fault.LATE:
            deciding = self.server.deciding
            self._hang_up()
            deciding.over.wait(None if deciding.trouble.held else LATE_S)
            with suppress(OSError, http.client.HTTPException):
                self._forwarded(body)
            return
        if fault is Fault.SLOW:
            time.sleep(LATE_S)
        if fault in (Fault.BUSY, Fault.MANY, Fault.CONFLICT, Fault.EXPIRED):
            status, code = _SAID[fault]
            self._say(status, code or self.server.deciding.trouble.says)
            return
        try:
            answer = self._forwarded(body)
        except (OSError, http.client.HTTPException):
            self._hang_up()
            return
        if fault is Fault.UNANSWERED:
            self._hang_up()
        elif fault is Fault.BUSY_AFTER:
            self._say(*_SAID[fault])
        else:
            self._send(answer, cut=fault is Fault.CUT)

    def _forwarded(self, body: bytes) -> _Answer:
        store = http.client.HTTPConnection("127.0.0.1", self.server.store, timeout=120)
        try:
            store.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                store.putheader(name, value)
            store.endheaders(body if body else None)
            found = store.getresponse()
            content = found.read()
            hop = ("transfer-encoding", "connection", "content-length", "keep-alive")
            headers = [each for each in found.getheaders() if each[0].lower() not in hop]
            length = found.getheader("content-length") if self.command == "HEAD" else None
            headers.append(("content-length", length or str(len(content))))
            return _Answer(found.status, headers, content)
        finally:
            store.close()

    def _send(self, answer: _Answer, *, cut: bool) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(answer.body[: len(answer.body) // 2] if cut else answer.body)
        if cut:
            self._hang_up()

    def _say(self, status: int, code: str) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
        headers = [("content-type", "application/xml"), ("content-length", str(len(text)))]
        self._send(_Answer(status, headers, text.encode()), cut=False)

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)


def main(store: str) -> None:
    """Work until standard input ends."""
    server = _Server(int(store))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    for line in sys.stdin:
        print(json.dumps(server.set(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
