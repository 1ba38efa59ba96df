"""Everything that can be asked of the engine: one struct a verb, the same for CLI, HTTP, MCP and SDK.

A task is named by id, key, short key (`B-003`) or an unambiguous beginning. Durations are seconds here, as people
and wires speak of them; rows keep microseconds. Instants are microseconds UTC. `core/inputs.py` checks the values.
"""

from __future__ import annotations

from tenure.core.commands.budget_commands import MoveBudget, RemoveBudget, SetBudget
from tenure.core.commands.command import OWNER, Command, Principal
from tenure.core.commands.graph_commands import (
    Add,
    Dependency,
    Link,
    NewTask,
    NewTrack,
    Plan,
    Publish,
    Template,
    Unlink,
)
from tenure.core.commands.holder_commands import (
    Ask,
    ClaimNext,
    ClaimTask,
    Fail,
    Land,
    Process,
    Progress,
    PutArtifact,
    Release,
    Renew,
    ReportUsage,
    SaveCheckpoint,
    Spawn,
    Start,
    Submit,
    Totals,
    Wait,
)
from tenure.core.commands.key_commands import CreateKey, RevokeKey, RotateKey
from tenure.core.commands.operator_commands import (
    Abort,
    Adopt,
    Answer,
    Archive,
    Assign,
    Cancel,
    DefineProject,
    DefineTrack,
    Edit,
    Note,
    Pause,
    Reassign,
    Recover,
    Reset,
    Resume,
    Retry,
    StartLine,
    StopLine,
    Undo,
)
from tenure.core.commands.source_commands import (
    Deliver,
    PauseSchedule,
    PauseTrigger,
    RemoveSchedule,
    RemoveTrigger,
    ResumeSchedule,
    ResumeTrigger,
    RotateSecret,
    RunSchedule,
    SetSchedule,
    SetTrigger,
    SetWatch,
    TryTrigger,
)
from tenure.core.commands.team_commands import (
    Drain,
    Gone,
    Heartbeat,
    Lead,
    Leave,
    Read,
    Register,
    RenewReservation,
    Reserve,
    ResumeAgent,
    Send,
    StepDown,
    Terminate,
    Unreserve,
)
from tenure.core.commands.validation_commands import Approve, Judge, Reject, RenewValidation, TakeValidation, Undecide

__all__ = [
    "OWNER",
    "Abort",
    "Add",
    "Adopt",
    "Answer",
    "AnyCommand",
    "Approve",
    "Archive",
    "Ask",
    "Assign",
    "Cancel",
    "ClaimNext",
    "ClaimTask",
    "Command",
    "CreateKey",
    "DefineProject",
    "DefineTrack",
    "Deliver",
    "Dependency",
    "Drain",
    "Edit",
    "Fail",
    "Gone",
    "Heartbeat",
    "Judge",
    "Land",
    "Lead",
    "Leave",
    "Link",
    "MoveBudget",
    "NewTask",
    "NewTrack",
    "Note",
    "Pause",
    "PauseSchedule",
    "PauseTrigger",
    "Plan",
    "Principal",
    "Process",
    "Progress",
    "Publish",
    "PutArtifact",
    "Read",
    "Reassign",
    "Recover",
    "Register",
    "Reject",
    "Release",
    "RemoveBudget",
    "RemoveSchedule",
    "RemoveTrigger",
    "Renew",
    "RenewReservation",
    "RenewValidation",
    "ReportUsage",
    "Reserve",
    "Reset",
    "Resume",
    "ResumeAgent",
    "ResumeSchedule",
    "ResumeTrigger",
    "Retry",
    "RevokeKey",
    "RotateKey",
    "RotateSecret",
    "RunSchedule",
    "SaveCheckpoint",
    "Send",
    "SetBudget",
    "SetSchedule",
    "SetTrigger",
    "SetWatch",
    "Spawn",
    "Start",
    "StartLine",
    "StepDown",
    "StopLine",
    "Submit",
    "TakeValidation",
    "Template",
    "Terminate",
    "Totals",
    "TryTrigger",
    "Undecide",
    "Undo",
    "Unlink",
    "Unreserve",
    "Wait",
]  # fmt: skip

AnyCommand = (
    ClaimTask
    | ClaimNext
    | Renew
    | Start
    | Progress
    | SaveCheckpoint
    | ReportUsage
    | Land
    | Submit
    | Fail
    | Release
    | Ask
    | Spawn
    | Wait
    | PutArtifact
    | TakeValidation
    | RenewValidation
    | Judge
    | Undecide
    | Approve
    | Reject
    | Add
    | Plan
    | Link
    | Unlink
    | Publish
    | Pause
    | Resume
    | Answer
    | Cancel
    | Retry
    | Reset
    | Adopt
    | Archive
    | Edit
    | Assign
    | Reassign
    | Recover
    | Abort
    | Note
    | Undo
    | StopLine
    | StartLine
    | DefineProject
    | DefineTrack
    | Register
    | Heartbeat
    | Drain
    | Terminate
    | ResumeAgent
    | Leave
    | Gone
    | Send
    | Read
    | Reserve
    | RenewReservation
    | Unreserve
    | Lead
    | StepDown
    | SetSchedule
    | PauseSchedule
    | ResumeSchedule
    | RemoveSchedule
    | RunSchedule
    | SetTrigger
    | PauseTrigger
    | ResumeTrigger
    | RemoveTrigger
    | RotateSecret
    | TryTrigger
    | Deliver
    | SetWatch
    | SetBudget
    | RemoveBudget
    | MoveBudget
    | CreateKey
    | RotateKey
    | RevokeKey
)
