"""Where newcomers stumbled: a wrong name, a second `init`, a scope that was taken for an amount."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Tenure


@pytest.mark.parametrize(
    ("words", "code", "texts"),
    [
        (("run", "--agent", "cluade", "--once"), 11, ("not installed", "did you mean claude?")),
        (("add", "Two", "--after", "A-9"), 8, ("'A-9', which is unknown", "tenure list")),
        (("budget", "set", "5"), 8, ("budget scope '5'", "tenure budget set project --usd 20")),
    ],
)
def test_the_error_says_what_to_write_instead(
    tenure: Tenure, words: tuple[str, ...], code: int, texts: tuple[str, ...]
) -> None:
    refused = tenure(*words)
    assert (refused.code, [text for text in texts if text not in refused.err]) == (code, [])


def test_a_second_init_does_not_offer_what_is_set_up(tenure: Tenure) -> None:
    assert tenure("init", "--agents", "claude,codex").code == 0
    again = tenure("init")
    assert "tenure setup" not in again.out
    assert set(tenure("init", "--json").json["set_up_agents"]) == {"claude", "codex"}


def test_the_log_names_who_created_the_project(tenure: Tenure) -> None:
    (created,) = [event for event in tenure("log", "--json").json if event["kind"] == "project.created"]
    assert created["user"] == tenure.environ["USER"]


def test_doctor_says_each_thing_once(tenure: Tenure) -> None:
    said = tenure("doctor").out.splitlines()
    assert len([line for line in said if "permissions" in line]) == len(
        {line for line in said if "permissions" in line}
    )


def test_a_setting_that_is_not_set_says_so(tenure: Tenure) -> None:
    assert tenure("config", "tasks.priority").out == "not set\n"
