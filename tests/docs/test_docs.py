"""What the documentation says is so."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs import generate, sessions

ROOT = Path(__file__).parents[2]
PAGES = [page for pattern in ("*.md", "docs/**/*.md", "bench/*.md") for page in ROOT.glob(pattern)]


def test_the_reference_pages_are_made_from_the_code() -> None:
    assert generate.main(["--check"]) == 0


def test_the_readmes_session_runs_as_written(tmp_path: Path) -> None:
    steps = sessions.steps_of((ROOT / "README.md").read_text())
    assert len(steps) >= 8
    environ = sessions.environment(tmp_path / "home")
    sessions.play(steps, tmp_path, environ)


def test_nothing_says_to_install_from_an_index_that_does_not_have_it() -> None:
    """Until it is published, somebody else could publish under the name."""
    texts = [*PAGES, *(ROOT / "src").rglob("*.py")]
    found = [
        f"{path.name}: {line.strip()}"
        for path in texts
        if path.name != "CHANGELOG.md"
        for line in path.read_text().splitlines()
        if re.search(r"(?:(?:pip|pipx|uv|tool) (?:install|add)|uvx)\s+['\"]?tenure\b", line)
    ]
    assert found == []


def test_every_link_in_the_docs_leads_somewhere() -> None:
    links = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())]
    assert [f"{page.name}: {target}" for page, target in links if not (page.parent / target).exists()] == []


def test_every_link_to_an_anchor_of_the_docs_finds_it() -> None:
    missing = []
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            text = (page.parent / target if target else page).read_text()
            headings = [
                re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.+)$", text, re.M)
            ]
            if anchor not in headings and f'<a id="{anchor}"></a>' not in text:
                missing.append(f"{page.name}: {target}#{anchor}")
    assert missing == []


def test_every_decision_has_an_anchor_and_a_date() -> None:
    entry = re.compile(r'- <a id="([a-z0-9-]+)"></a>\*\*.+\*\*.* \*\(20\d\d-\d\d-\d\d\)\*')
    for page in (ROOT / "docs" / "explanation" / "decisions").glob("*.md"):
        entries = [line for line in page.read_text().splitlines() if line.startswith("- ")]
        found = [match.group(1) for line in entries if (match := entry.fullmatch(line))]
        assert len(found) == len(entries) == len(set(found)), f"{page.name}: an entry has no anchor or no date"


def test_every_record_of_a_decision_has_its_four_parts() -> None:
    records = sorted((ROOT / "docs" / "explanation" / "decisions" / "records").glob("*.md"))
    parts = ["Context", "Decision", "Consequences", "Rejected alternatives"]
    assert len(records) == 12
    assert [page.name for page in records if re.findall(r"^## (.+)$", page.read_text(), re.M) != parts] == []


def test_every_module_that_a_page_names_exists() -> None:
    packages = {path.name for path in (ROOT / "src" / "tenure").iterdir() if path.is_dir()}
    named = [(page, name) for page in PAGES for name in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)[`:]", page.read_text())]
    ours = [(page, name) for page, name in named if name.split("/")[0] in packages]
    assert [f"{page.name}: {name}" for page, name in ours if not (ROOT / "src" / "tenure" / name).exists()] == []
