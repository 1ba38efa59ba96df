"""Refusals as errors, for callers who want `check()` to raise: one class for each kind of outcome."""

from __future__ import annotations

from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome


class Refused(TenureError):
    """A command that was refused. `code` is that of its outcome, which has the details."""

    code = "REFUSED"

    def __init__(self, message: str, hint: str | None = None, *, outcome: Outcome | None = None) -> None:
        super().__init__(message, hint)
        self.outcome = outcome or Outcome(outcome="DENIED_STATE", message=message)
        if outcome is not None:
            self.code = outcome.outcome


class NothingToClaim(Refused):
    """No task that this agent may claim now."""


class HeldByAnother(Refused):
    """Another claim or process has it."""


class StaleReceipt(Refused):
    """The claim has ended, or another has taken over."""


class Denied(Refused):
    """The task, agent or project does not allow it now."""


class NotAccepted(Refused):
    """The content was not accepted: its version, contract or template."""


class NoSuchTask(Refused):
    """No such task in this project."""


_OF_KIND = {
    "nothing": NothingToClaim,
    "held": HeldByAnother,
    "stale": StaleReceipt,
    "denied": Denied,
    "invalid": NotAccepted,
    "missing": NoSuchTask,
}


def refused_as(outcome: Outcome, kind: str) -> Refused:
    return _OF_KIND[kind](outcome.message or outcome.outcome, outcome.hint, outcome=outcome)
