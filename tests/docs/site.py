"""Builds the documentation as a site with search, from the same files: `./x docs --site [FOLDER]`.

The pages beside `docs/` (architecture, reliability, changes) become pages of the site. The site loads nothing from
other hosts. A link to a page or anchor that does not exist fails the build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
BESIDE = ("ARCHITECTURE.md", "RELIABILITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
SECTIONS = {"Tutorial": "tutorial", "How to": "how-to", "Reference": "reference", "Explanation": "explanation"}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
SETTINGS = """\
[project]
site_name = "tenure"
site_description = "Fenced task claims for teams of AI agents"
use_directory_urls = false
nav = [{nav}]

[project.theme]
font = false
features = ["content.code.copy", "navigation.top", "search.highlight"]
palette = [
  {{ media = "(prefers-color-scheme: light)", scheme = "default" }},
  {{ media = "(prefers-color-scheme: dark)", scheme = "slate" }},
]

[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
[project.markdown_extensions.pymdownx.superfences]
[project.markdown_extensions.pymdownx.highlight]
"""


def staged(page: Path) -> str:
    """The page's text, with links as they are in the site; a link to a file that is not a page becomes its text."""

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target:
            return found[0]
        file = Path(os.path.normpath(page.parent / target))
        if file.name in BESIDE and file.parent == ROOT:
            file = ROOT / "docs" / file.name
        if not file.is_relative_to(ROOT / "docs"):
            return text
        start = ROOT / "docs" if page.parent == ROOT else page.parent
        return f"[{text}]({os.path.relpath(file, start)}{anchor})"

    return LINK.sub(link, page.read_text())


def nav(docs: Path) -> str:
    parts = ['{"Home" = "index.md"}']
    for name, folder in SECTIONS.items():
        pages = ", ".join(f'"{page.relative_to(docs)}"' for page in sorted((docs / folder).rglob("*.md")))
        parts.append(f'{{"{name}" = [{pages}]}}')
    parts.append('{"Project" = [' + ", ".join(f'"{name}"' for name in BESIDE) + "]}")
    return ", ".join(parts)


def build(to: Path) -> int:
    """Write the site to `to`; the exit code of the generator."""
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs"
        shutil.copytree(ROOT / "docs", docs)
        for page in docs.rglob("*.md"):
            page.write_text(staged(ROOT / "docs" / page.relative_to(docs)))
        for name in BESIDE:
            (docs / name).write_text(staged(ROOT / name))
        (Path(folder) / "zensical.toml").write_text(SETTINGS.format(nav=nav(docs)))
        env = {**os.environ, "NO_COLOR": "1"}
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        code = subprocess.run(command, cwd=folder, env=env, check=False).returncode
        if not code:
            shutil.copytree(Path(folder) / "site", to, dirs_exist_ok=True)
        return code


def main(arguments: list[str]) -> int:
    to = Path(arguments[0] if arguments else ROOT / "build" / "site").absolute()
    code = build(to)
    if not code:
        sys.stdout.write(f"the site is in {to}; open index.html there\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
