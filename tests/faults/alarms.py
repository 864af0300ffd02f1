"""Kills of a process that sends alerts: each goes out, and none twice but with the same id.

    python -m tests.faults.alarms --kills 100 --seed 1

A process looks at a pipeline whose state changes all the time, and posts to a server on loopback.
It is killed at random moments, or as soon as the server gets something, and started again. What the
server got is raised and resolved in turns, and what came twice was the same event. The last line is
JSON.
"""

from __future__ import annotations

import argparse
import http.server
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from rivermouth.config.alerts import Alerts, Condition
from rivermouth.config.secret import Secret, unresolved
from rivermouth.local.server import HOST
from rivermouth.monitor.alert_notes import AlertNotes
from rivermouth.monitor.sending import Alarm, ways_of
from rivermouth.operate.pace import State
from rivermouth.operate.status import PipelineStatus, Status
from rivermouth.storage.lake import Lake

_CHANGES_S = 0.2
"""How long a state lasts at least."""


def look(folder: Path, address: str) -> None:
    """The process that is killed: it looks at the file ``state`` every 20 ms."""
    alerts = Alerts(on=(Condition("blocked", "blocked"),), webhook=Secret(address))
    ways = ways_of(alerts, unresolved, "rivermouth status lake.yml")
    alarm = Alarm(alerts, AlertNotes(Lake.in_folder(folder)), ways)
    print("it looks", flush=True)
    while True:
        state = State[(folder / "state").read_text(encoding="utf-8")]
        alarm.seen(Status([PipelineStatus("orders", state, "s.orders", lag_messages=0)]))
        time.sleep(0.02)


class Received:
    """A server on loopback that keeps what it gets, and answers late."""

    def __init__(self) -> None:
        self.events = list[tuple[str, str]]()
        self.came = threading.Event()
        received = self

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                facts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                received.events.append((facts["id"], facts["event"]))
                received.came.set()
                time.sleep(0.03)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                del format, args

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:  # who asked was killed
                    self.close_connection = True

        self.server = http.server.ThreadingHTTPServer((HOST, 0), Receiver)
        self.address = f"http://{HOST}:{self.server.server_address[1]}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def campaign(kills: int, seed: int) -> dict[str, object]:
    """What was received over so many kills. Raises AssertionError where it is wrong."""
    chance, received = random.Random(seed), Received()
    with tempfile.TemporaryDirectory() as name:
        folder, stop = Path(name), threading.Event()
        (folder / "state").write_text("OK", encoding="utf-8")
        changes = threading.Thread(target=_change, args=(folder, stop, random.Random(seed + 1)))
        changes.start()
        words = (sys.executable, "-m", "tests.faults.alarms", "--look", name)
        for _ in range(kills):
            _killed([*words, received.address], received, chance)
        stop.set()
        changes.join()
        (folder / "state").write_text("OK", encoding="utf-8")
        with subprocess.Popen([*words, received.address]) as process:
            time.sleep(3)
            process.kill()
    received.server.shutdown()
    return judged(received.events, kills, seed)


def _killed(words: list[str], received: Received, chance: random.Random) -> None:
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it looks
        received.came.clear()
        if chance.random() < 0.5:
            received.came.wait(2)
            time.sleep(chance.uniform(0, 0.05))
        else:
            time.sleep(chance.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)


def _change(folder: Path, stop: threading.Event, chance: random.Random) -> None:
    state, new = "OK", folder / "new"
    while not stop.wait(_CHANGES_S + chance.random()):
        state = "BLOCKED" if state == "OK" else "OK"
        new.write_text(state, encoding="utf-8")
        new.replace(folder / "state")


def judged(events: list[tuple[str, str]], kills: int, seed: int) -> dict[str, object]:
    """The counts of a campaign, whose events are in the order of their arrival."""
    once = [*dict.fromkeys(events)]
    for number, (each, event) in enumerate(once):
        before = once[number - 1] if number else ("", "resolved")
        over = before[1] == "resolved"
        # One that was over before a restart may be told as over alone.
        assert over or (event, before[0]) == ("resolved", each), f"{before} is not over"
    assert once[-1][1] == "resolved", "the last one is over"
    counts = Counter(events)
    return {
        "kills": kills,
        "seed": seed,
        "alerts": len(once),
        "copies": sum(counts.values()) - len(once),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--look", nargs=2, metavar=("FOLDER", "ADDRESS"))
    asked = parser.parse_args()
    if asked.look:
        look(Path(asked.look[0]), asked.look[1])
    else:
        print(json.dumps(campaign(asked.kills, asked.seed)))
