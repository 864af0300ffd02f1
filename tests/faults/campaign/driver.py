"""A driver that is ready before it is needed: ``python -m tests.faults.campaign.driver DIR FILE``.

Its Spark session is up when it says so, or that of another one to which it is to attach. Then it
does what each line of JSON on its standard input orders, and answers with one line: ``run`` (with
its environment), ``resume``, ``accept-deletes``, or ``lend`` its JVM until the next line.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from rivermouth.cluster.session import start_on_cluster
from rivermouth.config import load
from rivermouth.config.options import MASTER
from rivermouth.errors import RivermouthError
from rivermouth.local.session import BRIEF, start_session
from rivermouth.run.run import Run
from rivermouth.run.starting import platform_with
from rivermouth.write.keys import index
from tests.attached import attach, gateway, is_attached
from tests.lake import Heard


def main(folder: str, file: str) -> None:
    """Be ready, then carry out orders until standard input ends.

    The configuration in ``file`` says where tasks run.
    """
    index.LARGE = 16  # these tables are small, and their index has to be on the disk, too
    settings = {"spark.driver.memory": "1g", **load(Path(file)).spark}
    if is_attached():
        session = attach()
    elif MASTER in settings:
        session = start_on_cluster(Path(folder), settings)
    else:
        session = start_session(Path(folder), settings, java_options=BRIEF)
    platform = platform_with(session)
    jvm: Any = session._jvm
    own = os.getpid() if is_attached() else int(jvm.java.lang.ProcessHandle.current().pid())
    _say({"jvm": own})
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "lend":
            with gateway(session) as there:
                _say(dict(there))
                sys.stdin.readline()
            _say({"codes": {}})
            continue
        os.environ.update(order["environment"])
        config, scratch = load(Path(order["file"])), Path(order["scratch"])
        run = Run(config, session, scratch, continuous=False, platform=platform)
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
    main(*sys.argv[1:])
