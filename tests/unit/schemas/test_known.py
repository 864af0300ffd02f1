"""What is known of schemas: asked for once, kept on disk, and given to pipelines."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rivermouth.config import Pipeline
from rivermouth.errors.registry import RegistryUnreachable
from rivermouth.schemas import known
from rivermouth.schemas.known import KnownSchemas, with_schemas
from rivermouth.schemas.registry import Schema

pytestmark = pytest.mark.unit

OPTIONS = {"url": "http://r:8081"}


@dataclass
class Double:
    """A registry in memory. ``asked`` are the numbers that somebody asked for."""

    schemas: dict[int, Schema] = field(default_factory=dict)
    subjects: dict[str, tuple[int, ...]] = field(default_factory=dict)
    away: bool = False
    asked: list[int] = field(default_factory=list)
    subjects_asked: int = 0

    def __call__(self, _: object) -> Double:
        return self

    def __enter__(self) -> Double:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def schema(self, number: int) -> Schema | None:
        self._answer()
        self.asked.append(number)
        return self.schemas.get(number)

    def numbers(self, subject: str) -> tuple[int, ...]:
        self.subjects_asked += 1
        self._answer()
        return self.subjects.get(subject, ())

    def _answer(self) -> None:
        if self.away:
            raise RegistryUnreachable("no answer")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Double:
    double = Double({n: Schema("AVRO", f'"{n}"', {}) for n in (1, 2, 3)}, {"t-value": (1, 2)})
    monkeypatch.setattr(known, "Registry", double)
    monkeypatch.setattr(known, "_LAG_S", 0.0)
    return double


def pipeline(**source: object) -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"topics": ("t",), "format": "avro", **source},
            "ddl": "id BIGINT",
            "target": {"table": "s.t"},
        }
    )


def test_schemas_of_the_subjects_are_known_from_the_start(registry: Double, tmp_path: Path) -> None:
    found = KnownSchemas(OPTIONS, tmp_path).into(pipeline())
    assert found.schemas == {1: '"1"', 2: '"2"'}
    assert registry.asked == [1, 2]


def test_what_is_wanted_is_asked_for_once(registry: Double, tmp_path: Path) -> None:
    schemas = KnownSchemas(OPTIONS, tmp_path)
    schemas.want([3, 9])
    assert schemas.into(pipeline()).schemas == {1: '"1"', 2: '"2"', 3: '"3"', 9: None}
    assert registry.asked == [3, 9, 9, 1, 2]  # a node of the registry may not know it yet
    schemas.into(pipeline())
    assert registry.asked == [3, 9, 9, 1, 2]


def test_a_schema_that_was_not_there_is_asked_for_again_when_it_is_wanted(
    registry: Double, tmp_path: Path
) -> None:
    schemas = KnownSchemas(OPTIONS, tmp_path)
    schemas.want([9])
    schemas.into(pipeline())
    registry.schemas[9] = Schema("AVRO", '"9"', {})
    schemas.want([9])
    assert schemas.into(pipeline()).schemas[9] == '"9"'


def test_what_was_learnt_is_kept_for_another_run(registry: Double, tmp_path: Path) -> None:
    KnownSchemas(OPTIONS, tmp_path).into(pipeline())
    registry.away, registry.subjects_asked = True, 0
    assert KnownSchemas(OPTIONS, tmp_path).into(pipeline()).schemas == {1: '"1"', 2: '"2"'}
    assert not registry.subjects_asked, "a start waits for no registry that it does not need"
    assert KnownSchemas({"url": "http://other"}, tmp_path).into(pipeline()).schemas == {}


def test_a_registry_that_is_away_is_a_fault_where_something_is_wanted(
    registry: Double, tmp_path: Path
) -> None:
    schemas = KnownSchemas(OPTIONS, tmp_path)
    schemas.want([3])
    registry.away = True
    for _ in range(2):
        with pytest.raises(RegistryUnreachable):
            schemas.into(pipeline())
    registry.away = False
    assert schemas.into(pipeline()).schemas[3] == '"3"'


def test_a_torn_file_is_asked_for_again(registry: Double, tmp_path: Path) -> None:
    KnownSchemas(OPTIONS, tmp_path).into(pipeline())
    (file,) = tmp_path.glob("schemas/*/1.json")
    file.write_text('{"text"', encoding="utf-8")
    schemas = KnownSchemas(OPTIONS, tmp_path)
    schemas.want([1])
    assert schemas.into(pipeline()).schemas == {1: '"1"', 2: '"2"'}


def test_workers_of_verify_get_a_copy(registry: Double, tmp_path: Path) -> None:
    schemas = pickle.loads(pickle.dumps(KnownSchemas(OPTIONS, tmp_path)))
    assert (schemas(3), schemas(9)) == ('"3"', None)


@pytest.mark.parametrize("source", [{"format": "json"}, {"format": "json", "framing": "confluent"}])
def test_nobody_asks_where_no_schema_is_needed(
    registry: Double, tmp_path: Path, source: dict[str, str]
) -> None:
    its = pipeline(**source)
    assert with_schemas(its, KnownSchemas(OPTIONS, tmp_path)) is its
    assert with_schemas(pipeline(), None) == pipeline()
