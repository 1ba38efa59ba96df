"""Help: short by default, whole on request, with examples that are true."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tenure.cli import text_format
from tenure.cli.examples import EXAMPLES
from tenure.cli.main import _joined, _verb, function_of, parser_of
from tenure.cli.verbs import EVERYDAY, GROUPS, VERBS, everyday, overview
from tenure.core.priority import TIERS
from tenure.core.retry import STRATEGIES
from tenure.engine.reads.tasks import ORDERS
from tests.cli.conftest import Tenure


def test_bare_tenure_is_a_screen_of_everyday_verbs() -> None:
    lines = everyday().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for names in EVERYDAY.values():
        for name in names:
            assert VERBS[name].text in everyday()
    assert all(f"  {name} " in overview() for name in VERBS)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_help_fits_a_terminal_of_80_columns(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(text_format, "terminal_width", lambda: 80)
    with pytest.raises(SystemExit):
        parser_of(verb, function_of(VERBS[verb].where)).parsed(["-h"])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_a_paragraph_is_wrapped_as_a_whole() -> None:
    long = "word " * 23 + "needs\nan owner, and the log has both.\n\nshort one\nshort two"
    assert text_format.refilled(long, 78).splitlines() == [
        ("word " * 15).rstrip(),
        "word word word word word word word word needs an owner, and the log has both.",
        "",
        "short one",
        "short two",
    ]


def test_the_list_of_all_verbs_fits_a_terminal_of_80_columns() -> None:
    assert [line for line in overview().splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("group", sorted(GROUPS - VERBS.keys()))
def test_help_of_a_group_lists_its_verbs(group: str, tenure: Tenure) -> None:
    for flag in ("-h", "--help"):
        said = tenure(group, flag)
        assert said.code == 0
        assert all(name in said.out for name in VERBS if name.startswith(f"{group} "))
    assert tenure(group).code == 2


def test_every_verb_has_two_examples_of_its_own() -> None:
    lacking = [name for name in VERBS if len(EXAMPLES.get(name, ())) < 2]
    assert lacking == [], "add them to the table in tenure/cli/examples.py"
    assert set(EXAMPLES) <= set(VERBS)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_examples_of_a_verb_are_understood(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = parser_of(verb, function_of(VERBS[verb].where))
    for example in EXAMPLES.get(verb, ()):
        words = shlex.split(example)[1:]
        for word in words:
            if word.startswith("@") and "." in word:
                (tmp_path / word[1:]).write_text("{}")
        name, rest = _verb(words)
        assert name == verb, example
        parser.parse_intermixed_args(_joined(rest))
    assert "examples:" in parser.format_help()


def test_the_help_of_an_option_names_the_values_that_it_takes() -> None:
    """Where help lists values in words: those of the rules, and no others."""
    listed = {
        ("add", "--retry"): (f"{', '.join(STRATEGIES[:-1])} or {STRATEGIES[-1]}"),
        ("add", "--priority"): ", ".join(TIERS),
        ("list", "--order"): f"{', '.join(ORDERS[:-1])} or {ORDERS[-1]}",
    }
    for (verb, option), values in listed.items():
        declared = getattr(function_of(VERBS[verb].where), "declared", ())
        (help_,) = [settings["help"] for names, settings in declared if option in names]
        assert help_.startswith(values), (verb, option)


def test_no_help_leads_to_a_file_that_only_the_repository_has() -> None:
    for verb in VERBS:
        assert "docs/" not in parser_of(verb, function_of(VERBS[verb].where)).format_help(), verb
