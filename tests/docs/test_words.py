"""What people read is written in the words of the glossary; what is left of the others only shrinks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import words

# Text → the words that must be found in it.
SENTENCES = {
    "two journeys instead of three": ["journey"],
    "guarded by a division by nought": ["nought"],
    "it is planned anew, and whoever waits is told": ["anew", "tell", "whoever"],
    "the store is away; it went away and was away for an hour": ["away", "away", "away"],
    "send it right away; the driver moves away from it": [],
    "the keys cannot be had": ["be had"],
    "hand it in, or have it handed in": ["hand in", "hand in"],
    "written by hand in the shell": [],
    "hold a task out to one agent, where it is held out": ["hold out", "hold out"],
    "this is no JSON, and a store that\nis no file": ["is no", "is no"],
    "there is no task, and it is no longer open": [],
    "the graph has no circle": ["circle"],
    "15 servers were sent home": ["send home"],
    "it goes the short way, a long way off": ["short way"],
    "what is due in a process of its own, and all that belongs to it": ["all that", "of its own", "what is"],
    "What is a claim?": [],
    "```console\n$ tenure done\nhanded in\n```\nanew\n": ["anew"],
    "the code `told.js` and the flag `--anew`": [],
}


@pytest.mark.parametrize("text", SENTENCES)
def test_a_word_is_found_where_it_is_meant_and_not_elsewhere(text: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(text)
    assert sorted(use.word for use in words.uses(tmp_path)) == SENTENCES[text]


def test_comments_and_sentences_in_code_are_read_and_identifiers_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "tenure" / "engine" / "verbs"
    folder.mkdir(parents=True)
    (folder / "claim.py").write_text('"""Runs anew."""\ntold = "told"  # tells nobody\nerror = f"{told} is no JSON"\n')
    assert words.counts(tmp_path) == {"src/tenure/engine": {"anew": 1, "is no": 1, "tell": 1}}


def test_pages_made_from_the_code_are_not_counted_twice(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(f"{words.GENERATED} `./x docs`; edit there. -->\nanew\n")
    assert words.counts(tmp_path) == {}


def test_no_text_uses_more_of_the_old_words_than_are_left() -> None:
    left, now = words.left(), words.counts()
    rows = [(folder, word) for table in (left, now) for folder, found in table.items() for word in found]
    changed = {row: (left.get(row[0], {}).get(row[1], 0), now.get(row[0], {}).get(row[1], 0)) for row in sorted(rows)}
    more = [f"{folder}: {word}: {new}, {old} are left" for (folder, word), (old, new) in changed.items() if new > old]
    fewer = [f"{folder}: {word}: {new} of {old}" for (folder, word), (old, new) in changed.items() if new < old]
    assert more == [], "`python -m tests.docs.words FOLDER` lists them; docs/reference/glossary.md has the better words"
    assert fewer == [], "well done: `python -m tests.docs.words --lower` writes the lower counts"


def test_the_documentation_is_free_of_them() -> None:
    assert [folder for folder in words.left() if folder in (".", "docs", "tests/docs")] == []
