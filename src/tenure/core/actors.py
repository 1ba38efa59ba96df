"""Who acted in an event: its agent and user; and whose claim or agent it is about, where that is another.

An agent acts, or a person, or time. The principal names the first two. A command that presents a genuine receipt, or
that speaks for an agent, acts as this agent where its principal names none. What time does, as the end of a lease, has
the holder as its agent: nobody else has to do with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.core.commands.command import Principal

if TYPE_CHECKING:
    from tenure.core.events import Event
    from tenure.core.task_records import Claim

HOLDER = "holder"  # in the details of an event: whose claim it is, where another acted
BY = "by"  # and who acted, where the event's agent is the one that it is about


class Acting(NamedTuple):
    principal: Principal
    speaker: str | None = None  # the agent that the command speaks for
    holder: str | None = None  # of the receipt that it presents

    @property
    def agent(self) -> str | None:
        return self.principal.agent or self.speaker or self.holder


def actor_of(acting: Acting, holder: str | None, *, is_time: bool) -> tuple[str | None, dict[str, Any]]:
    """The agent of an event about a claim, and what its details say beside it. `is_time`: nobody acts."""
    agent = holder if is_time else acting.agent
    return agent, {} if holder in (None, agent) else {HOLDER: holder}


def is_by_holder(event: Event, claim: Claim, user: str | None) -> bool:
    """Whether the event names nobody but the claim's agent and `user`, who claimed, by whoever's key."""
    is_user = user is None or event.user in (None, user) or event.user.startswith(f"{user} (")
    return event.agent in (None, claim.agent) and is_user


def other_than(event: Event, claim: Claim) -> str:
    """Who acted for the claim's agent: `ann`, `mia`, `ann (mia)`."""
    agent = None if event.agent == claim.agent else event.agent
    return f"{agent} ({event.user})" if agent and event.user else agent or event.user or "somebody"


def operator_of(acting: Acting, agent: str) -> dict[str, Any]:
    """What the details of an event about this agent say: who acted, if it was another."""
    who = acting.principal
    is_other = agent not in (who.agent, acting.speaker) and (who.agent or who.person)
    return {BY: who.name} if is_other else {}
