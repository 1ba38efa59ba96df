"""Who acted for a claim's agent, as the events of the claim say. `core/commands/command.py` decides what they say."""

from __future__ import annotations

from tenure.core.events import Event
from tenure.core.task_records import Claim


def is_by_holder(event: Event, claim: Claim, user: str | None) -> bool:
    """Whether the event names nobody but the claim's agent and `user`, who claimed, by anybody's key."""
    is_user = user is None or event.user in (None, user) or event.user.startswith(f"{user} (")
    return event.agent in (None, claim.agent) and is_user


def other_than(event: Event, claim: Claim) -> str:
    """Who acted for the claim's agent: `ann`, `mia`, `ann (mia)`."""
    agent = None if event.agent == claim.agent else event.agent
    return f"{agent} ({event.user})" if agent and event.user else agent or event.user or "somebody"
