"""`tenure help`, `tenure --version`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tenure.cli.verbs import SECTIONS


def general(words: Sequence[str]) -> int:
    if "-V" in words or "--version" in words:
        from tenure import __version__

        sys.stdout.write(f"tenure {__version__}\n")
        return 0
    asked = [word for word in words if not word.startswith("-") and word != "help"]
    if asked:  # `tenure help claim` is `tenure claim -h`
        from tenure.cli.main import main

        return main([*asked, "-h"])
    sys.stdout.write(overview())
    return 0


def overview() -> str:
    lines = ["usage: tenure [-C DIR] VERB …", "", "Fenced task claims for teams of AI agents."]
    for title, section in SECTIONS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<17} {verb.text}" for name, verb in section.items()]
    lines += [
        "",
        "`tenure VERB -h` shows its options. Every verb takes `--json` and then prints exactly one JSON value.",
    ]
    return "\n".join(lines) + "\n"
