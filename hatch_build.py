"""The README of the package: without links into the repository, which a package index cannot follow.

Once the project has a public address, `[project.urls]` names it as `Source`, and the links lead there.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)")


class Readme(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": packaged(text, source)}


def packaged(text: str, source: str | None) -> str:
    """The text with links below the address of the sources; without one, with the words of its links alone."""

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        if source is None:
            return "" if image else words
        return f"{image}[{words}]({source.rstrip('/')}/{'raw' if image else 'blob'}/main/{target})"

    return _LINK.sub(link, text)
