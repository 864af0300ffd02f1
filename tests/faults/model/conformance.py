"""Whether what drivers did, as they traced it, is a path of the model.

The trace is replayed once per partition: each line must be a step that ``apply`` enables, and
must lead to what the line claims. What others committed comes from the table's log, at the
version where it lies there. Kafka is not traced: it may always have done what explains a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.faults.model.configurations import FILES
from tests.faults.model.effects import ROWS, Effect
from tests.faults.model.guards import Guards
from tests.faults.model.replay import Replay
from tests.faults.model.stage import Refused
from tests.faults.model.trace import by_looks, places, read_commits, read_lines


def check_trace(
    lines: Iterable[str],
    commits: Sequence[Mapping[str, Any]],
    pipeline: str | None = None,
    guards: Guards = FILES,
    effect: Effect = ROWS,
) -> list[str]:
    """What in a trace is no path of the model; empty where all of it is.

    ``commits`` is the log of the pipeline's table in order, as dicts: version, operation,
    parameters, txns, and entry (the parsed ``userMetadata``, or None). What the log holds
    before the first traced step is taken as given. ``pipeline`` may be left out where the
    trace names only one. ``effect`` says whether its batches are sent, and when: a trace
    from before such a step was traced is checked without it. Rows are not traced.
    """
    steps, problems = read_lines(lines)
    names = {each.pipeline for each in steps}
    if pipeline is None and len(names) > 1:
        return [*problems, f"the trace names several pipelines: {', '.join(sorted(names))}"]
    ours = [each for each in steps if pipeline in (None, each.pipeline)]
    if not ours:
        return problems
    log = read_commits(commits, ours[0].pipeline)
    if not guards.lock:
        ours = by_looks(ours, log)
    refusals: dict[tuple[int, str], list[str]] = {}
    unexplained: list[dict[int, str]] = []
    for topic, partition in places(ours, log) or [("", 0)]:
        try:
            unexplained.append(Replay(ours, log, (topic, partition), guards, effect).run())
        except Refused as refused:
            shown = f"{topic}-{partition}"
            refusals.setdefault((refused.line, refused.reason), []).append(shown)
    said = [
        (line, f"{_where(line)}{reason} ({', '.join(shown)})")
        for (line, reason), shown in refusals.items()
    ]
    if not said:
        said = [(line, f"{_where(line)}{why}") for line, why in _by_none(unexplained).items()]
    return [*problems, *(text for _, text in sorted(said))]


def _where(line: int) -> str:
    return f"line {line}: " if line else "at the end: "


def _by_none(unexplained: Sequence[Mapping[int, str]]) -> dict[int, str]:
    """The halts that no partition explains: one that does is enough."""
    first, *others = unexplained
    return {line: reason for line, reason in first.items() if all(line in each for each in others)}
