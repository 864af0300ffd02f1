"""Alerts go out: to a webhook, to Slack, by SMTP. What goes wrong is tried at the next look."""

from __future__ import annotations

import json
import logging
import smtplib
import ssl
import time
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from typing import Any
from urllib.request import Request, urlopen

from rivermouth.config import Config, Secrets
from rivermouth.config.alerts import Alerts, Email
from rivermouth.local.commands import typed
from rivermouth.monitor.alert_notes import AlertNotes
from rivermouth.monitor.alerting import Alert, due
from rivermouth.operate.status import Status
from rivermouth.storage.lake import Lake

_LOG = logging.getLogger(__name__)
_TIMEOUT_S = 10.0
Send = Callable[[Alert], None]
"""Sends an alert, or raises."""


class Alarm:
    """Tells each change of a condition once; after a restart, too.

    The note of an event is written before it goes out, and after each way by which it did. A
    process that dies in between sends it once more, with the same id.
    """

    def __init__(
        self,
        alerts: Alerts,
        notes: AlertNotes,
        ways: Mapping[str, Send],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._alerts, self._notes, self._ways, self._now = alerts, notes, ways, now

    def seen(self, found: Status) -> None:
        """Send what is due, and what could not go out before. Raises OSError of the notes."""
        for each in found.pipelines:
            for condition in self._alerts.on:
                former = self._notes.read(each.name, condition.text)
                alert = due(condition, each, former, self._ways, int(self._now() * 1000))
                if alert is not None and alert is not former:
                    self._notes.write(alert)
                if alert is not None and alert.pending:
                    self._send(alert)

    def _send(self, alert: Alert) -> None:
        for way in alert.pending:
            if way in self._ways:
                try:
                    self._ways[way](alert)
                except Exception as fault:  # of one way: the others go on
                    _LOG.warning("%s could not be told of: %s: %s", way, alert.text, fault)
                    continue
            alert = alert.told(way)
            self._notes.write(alert)


def alarm_of(config: Config, secrets: Secrets) -> Alarm | None:
    """That of a configuration; None where it has no ``alerts``."""
    if config.alerts is None:
        return None
    notes = AlertNotes(Lake.of(config, secrets))
    return Alarm(
        config.alerts, notes, ways_of(config.alerts, secrets, typed("status", config.path))
    )


def ways_of(alerts: Alerts, secrets: Secrets, command: str) -> dict[str, Send]:
    """How alerts go out, by name. ``command`` is what tells a person more."""
    ways: dict[str, Send] = {}
    if (webhook := alerts.webhook) is not None:
        ways["webhook"] = lambda alert: _post(
            webhook.reveal(secrets), {**_facts(alert), "command": command}, alert
        )
    if (slack := alerts.slack) is not None:
        ways["slack"] = lambda alert: _post(
            slack.reveal(secrets), {"text": f"{alert.text}\n`{command}`"}, alert
        )
    if (email := alerts.email) is not None:
        ways["email"] = lambda alert: _mail(email, _message(email, alert, command), secrets)
    return ways


def _facts(alert: Alert) -> dict[str, Any]:
    return {name: each for name, each in alert.as_dict().items() if name != "pending"}


def _post(url: str, body: Mapping[str, Any], alert: Alert) -> None:
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": f"{alert.id}-{alert.event.value}",
    }
    request = Request(url, json.dumps(body).encode(), headers, method="POST")
    with urlopen(request, timeout=_TIMEOUT_S):
        pass


def _message(email: Email, alert: Alert, command: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = email.sender, ", ".join(email.to)
    message["Subject"] = f"rivermouth: {alert.pipeline}: {alert.condition} {alert.event.value}"
    message["Message-ID"] = f"<{alert.id}.{alert.event.value}@rivermouth>"
    message.set_content(f"{alert.text}\n\n{command}\n")
    return message


def _mail(email: Email, message: EmailMessage, secrets: Secrets) -> None:
    host, _, port = email.smtp.rpartition(":")
    with smtplib.SMTP(host.strip("[]"), int(port), timeout=_TIMEOUT_S) as server:
        if email.tls:
            server.starttls(context=ssl.create_default_context())
        if email.user:
            server.login(email.user, email.password.reveal(secrets) if email.password else "")
        server.send_message(message)
