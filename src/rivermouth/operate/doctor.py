"""What this machine, and a configuration, need before a run: each checked for real.

A check never raises: what is wrong is its result, with what to do. Checks come in an order
in which the first failure explains those after it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rivermouth.config.bucket import Bucket
from rivermouth.errors import ConfigError, RivermouthError, SetupError, SourceError
from rivermouth.local.commands import typed
from rivermouth.local.jars import Progress, jars
from rivermouth.local.java import find_java
from rivermouth.local.requirements import Requirement, declared, python
from rivermouth.local.scratch import cache_folder, scratch_root

if TYPE_CHECKING:
    from rivermouth.config import Config, Pipeline, Secrets
    from rivermouth.config.loader import ColumnsOf
    from rivermouth.kafka.client import Kafka

EXTRA = "local"
_EACH, _PARTITIONS = 20, 8
"""So many of the newest records of a partition are looked at, and of a pipeline's partitions."""
FREE_BYTES = 1 << 30

RUN_JARS, DEMO_JARS = ("spark",), ("spark", "broker")
"""The sets of jars: a configuration names a broker, so only the demo needs the jars of ours."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what it is, whether it will do, what was found, what to do."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def check_machine(sets: Iterable[str], progress: Progress) -> Iterator[Check]:
    """Python, packages, Java, jars (every byte), folders. Downloads jars of ``sets`` that are
    missing.
    """
    yield from check_installed()
    yield _attempt("Java", _java)
    for name in sets:
        yield _attempt(f"jars: {name}", partial(_jars, name, progress))
    yield _folder("cache", cache_folder(), "Name another folder with RIVERMOUTH_CACHE")
    yield _folder("scratch", scratch_root(), "Name another folder with RIVERMOUTH_SCRATCH")


def check_installed() -> Iterator[Check]:
    """This Python, which Spark's workers have too, and each package that a run here needs."""
    try:
        wanted, packages = python(), declared(EXTRA)
    except PackageNotFoundError:
        found = "rivermouth is not installed: its source was found on the path"
        yield Check("packages", False, found, f"pip install 'rivermouth[{EXTRA}]'")
        return
    yield check_python(wanted)
    yield from check_packages(packages)


def check_python(wanted: Requirement, found: str = sys.version) -> Check:
    """Whether this Python is one that rivermouth supports."""
    number = found.split()[0]
    text = f"{number} at {sys.executable}"
    wrong = wanted.wrong(number)
    return Check("Python", not wrong, f"{text}, {wrong}" if wrong else text, f"Use {wanted}")


def check_packages(
    wanted: Sequence[Requirement], version_of: Callable[[str], str] = version
) -> Iterator[Check]:
    """One check of all packages if they are as declared; else one of each that is not."""
    found, wrong = list[str](), list[Check]()
    for each in wanted:
        fix = f"pip install '{each}'"
        try:
            number = version_of(each.package)
        except PackageNotFoundError:
            wrong.append(Check(each.package, False, f"not installed; needed is {each}", fix))
            continue
        found.append(f"{each.package} {number}")
        if each.wrong(number):
            text = f"{number} is {each.wrong(number)}; needed is {each}"
            wrong.append(Check(each.package, False, text, fix))
    yield from wrong or [Check("packages", True, ", ".join(found))]


def check_config(file: Path, secrets: Secrets) -> Iterator[Check]:
    """The file, the kinds of each pipeline, the warehouse, the broker, and each topic with
    partitions and retention.

    ``secrets`` knows what the file only names. A catalog is looked at by
    ``rivermouth.databricks.doctor``.
    """
    from rivermouth.operate.columns import columns_of

    check, config = check_file(file, partial(columns_of, secrets=lambda: secrets))
    yield check
    if config is None:
        return
    for name, pipeline in config.pipelines.items():
        yield _attempt(f"pipeline {name}", partial(_kinds, config, pipeline, secrets))
    if isinstance(config.warehouse, Path):
        yield _folder("warehouse", config.warehouse, "Give yourself the right to write there")
    elif isinstance(config.warehouse, Bucket):
        yield _attempt("warehouse", partial(_bucket, config, secrets))
    for name, pipeline in config.pipelines.items():
        if pipeline.format.schema_text is not None:
            yield _attempt(f"schemas of {name}", partial(_schemas, config, pipeline, secrets))
    yield from _source(config, secrets)


