"""Retention presets: the longer retention holds, and lowering is an owner's decision."""

from __future__ import annotations

import pytest

from tenure.core.compliance import DAYS, access_log_days, check_lowering, check_preset, kept_days, raised
from tenure.core.errors import InvalidInput, NotAllowed
from tenure.core.records import Project


def project(preset: str = "", days: int | None = None) -> Project:
    limits = {} if days is None else {"history_retention": days}
    return Project(project="p", id="p", compliance=preset, limits=limits)


def test_the_presets_are_those_of_the_standards() -> None:
    assert DAYS == {"soc2": 365, "pci": 365, "hipaa": 2190}
    assert [check_preset(name) for name in ("soc2", "none")] == ["soc2", ""]
    with pytest.raises(InvalidInput):
        check_preset("iso")


@pytest.mark.parametrize(
    ("preset", "own", "tier", "kept"),
    [
        ("", 30, None, 30),
        ("", None, None, None),
        ("soc2", None, None, None),  # for ever is longer
        ("soc2", None, 90, 365),
        ("soc2", 400, 90, 400),
        ("soc2", 365, 400, 400),
        ("hipaa", 2190, 365, 2190),
        ("soc2", 30, 90, 90),  # lowered by an owner: the tier's is longer
        ("soc2", 30, None, 30),
    ],
)
def test_the_longer_retention_holds(preset: str, own: int | None, tier: int | None, kept: int | None) -> None:
    of_tenant = {} if tier is None else {"history_retention": tier}
    row = project(preset, own)
    assert kept_days(row, of_tenant, row.limits) == kept


def test_a_preset_raises_an_own_limit_and_lowers_none() -> None:
    assert raised({"history_retention": 30, "max_lease": 9}, "soc2") == {"history_retention": 365, "max_lease": 9}
    assert raised({"history_retention": 400}, "soc2") == {"history_retention": 400}
    assert raised({}, "soc2") == {}
    assert raised({"history_retention": 30}, "") == {"history_retention": 30}


def test_lowering_is_an_owners_decision() -> None:
    before = project("soc2", 365)
    assert check_lowering(before, project("soc2", 400), "admin") == {}
    assert check_lowering(before, project("hipaa", 2190), "admin") == {}
    assert check_lowering(project("", 30), project("", 1), "admin") == {}
    with pytest.raises(NotAllowed):
        check_lowering(before, project("soc2", 364), "admin")
    said = check_lowering(before, project("soc2", 364), "owner")
    assert said == {"history_retention": {"from": 365, "to": 364, "preset": 365}}
    with pytest.raises(NotAllowed):
        check_lowering(project("hipaa"), project("soc2"), "admin")


def test_the_access_log_is_kept_as_long_as_the_longest_preset() -> None:
    assert access_log_days(30, ["", "soc2"]) == 365
    assert access_log_days(4000, ["hipaa"]) == 4000
    assert access_log_days(0, ["hipaa"]) == 0  # for ever
