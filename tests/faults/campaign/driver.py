"""A driver that is ready before it is needed: ``python -m tests.faults.campaign.driver DIR``.

Its Spark session is up when it says so; then it does what each line of JSON on its standard
input orders, and answers with one line: ``run`` (with its environment), ``resume`` or
``accept-deletes``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from rivermouth.config import load
from rivermouth.errors import RivermouthError
from rivermouth.local.session import BRIEF, start_session
from rivermouth.run.run import Run
from rivermouth.write.keys import index
from tests.lake import Heard


def main(folder: str) -> None:
    """Be ready, then carry out orders until standard input ends."""
    index.LARGE = 16  # these tables are small, and their index has to be on the disk, too
    session = start_session(Path(folder), {"spark.driver.memory": "1g"}, java_options=BRIEF)
    jvm: Any = session._jvm
    _say({"jvm": int(jvm.java.lang.ProcessHandle.current().pid())})
    for line in sys.stdin:
        order = json.loads(line)
        os.environ.update(order["environment"])
        run = Run(load(Path(order["file"])), session, Path(order["scratch"]), continuous=False)
        if order["do"] == "run":
            reports = run.pipelines(order["names"], Heard(), threading.Event())
            errors = {each.pipeline: each.error for each in reports}
            codes = {name: each.code if each else "" for name, each in errors.items()}
            _say({"codes": codes, "errors": [str(each) for each in errors.values() if each]})
        else:
            _say(_accepted(run, order["names"][0], order))


def _accepted(run: Run, name: str, order: dict[str, Any]) -> dict[str, Any]:
    try:
        if order["do"] == "resume":
            run.resume(name, order["accept"], Heard())
        else:
            run.accept_deletes(name, order["versions"], lambda each: None)
    except RivermouthError as error:
        return {"codes": {name: error.code}, "errors": [str(error)]}
    return {"codes": {name: ""}, "errors": []}


def _say(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
