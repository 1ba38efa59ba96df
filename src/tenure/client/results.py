"""Typed answers of the verbs: each is an Outcome, whose type says what its verb guarantees.

A refusal is an answer, not an exception: look at `ok`, or call `check()`, which raises it as an error and otherwise
returns the answer with the fields that success guarantees. No rule lives here: the codes are those of core/outcomes.py.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from tenure.core.outcomes import CODES, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenure.core.views import TaskLine, TaskView

    Row = Mapping[str, Any]

_FIELDS = Outcome.__struct_fields__
_values = attrgetter(*_FIELDS)


class Result(Outcome, frozen=True, kw_only=True):
    """An answer. `outcome` is its code, `message` states the fact, `hint` what to do; unset fields are None."""

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """The answer as this verb's type."""
        return cls(**dict(zip(_FIELDS, _values(outcome), strict=True)))

    def check(self) -> Self:
        """This answer if it was done; otherwise raises Refused, or the subclass for the kind of refusal."""
        if not self.ok:
            from tenure.client.refusals import refused_as

            raise refused_as(self, CODES[self.outcome].kind)
        return self

    def __repr__(self) -> str:
        name = (self.task or {}).get("key") or (self.receipt or "").partition("@")[0]
        text = " ".join(str(part) for part in (self.outcome, name, self.state) if part)
        return f"<{type(self).__name__} {text}{': ' + self.message if self.message else ''}>"


# --- tasks --------------------------------------------------------------------------------------------------


class Added(Result, frozen=True, kw_only=True):
    """The created task, or the one with the same idempotency key (EXISTS)."""

    if TYPE_CHECKING:
        task: TaskView


class AddedMany(Result, frozen=True, kw_only=True):
    """The tasks, in the order of the call."""

    if TYPE_CHECKING:
        tasks: tuple[TaskLine, ...]


class Planned(Result, frozen=True, kw_only=True):
    """`tasks` that were created; keys that were `changed`, are `missing` from the plan, or `left` as they are."""

    if TYPE_CHECKING:
        tasks: tuple[TaskView, ...]


class Spawned(Result, frozen=True, kw_only=True):
    """`tasks` has the subtasks, in the order of the call."""


class Updated(Result, frozen=True, kw_only=True):
    """A task after an operator's command: its `state` and `version`, the remaining `pauses`."""


class Next(Result, frozen=True, kw_only=True):
    """The `task` that a claim would get now, with its `inputs`; else `counts` of why there is none."""


# --- claims -------------------------------------------------------------------------------------------------


class Claimed(Result, frozen=True, kw_only=True):
    """The answer to a claim: `check()` returns the Grant. A denial has the `holder`, or `counts` and `retry_in`."""

    if TYPE_CHECKING:

        def check(self) -> Grant:
            """The grant; raises Refused where there is none."""

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        kind: Any = Grant if outcome.receipt is not None else cls
        made: Self = kind(**dict(zip(_FIELDS, _values(outcome), strict=True)))
        return made

    @property
    def grants(self) -> list[Grant]:
        """The granted claims: several where `n` was more than one."""
        several = [self] if self.claims is None else self.claims
        return [Grant.of(one) for one in several if one.receipt]


class Grant(Claimed, frozen=True, kw_only=True):
    """A granted claim. The receipt proves it; `generation` is the fencing number for effects elsewhere.

    `inputs` has the outputs of its dependencies, `checkpoint` and `artifacts` are of earlier attempts.
    """

    if TYPE_CHECKING:
        task: TaskView
        receipt: str
        generation: int
        attempt: int


class Held(Result, frozen=True, kw_only=True):
    """The `state` of a held task after its holder's command, its `lease`, and a `directive` to the holder."""


class Submitted(Held, frozen=True, kw_only=True):
    """What became of a result: accepted, waiting for a `validation`, or refused and kept, with the `reasons`."""


class Validation(Result, frozen=True, kw_only=True):
    """A `validation` that was taken, with its `receipt` and `task`; renewed, or decided."""


# --- the team -----------------------------------------------------------------------------------------------


class Team(Result, frozen=True, kw_only=True):
    """An `agent`, or the leader's `term`, after the command."""


class Reserved(Result, frozen=True, kw_only=True):
    """A reservation: its `receipt` renews and ends it. A denial has the `conflict` and its `holder`."""


class Mail(Result, frozen=True, kw_only=True):
    """`messages` that were sent or read."""


# --- settings -----------------------------------------------------------------------------------------------


class Changed(Result, frozen=True, kw_only=True):
    """A `budget`, `schedule`, `trigger`, `webhook` or sink after the command; `secret` only where it is new."""


class Stored(Result, frozen=True, kw_only=True):
    """The `artifact` that was put: name, type, size and digest."""
