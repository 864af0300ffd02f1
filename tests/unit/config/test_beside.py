"""Functions beside a configuration file: Python finds them, and never another one of the name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermouth.config import Config, found_in, functions, load, taken_from, user_modules
from rivermouth.config.registry import own
from rivermouth.errors import ConfigError, MissingPackage
from tests.unit.config.conftest import LAKE

pytestmark = pytest.mark.unit

TRANSFORM = """\
    transform: {}
    target: {{table: s.t, schema: id BIGINT}}
"""
SINK = "    target: {{foreach_partition: '{}'}}\n"
TABLE = "    target: {table: s.t}\n"
PROVIDER = (
    '{{bootstrap.servers: "k:9092", sasl.mechanism: OAUTHBEARER, security.protocol: SASL_SSL,'
    ' sasl.login.callback.handler.class: a.B, rivermouth.login.provider: "{}"}}'
)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No configuration was loaded yet, and what is imported meanwhile is forgotten."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(user_modules, "_TAKEN", {})
    known = {*sys.modules}
    yield
    for each in {*sys.modules} - known:
        del sys.modules[each]


def configured(folder: Path, text: str, **modules: str) -> Config:
    """A configuration in a new folder, with these modules beside it."""
    folder.mkdir()
    for name, code in modules.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    importlib.invalidate_caches()
    (folder / "lake.yml").write_text(text, encoding="utf-8")
    return load(folder / "lake.yml", {})


def transforming(reference: str) -> str:
    return LAKE.replace(TABLE, TRANSFORM.format(reference))


def test_a_function_beside_the_file_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    config = configured(tmp_path / "a", transforming("mine:add"), mine="import other", other="")
    assert sys.path[-1] == str(tmp_path / "a"), "what is installed goes before it"
    assert taken_from(config) == (str(tmp_path / "a"),)
    with pytest.raises(MissingPackage, match=rf"no attribute 'add' \({tmp_path}/a/mine\.py\)"):
        own("mine:add")


def test_what_is_found_there_alone_is_told(tmp_path: Path) -> None:
    config = configured(tmp_path / "a", transforming("mine:add"), mine="", calendar="", other="")
    (tmp_path / "a" / "shop").mkdir()
    (tmp_path / "a" / "no-module.py").touch()
    assert [*found_in(*taken_from(config))] == ["mine", "other", "shop"]


def test_a_function_may_be_in_a_package(tmp_path: Path) -> None:
    (tmp_path / "a" / "shop").mkdir(parents=True)
    (tmp_path / "a" / "shop" / "rows.py").write_text("clean = 7", encoding="utf-8")
    file = tmp_path / "a" / "lake.yml"
    file.write_text(transforming("shop.rows:clean"), encoding="utf-8")
    load(file, {})
    assert own("shop.rows:clean") == 7


@pytest.mark.parametrize("text", [LAKE, transforming("elsewhere:add"), transforming("csv:reader")])
def test_the_import_path_stays_where_nothing_is_found_beside_the_file_alone(
    tmp_path: Path, text: str
) -> None:
    before = [*sys.path]
    config = configured(tmp_path / "a", text, csv="", mine="")
    assert sys.path == before
    assert taken_from(config) == ()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (transforming("mine:add"), "RM125 pipelines.p.transform"),
        (
            LAKE.replace(TABLE, SINK.format("mine:add")),
            "RM126 pipelines.p.target.foreach_partition",
        ),
        (
            LAKE.replace('{bootstrap.servers: "k:9092"}', PROVIDER.format("mine:add")),
            "RM122 kafka.rivermouth.login.provider",
        ),
    ],
    ids=["transform", "sink", "provider"],
)
@pytest.mark.parametrize("imported", [True, False])
def test_a_module_of_another_configuration_is_never_taken_for_ones_own(
    tmp_path: Path, text: str, place: str, imported: bool
) -> None:
    first = configured(tmp_path / "a", transforming("mine:add"), mine="add = 1")
    if imported:
        assert own("mine:add") == 1
    with pytest.raises(ConfigError) as refused:
        configured(tmp_path / "b", text, mine="add = 2")
    [problem] = refused.value.problems
    assert place in problem
    assert f"the configuration in {tmp_path}/a uses another one" in problem
    assert own("mine:add") == 1, "the first one goes on"
    assert taken_from(first) == (str(tmp_path / "a"),)


def test_configurations_with_modules_of_different_names_go_together(tmp_path: Path) -> None:
    one = configured(tmp_path / "a", transforming("mine:add"), mine="add = 1")
    two = configured(tmp_path / "b", transforming("yours:add"), yours="add = 2")
    again = load(tmp_path / "a" / "lake.yml", {})
    assert (own("mine:add"), own("yours:add")) == (1, 2)
    assert (taken_from(one), taken_from(two)) == ((str(tmp_path / "a"),), (str(tmp_path / "b"),))
    assert again == one


def test_every_function_that_a_configuration_names_is_told(tmp_path: Path) -> None:
    config = configured(
        tmp_path / "a",
        transforming("mine:add").replace('{bootstrap.servers: "k:9092"}', PROVIDER.format("p:q")),
    )
    assert [reference for _, _, reference in functions(config)] == ["mine:add", "p:q"]
