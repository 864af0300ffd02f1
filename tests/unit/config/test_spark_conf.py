"""Settings of the Spark session: word for word, but for those on which the guarantee hangs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rivermouth.config import Config
from rivermouth.config.options import NOT_YOURS
from rivermouth.errors import ConfigError
from rivermouth.local.session import DELTA, session_settings
from rivermouth.warehouse.spark_commits import TXN_APP_ID, TXN_VERSION, USER_METADATA
from rivermouth.write.landings.merge import MATERIALIZE_SOURCE

pytestmark = pytest.mark.unit

Loads = Callable[..., Config]


def with_spark(text: str, conf: str) -> str:
    return f"{text}\nspark: {{{conf}}}\n"


def test_settings_stay_word_for_word(lake: str, loads: Loads) -> None:
    text = with_spark(lake, "spark.driver.memory: 8g, spark.x: true, spark.sql.shuffle.Y: 007")
    assert loads(text).spark == {
        "spark.driver.memory": "8g",
        "spark.x": "true",
        "spark.sql.shuffle.Y": "007",
    }
    assert loads(lake).spark == {}


@pytest.mark.parametrize(
    "name",
    [
        *(each + "x" if each.endswith(".") else each for each in NOT_YOURS),
        TXN_APP_ID,
        TXN_VERSION,
        USER_METADATA,
        MATERIALIZE_SOURCE,
        *DELTA,
        "spark.sql.session.timeZone",
        "spark.delta.logStore.s3.impl",
    ],
)
def test_what_the_guarantee_hangs_on_is_refused_with_the_reason(
    lake: str, loads: Loads, name: str
) -> None:
    with pytest.raises(ConfigError, match=r"RM111 .*cannot be set: \w+"):
        loads(with_spark(lake, f"{name}: x"))


def test_another_name_is_refused_with_its_line(lake: str, loads: Loads) -> None:
    with pytest.raises(ConfigError, match=r"RM104 .*driver.memory does not start with spark\."):
        loads(with_spark(lake, "driver.memory: 8g"))


def test_where_tables_are_in_a_catalog_settings_belong_to_the_cluster(
    lake: str, loads: Loads
) -> None:
    text = lake.replace("warehouse: lake", "warehouse: {catalog: main}")
    assert text != lake
    with pytest.raises(ConfigError, match=r"RM111 .*set it for the cluster of the job"):
        loads(with_spark(text, "spark.driver.memory: 8g"))


def test_no_setting_of_ours_may_be_overridden_without_a_reason_to() -> None:
    kept = {name.lower() for name in NOT_YOURS}
    ours = {name.lower() for name in session_settings(2, Path("/x"))}
    assert ours & kept == {
        "spark.sql.session.timezone",
        "spark.sql.variable.substitute",
        "spark.sql.parquet.outputtimestamptype",
        "spark.sql.warehouse.dir",
    }


@pytest.mark.parametrize("master", ["spark://a.example:7077", "yarn", "k8s://https://a:6443"])
def test_a_master_is_that_of_a_cluster(lake: str, loads: Loads, master: str) -> None:
    assert loads(with_spark(lake, f"spark.master: '{master}'")).master == master
    assert loads(lake).master == ""


@pytest.mark.parametrize("master", ["local", "local[4]", "local-cluster[2,1,512]", "a:7077", ""])
def test_another_master_is_refused(lake: str, loads: Loads, master: str) -> None:
    text = with_spark(lake, f"spark.master: '{master}'")
    with pytest.raises(ConfigError, match=r"RM107 .*must be spark://host:port, yarn or k8s://"):
        loads(text)
