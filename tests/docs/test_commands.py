"""Every command that a page names, in a block or in a sentence, has a verb and options that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tenure.cli.main import Usage, _joined, _leading, _verb, function_of, parser_of
from tenure.cli.verbs import VERBS
from tests.docs.test_docs import PAGES

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SENTENCE = re.compile(r"`(tenure [^`]+)`")
IS_SHELL = ("", "console", "sh")
# A sentence may name a command without its arguments, or an option without its value.
LEFT_OUT = ("the following arguments are required", "expected one argument", "expected at least one argument")
PLUGGED_IN = ("help", "deploy")  # `help` has no options; `deploy` is the plug-in that a page writes


def commands_of(page: str) -> list[str]:
    named = []
    for language, block in BLOCK.findall(page):
        if language in IS_SHELL:
            lines = block.replace("\\\n", " ").splitlines()
            parts = [part for line in lines for part in re.split(r" && | ; |\| ", line.removeprefix("$ "))]
            named += [re.sub(r"^\s*(\w+=\S+ )*", "", part).partition("  #")[0] for part in parts]
    named += [re.sub(r"\s+", " ", command) for command in SENTENCE.findall(BLOCK.sub("", page))]
    return [re.sub(r"…| >.*| &$", "", command).strip() for command in named if command.startswith("tenure ")]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_every_command_on_a_page_is_understood(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for command in commands_of(page.read_text()):
        _, words = _leading(shlex.split(command)[1:])
        if not words or words[0] in PLUGGED_IN:
            continue
        try:
            name, rest = _verb(words)
            _write_files(rest)
            parser_of(name, function_of(VERBS[name].where)).parsed(_joined(rest))
        except Usage as error:
            if not any(reason in error.message for reason in LEFT_OUT):
                wrong.append(f"{command}: {error.message}")
    assert wrong == []


def _write_files(words: list[str]) -> None:
    for word in words:
        if re.fullmatch(r"@[\w./-]+", word) and "." in word:
            path = Path(word[1:])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
