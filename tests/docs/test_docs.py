"""What the documentation says is so."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs import generate, sessions

ROOT = Path(__file__).parents[2]


def test_the_reference_pages_are_made_from_the_code() -> None:
    assert generate.main(["--check"]) == 0


def test_the_readmes_session_runs_as_written(tmp_path: Path) -> None:
    steps = sessions.steps_of((ROOT / "README.md").read_text())
    assert len(steps) >= 8
    environ = sessions.environment(tmp_path / "home")
    for step in steps:
        said = sessions.run(step.command, tmp_path, environ)
        assert sessions.matches(step.said, said), f"$ {step.command}\nsaid: {said}\nnot: {step.said}"


def test_every_link_in_the_docs_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    links = [(page, target) for page in pages for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())]
    assert [f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()] == []
