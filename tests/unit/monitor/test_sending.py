"""Alerts by real servers: JSON over HTTP, and SMTP."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from rivermouth.config.alerts import Alerts, Email
from rivermouth.config.secret import Secret, unresolved
from rivermouth.local.server import HOST, free_port
from rivermouth.monitor.alerting import Alert, Event
from rivermouth.monitor.sending import ways_of

pytestmark = pytest.mark.unit

ALERT = Alert("a1b2", "orders", "blocked", Event.RAISED, 5, "orders: blocked: RM404 ü", ("slack",))
COMMAND = "rivermouth status lake.yml"
Posted = tuple[dict[str, str], dict[str, Any]]


@pytest.fixture
def posts() -> Iterator[tuple[str, list[Posted]]]:
    """A server on loopback: its address, and the headers and bodies that it got."""
    found = list[Posted]()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.append((dict(self.headers), json.loads(body)))
            self.send_response(500 if self.path == "/broken" else 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = http.server.ThreadingHTTPServer((HOST, 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://{HOST}:{server.server_address[1]}", found
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_gets_all_facts_and_slack_a_text(posts: tuple[str, list[Posted]]) -> None:
    address, found = posts
    alerts = Alerts(webhook=Secret(f"{address}/hook"), slack=Secret(f"{address}/slack"))
    for send in ways_of(alerts, unresolved, COMMAND).values():
        send(ALERT)
    (headers, facts), (_, slack) = found
    assert headers["Idempotency-Key"] == "a1b2-raised"
    assert facts == {
        "id": "a1b2",
        "pipeline": "orders",
        "condition": "blocked",
        "event": "raised",
        "at_ms": 5,
        "text": "orders: blocked: RM404 ü",
        "command": COMMAND,
    }
    assert slack == {"text": f"orders: blocked: RM404 ü\n`{COMMAND}`"}


def test_a_server_that_refuses_is_a_fault(posts: tuple[str, list[Posted]]) -> None:
    ways = ways_of(Alerts(webhook=Secret(f"{posts[0]}/broken")), unresolved, COMMAND)
    with pytest.raises(OSError, match="500"):
        ways["webhook"](ALERT)


def test_a_message_goes_out_by_smtp() -> None:
    found = list[Envelope]()

    class Taking:
        async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
            del server, session
            found.append(envelope)
            return "250 taken"

    server = Controller(Taking(), hostname=HOST, port=free_port())
    server.start()
    try:
        email = Email.model_validate(
            {"to": ["a@x.org", "b@x.org"], "from": "r@x.org", "smtp": f"{HOST}:{server.port}"}
            | {"tls": False}
        )
        ways_of(Alerts(email=email), unresolved, COMMAND)["email"](ALERT)
    finally:
        server.stop()
    [envelope] = found
    assert (envelope.mail_from, envelope.rcpt_tos) == ("r@x.org", ["a@x.org", "b@x.org"])
    assert isinstance(envelope.content, bytes)
    message = message_from_bytes(envelope.content, policy=policy.default)
    assert message["Subject"] == "rivermouth: orders: blocked raised"
    assert message["Message-ID"] == "<a1b2.raised@rivermouth>"
    assert message.get_content().splitlines() == [ALERT.text, "", COMMAND]
