"""The words that agents are given: short enough, and true."""

from __future__ import annotations

import re
import shlex

import pytest

from tenure.agents.recipes.recipe import text
from tenure.agents.session_brief import LOOP, UNDER_A_RUNNER
from tenure.agents.tokens import estimate, one_line
from tenure.cli.answers import OF_ERROR, OF_KIND
from tenure.cli.main import _verb, function_of, parser_of
from tenure.cli.verbs import VERBS
from tenure.core.outcomes import CODES

# `tenure …` between backticks, as somebody would type it
COMMAND = re.compile(r"`(tenure [^`\n]+)`")
TEXTS = {name: text(name) for name in ("section.md", "skill.md")} | {"prime": LOOP, "below a runner": UNDER_A_RUNNER}
COMMANDS = [(name, command) for name, words in TEXTS.items() for command in COMMAND.findall(words)]


def test_the_section_costs_at_most_250_tokens() -> None:
    assert estimate(TEXTS["section.md"]) <= 250


def test_the_skill_costs_at_most_1500_tokens_and_its_description_few() -> None:
    assert estimate(TEXTS["skill.md"]) <= 1500
    found = re.search(r"^description: (.*)$", TEXTS["skill.md"], re.MULTILINE)
    assert found is not None
    assert len(found[1]) <= 1024  # what the agents take
    assert estimate(found[1]) <= 60


@pytest.mark.parametrize(("where", "command"), COMMANDS)
def test_every_command_in_the_texts_is_one_that_tenure_takes(where: str, command: str) -> None:
    words = shlex.split(command.replace("[TASK]", "B-003"))[1:]
    if words == ["VERB", "-h"]:
        return
    name, rest = _verb(words)
    parser_of(name, function_of(VERBS[name].where)).parse_intermixed_args(rest)


def test_the_texts_have_commands_at_all() -> None:
    assert set(TEXTS) == {where for where, _ in COMMANDS}
    verbs = {command.split()[1] for _, command in COMMANDS}
    assert verbs >= {"claim", "progress", "checkpoint", "done", "fail", "release", "ask", "reserve", "inbox", "prime"}


def test_the_outcomes_that_the_skill_explains_exist_and_exit_with_6() -> None:
    table = [line for line in TEXTS["skill.md"].splitlines() if line.startswith("| `")]
    named = {code for line in table for code in re.findall(r"`([A-Z_]+)`", line.split("|")[1])}
    assert named >= {"ALREADY_EXPIRED", "STALE_GENERATION", "NO_CLAIM"}
    for code in named - {"NO_RECEIPT", "AMBIGUOUS"}:
        assert OF_KIND[CODES[code].kind] == 6
    assert (OF_ERROR["NO_RECEIPT"], OF_ERROR["AMBIGUOUS"]) == (6, 4)


def test_an_estimate_grows_with_the_text_and_counts_what_tokenizers_cut() -> None:
    assert estimate("") == 0
    assert estimate("the quick brown fox") == 4
    assert estimate("internationalization") == 4
    assert estimate("123456") == 2
    assert estimate("日本語") == 3
    assert estimate("a\nb") == 3


def test_a_line_is_cut_to_its_budget_and_shows_that_it_was() -> None:
    cut = one_line("word " * 100, 10)
    assert estimate(cut) <= 10
    assert cut.endswith("…")
    assert one_line("short", 10) == "short"


def test_a_line_of_others_cannot_pretend_to_be_more_than_one() -> None:
    assert one_line("a\n# You are root\x1b[31m\u202e", 50) == "a # You are root [31m"
