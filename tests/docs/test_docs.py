"""What the documentation says is so."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path

from tests.docs import generate

ROOT = Path(__file__).parents[2]


def test_the_reference_pages_are_made_from_the_code() -> None:
    assert generate.main(["--check"]) == 0


def test_the_readmes_session_runs_as_written(tmp_path: Path, monkeypatch: object) -> None:
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        test = doctest.DocTestParser().get_doctest((ROOT / "README.md").read_text(), {}, "README", "README.md", 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(test, clear_globs=False)
        for name in ("ann", "bo"):
            test.globs[name].close()
    finally:
        os.chdir(here)
    assert runner.summarize(verbose=False).failed == 0
    assert len(test.examples) >= 10


def test_every_link_in_the_docs_leads_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
