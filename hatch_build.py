"""The README of the package, whose links a package index can follow.

With `Source` in `[project.urls]` its links lead there. While the project has no public address they would lead nowhere:
they are left out, with what only a checkout can use, and the page says where the documentation is.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)")
_LINKS_ALONE = re.compile(rf"(?<=[.:])\s+{_LINK.pattern}(?: ·\s+{_LINK.pattern})*(?=\n)")  # "See" without a sentence
_CHECKOUT = re.compile(r"^## Develop\n.*?(?=^Apache)", re.DOTALL | re.MULTILINE)
_FROM_CHECKOUT = re.compile(r"^Tenure is not in a package index yet.*?^```$", re.DOTALL | re.MULTILINE)
_INSTALLED = """\
```sh
tenure demo                 # watch one agent die and another take over, in ten seconds
```"""
_DOCUMENTATION = """\
## Documentation
The source distribution has it, in `docs/`. `tenure help --all` lists
every command, and `tenure COMMAND -h` explains one.

"""


class Readme(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": packaged(text, source)}


def packaged(text: str, source: str | None) -> str:
    """The text with links below the address of the sources; without one, with the words of its links alone."""
    if source is None:
        text = _FROM_CHECKOUT.sub(lambda _: _INSTALLED, text, count=1)
        text = _CHECKOUT.sub(lambda _: _DOCUMENTATION, _LINKS_ALONE.sub("", text))

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        if source is None:
            return "" if image else words
        return f"{image}[{words}]({source.rstrip('/')}/{'raw' if image else 'blob'}/main/{target})"

    return re.sub(r"\n{3,}", "\n\n", _LINK.sub(link, text))
