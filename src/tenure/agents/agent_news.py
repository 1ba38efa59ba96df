"""News for an agent, shown with the answer to its command: unread mail and directives.

The hot answers (claim, submit) are made without it, so that their statements stay short; the interfaces that agents
use ask for it after each command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tenure.core.errors import TenureError
from tenure.core.safe_text import one_line

if TYPE_CHECKING:
    from tenure.client import Client
    from tenure.core.outcomes import Outcome

QUIET = frozenset({"continue", "changed"})  # `changed` is shown with its diff
# What a refused command asks of its sender.
REFUSED = {
    "abort": "stop: you no longer hold this task; change nothing more for it",
    "cancel": "stop, and discard your work on this task",
    "pause": "stop and save a checkpoint",
    "terminated": "claim nothing more: an operator has terminated this agent",
}


def news_of(client: Client, outcome: Outcome | None = None) -> dict[str, Any]:
    """`mail` and `directives` for an agent; what `outcome` asks comes first. Empty where they cannot be read."""
    try:
        found = client.agent_news()
    except TenureError:  # the command had its effect; a server of another version may not have this query
        return {}
    asked = [dict(one) for one in found["directives"]]
    directive = outcome.directive if outcome is not None and not outcome.ok else None
    if directive in REFUSED and directive not in {one["directive"] for one in asked}:
        asked.insert(0, {"directive": directive, "text": REFUSED[directive]})
    return {"mail": found["mail"], **({"directives": asked} if asked else {})}


def lines(news: Mapping[str, Any]) -> list[str]:
    """The news for a terminal; nothing where there is none."""
    said = []
    for one in news.get("directives", ()):
        if one["directive"] not in QUIET:
            about = f" {one['task']}" if one.get("task") else ""
            said.append(f"directive{about}: {one['directive']}: {one_line(one['text'])}")
    if news.get("mail"):
        count = news["mail"]
        said.append(f"mail: {count} unread {'message' if count == 1 else 'messages'}; `tenure inbox` shows them")
    return said
