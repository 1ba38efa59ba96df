"""The table of validators, and what a verdict holds."""

from importlib.metadata import EntryPoint

import pytest

from tenure.core.errors import InvalidInput
from tenure.validators.known import NAMES, QUICK, names, validator
from tenure.validators.port import LONGEST_REASON, MOST_REASONS, Verdict


def test_each_name_leads_to_the_validator_of_that_name() -> None:
    made = [validator(name) for name in NAMES]
    assert tuple(each.name for each in made) == NAMES == names()
    assert tuple(each.name for each in made if each.is_quick) == QUICK


def test_an_unknown_name_is_reported_with_a_suggestion() -> None:
    with pytest.raises(InvalidInput, match="did you mean json-schema") as raised:
        validator("jsonschema")
    assert raised.value.hint == f"valid: {', '.join(NAMES)}"


class Plugged:
    name = "plugged"


def test_a_plug_in_brings_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("plugged", f"{__name__}:Plugged", "tenure.validators")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] if group == entry.group else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: Plugged)
    assert validator("plugged").name == "plugged"
    assert names() == (*NAMES, "plugged")


def test_a_verdict_is_cut_to_its_bounds() -> None:
    verdict = Verdict(False, tuple("x" * 5000 for _ in range(100)), {"log": "y" * 1_000_000})
    assert len(verdict.reasons) == MOST_REASONS
    assert {len(reason) for reason in verdict.reasons} == {LONGEST_REASON}
    assert list(verdict.details) == ["left_out"]
