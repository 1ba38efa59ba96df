"""Which module decides which command: the one table. A module is loaded with its first command: a start stays cheap."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from tenure.core import commands as c
from tenure.core.outcomes import Outcome
from tenure.engine.work import Handlers, Work

THEMES: dict[str, tuple[type[c.Command], ...]] = {
    "claiming": (c.Claim, c.ClaimNext),
    "holding": (c.Renew, c.Start, c.Progress, c.Checkpoint, c.Fail, c.Release, c.Ask),
    "submitting": (c.Submit,),
    "checks.validating": (c.TakeValidation, c.RenewValidation, c.Judge, c.Undecide, c.Approve, c.Reject),
    "spending": (c.Usage,),
    "landing": (c.Land,),
    "artifacts.putting": (c.PutArtifact,),
    "graphs": (c.Add, c.Link, c.Unlink, c.Publish, c.Spawn, c.Wait),
    "operating": (
        c.Pause, c.Resume, c.Answer, c.Cancel, c.Retry, c.Reset, c.Adopt, c.Archive, c.Assign, c.Reassign, c.Recover,
        c.Abort, c.Note,
    ),
    "editing": (c.Edit,),
    "projects": (c.DefineProject, c.DefineTrack, c.StopLine, c.StartLine),
    "people": (c.Register, c.Heartbeat, c.Drain, c.Terminate, c.ResumeAgent, c.Leave, c.Gone),
    "planning": (c.Plan,),
    "undoing": (c.Undo,),
    "mail": (c.Send, c.Read),
    "reserving": (c.Reserve, c.RenewReservation, c.Unreserve),
    "leading": (c.Lead, c.StepDown),
    "sources.scheduling": (c.SetSchedule, c.PauseSchedule, c.ResumeSchedule, c.RemoveSchedule, c.RunSchedule),
    "sources.triggering": (
        c.SetTrigger, c.PauseTrigger, c.ResumeTrigger, c.RemoveTrigger, c.RotateSecret, c.TryTrigger,
    ),
    "sources.delivering": (c.Deliver,),
    "sources.watching": (c.SetWatch,),
    "budgets.allotting": (c.SetBudget, c.RemoveBudget, c.MoveBudget),
    "keys": (c.CreateKey, c.RotateKey, c.RevokeKey),
}  # fmt: skip
_THEME_OF = {kind: theme for theme, kinds in THEMES.items() for kind in kinds}
_LOADED: Handlers = {}


def is_known(kind: type[c.Command]) -> bool:
    return kind in _THEME_OF


def handler_of(kind: type[c.Command]) -> Callable[[Work, c.Command], Outcome]:
    """The function that decides commands of this kind."""
    if kind not in _LOADED:
        _LOADED.update(import_module(f"tenure.engine.{_THEME_OF[kind]}").HANDLERS)
    return _LOADED[kind]
