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


def test_the_readmes_session_runs_as_written(tmp_path: Path) -> None:
    here = Path.cwd()
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
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    links = [(page, target) for page in pages for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())]
    assert [f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()] == []
