"""What a registration may say, and what is taken of several."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rivermouth.config.formats import FORMATS, Format
from rivermouth.config.platforms import CLASSIC, CLUSTER, CONNECT, LOCAL, SERVERLESS, Platform
from rivermouth.config.registry import LANDINGS, SHAPES, Landings, resolve
from rivermouth.errors import ConfigError, MissingPackage
from tests.kinds.kinds import PAIRS, registered

pytestmark = pytest.mark.unit


@pytest.fixture
def _registered() -> Iterator[None]:
    with registered():
        yield


@pytest.mark.parametrize(
    ("platform", "keyed", "name"),
    [
        (LOCAL, False, "files"),
        (CLUSTER, False, "files"),
        (CLASSIC, False, "dataframe_writer"),
        (CONNECT, False, "dataframe_writer"),
        (LOCAL, True, "files"),
        (CLUSTER, True, "files"),
        (CLASSIC, True, "merge"),
        (SERVERLESS, True, "replace_using"),
        (CONNECT, True, "replace_using"),
    ],
)
def test_rows_land_by_the_first_way_that_the_platform_allows(
    platform: Platform, keyed: bool, name: str
) -> None:
    assert LANDINGS.first(platform, keyed=keyed).name == name


@pytest.mark.usefixtures("_registered")
def test_a_registered_landing_comes_first_where_the_platform_has_what_it_needs() -> None:
    assert LANDINGS.first(LOCAL, keyed=False).name == "staged_insert"
    assert LANDINGS.first(SERVERLESS, keyed=False).name == "dataframe_writer"
    assert LANDINGS.first(LOCAL, keyed=True).name == "files"


def test_where_nothing_fits_the_platform_is_named() -> None:
    with pytest.raises(ConfigError, match="lands changes by key on the platform serverless"):
        Landings().first(SERVERLESS, keyed=True)


def test_a_format_explains_its_own_codes_and_those_of_all_formats() -> None:
    json = FORMATS.by_name["json"]
    assert PAIRS.all_reasons["RM603"] != json.all_reasons["RM603"]
    assert PAIRS.all_reasons["RM602"] == json.all_reasons["RM602"]


def test_a_format_cannot_give_another_meaning_to_a_code_of_all_formats() -> None:
    with pytest.raises(ValueError, match="format odd: RM602 has the same meaning in every format"):
        Format("odd", "nowhere:value", "nowhere:reader", {"RM602": "odd", "RM603": "odd"})


@pytest.mark.usefixtures("_registered")
def test_every_part_of_every_kind_can_be_imported() -> None:
    formats, forms = FORMATS.by_name.values(), FORMATS.keys.values()
    parts = [part for each in formats for part in (each.decoder, each.reader)]
    parts += [part for form in forms for part in (form.decoder, form.reader)]
    parts += [part for shape in SHAPES.by_name.values() for part in (shape.changes, shape.proof)]
    parts += [landing.make for landing in LANDINGS.in_order]
    assert len(parts) > 15
    assert [part for part in parts if not callable(resolve(part))] == []


@pytest.mark.parametrize("reference", ["nowhere:value", "rivermouth.debug:valeu", "a b"])
def test_a_part_that_is_not_there_is_named_with_what_to_do(reference: str) -> None:
    with pytest.raises(MissingPackage) as caught:
        resolve(reference)
    assert caught.value.where == reference
    assert "Correct the registration" in caught.value.remedy