def check_file(
    file: Path, columns_of: ColumnsOf = lambda unsaid: None
) -> tuple[Check, Config | None]:
    """Whether the configuration is accepted, and it. ``columns_of``: see ``load``."""
    from rivermouth.config import load

    try:
        config = load(file, columns_of=columns_of)
    except ConfigError as error:
        problems = "; ".join(error.problems)
        return Check("config", False, problems, typed("validate", file)), None
    except RivermouthError as error:  # of the table, or of the registry
        return refused("config", error), None
    return Check("config", True, f"{file}: {len(config.pipelines)} pipeline(s)"), config


def _attempt(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except RivermouthError as error:
        return refused(name, error)


def refused(name: str, error: RivermouthError) -> Check:
    """A failed check from an error; its remedy is the fix."""
    facts = [error.where, error.what, f"found {error.found}" if error.found else ""]
    return Check(name, False, f"{error.code} " + ", ".join(filter(None, facts)), error.remedy)


def _java() -> str:
    java = find_java()
    return f"{java.version} from {java.source}: {java.home}"


def _jars(name: str, progress: Progress) -> str:
    return f"{len(jars(name, progress=progress))} files, sha256 of each as locked"


def _folder(name: str, folder: Path, fix: str) -> Check:
    """Whether files can be made in ``folder``, or where it would be made; leaves nothing."""
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as error:
        return Check(name, False, f"{folder}: {error.strerror or error}", fix)
    text = f"{folder}: writable, {free / 1e9:.1f} GB free"
    return Check(name, free >= FREE_BYTES, text, f"Free {FREE_BYTES / 1e9:.0f} GB, or: {fix}")


def _bucket(config: Config, secrets: Secrets) -> str:
    """Whether the object store can hold tables."""
    from rivermouth.storage.lake import Lake
    from rivermouth.storage.trial import tried

    lake = Lake.of(config, secrets)
    tried(lake)
    return f"{lake.url}: writable, and one of several writers wins"


def _kinds(config: Config, pipeline: Pipeline, secrets: Secrets) -> str:
    """The registered kinds that a pipeline uses on this machine; every part is imported."""
    from rivermouth.config.pipeline import check_platform
    from rivermouth.config.platforms import platform_of
    from rivermouth.config.registry import LANDINGS, own, resolve
    from rivermouth.operate.facts import way_now
    from rivermouth.storage.lake import Lake

    platform = platform_of()
    check_platform(pipeline, platform)
    known, shape, key = pipeline.format, pipeline.shape, pipeline.key_form
    landing = LANDINGS.first(platform, keyed=shape.keyed, sends=shape.sends)
    parts = [known.decoder, known.reader, shape.changes, shape.proof]
    parts += [key.decoder, key.reader] if key is not None else []
    for each in (*parts, landing.make):
        resolve(each)
    function = pipeline.target.foreach_partition
    for code in filter(None, (pipeline.transform, function)):
        own(code)
    way = way_now(pipeline, Lake.if_any(config, secrets))
    if shape.sends:
        to = ", ".join(pipeline.target.kafka or (function or "",))
        sent = f"format {known.name}, records are sent to {to}, {pipeline.delivery.value}"
        return f"{sent}, {way}" if way is not None and way.reason else sent
    lands = way or f"rows land by {landing.name}"
    return f"format {known.name}, mode {shape.name}, {lands}"


def _schemas(config: Config, pipeline: Pipeline, secrets: Secrets) -> str:
    """The schemas that records of a pipeline have; raises where the columns do not fit the newest
    one.
    """
    from rivermouth.config.registry import resolve
    from rivermouth.formats.tasks import of_values
    from rivermouth.schemas.registry import Registry
    from rivermouth.schemas.whole import text_of

    decoder = resolve(pipeline.format.decoder)(pipeline.reading, of_values(pipeline))
    file = pipeline.source.schema_file
    if file is not None:
        return _fitting(decoder, pipeline, str(file), pipeline.decoder["schema_file"])
    registry, found = config.schema_registry, list[str]()
    assert registry is not None, "a rule of the configuration"
    with Registry(registry.revealed(secrets)) as client:
        for topic in pipeline.source.topics:
            subject = f"{topic}-value"
            numbers = client.numbers(subject)
            newest = client.schema(numbers[-1]) if numbers else None
            if newest is not None:
                _fitting(decoder, pipeline, f"{subject}, schema {numbers[-1]}", text_of(newest))
            found.append(f"{subject}: {len(numbers)} version(s)")
    return f"{registry.url}: {', '.join(found)}"


def _fitting(decoder: Any, pipeline: Pipeline, where: str, text: str) -> str:
    why = decoder.unfit(text)
    if why:
        raise SetupError(
            "all records of a schema would go to quarantine",
            where=where,
            expected=f"one that fits the columns of {pipeline.name}",
            found=why,
            remedy="Give the column the type that docs/records.md tells, or leave it out",
        )
    return f"{where}: fits the columns"


def _source(config: Config, secrets: Secrets) -> Iterator[Check]:
    from rivermouth.kafka.client import Kafka
    from rivermouth.kafka.facts import no_topic, with_topics
    from rivermouth.kafka.options import java_options

    try:
        options = config.kafka.revealed(secrets)
        java_options(options)  # what Spark needs of the login is there, such as its files
        kafka = Kafka(options)
        cluster, _ = kafka.identities([])
    except (SourceError, SetupError) as error:
        yield refused("broker", error)
        return
    yield Check("broker", True, f"{config.kafka.bootstrap_servers}: cluster {cluster}")
    topics: dict[str, None] = {}
    samples = dict[str, Callable[[], str]]()
    for each in config.pipelines.values():
        try:
            found = with_topics(kafka, each, None).source.topics
            topics |= dict.fromkeys(found)
            if not found:
                raise no_topic(each)
            if not kafka.missing(found):  # else the check of the topic says so
                look = partial(_records, config, each, [*found], kafka, secrets)
                samples[f"records of {each.name}"] = look
        except SourceError as error:
            yield refused(f"topics of {each.name}", error)
        topics |= dict.fromkeys(each.target.kafka or ())
    for topic in topics:
        yield _attempt(f"topic {topic}", partial(_topic, kafka, topic))
    for name, sampled in samples.items():
        yield _attempt(name, sampled)


def _records(
    config: Config, pipeline: Pipeline, topics: Sequence[str], kafka: Kafka, secrets: Secrets
) -> str:
    """How many of the newest records are good, and why others are bad; raises where all are."""
    from rivermouth.formats.arrow import SKIPPED
    from rivermouth.operate.sample import decoded_messages

    marks = sorted(kafka.facts(topics).watermarks.items())[:_PARTITIONS]
    newest = {each: (max(its.low, its.high - _EACH), its.high) for each, its in marks}
    messages = kafka.records_within({of: each for of, each in newest.items() if each[0] < each[1]})
    if not messages:
        return "none is there yet"
    decoded = decoded_messages(config, pipeline, messages, secrets)
    both = zip(decoded["code"], decoded["reason"], strict=True)
    bad = Counter(
        f"{code} {why or ''}".strip() for code, why in both if code not in (None, SKIPPED)
    )
    most = "; ".join(f"{number} {why}" for why, number in bad.most_common(2))
    if sum(bad.values()) < len(messages):
        found = f"of the newest {len(messages)} {sum(bad.values())} are bad"
        return f"{found}: {most}" if bad else found
    raise SetupError(
        "all of the newest records would go to quarantine",
        where=", ".join(topics),
        expected="records of the format, and with the fields, that are configured",
        found=most,
        remedy="Compare source.format, source.framing and schema with the topic",
    )


def _topic(kafka: Kafka, topic: str) -> str:
    watermarks = kafka.facts([topic]).watermarks
    offsets = sum(each.high - each.low for each in watermarks.values())
    text = f"{len(watermarks)} partition(s), {offsets:,} offsets"
    try:
        age = kafka.retentions([topic])[topic].kept_for
    except SourceError as error:  # reading needs no right to describe settings
        return f"{text}, retention unknown ({error.found or error.what})"
    return f"{text}, kept {'without limit' if age is None else f'for {age}'}"
