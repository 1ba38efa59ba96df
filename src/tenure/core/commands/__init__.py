"""The commands of the engine: one struct per verb, the same for CLI, HTTP, MCP and SDK.

A task is named by id, key, short key (`B-003`) or an unambiguous prefix. Durations are seconds here, as on the wire;
rows keep microseconds. Instants are microseconds UTC. `core/inputs.py` checks the values.
"""

from __future__ import annotations

from typing import Any, Union

from tenure.core.commands.budget_commands import ConfirmUsage, MoveBudget, RejectUsage, RemoveBudget, SetBudget
from tenure.core.commands.command import OWNER, Command, Principal
from tenure.core.commands.graph_commands import (
    Add,
    AddMany,
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
    OpenSecrets,
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
    AssignTrack,
    AuditOn,
    Cancel,
    DefineProject,
    DefineTrack,
    Edit,
    Note,
    Pause,
    Reassign,
    Recover,
    ReleaseTrack,
    Reorder,
    Reseal,
    Reset,
    Resume,
    Retry,
    RotateDataKey,
    StartLine,
    StopLine,
    Undo,
)
from tenure.core.commands.pool_commands import PausePool, RemovePool, ResumePool, SetPool
from tenure.core.commands.relay_commands import PauseRelay, RemoveRelay, ResumeRelay, RewindRelay
from tenure.core.commands.source_commands import (
    Deliver,
    Emit,
    FilesChanged,
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
from tenure.core.commands.tenant_commands import (
    AddTenant,
    ChangeMember,
    ChangeTenant,
    CloseTenant,
    InviteMember,
    RemoveMember,
    ReopenTenant,
)
from tenure.core.commands.validation_commands import Approve, Judge, Reject, RenewValidation, TakeValidation, Undecide
from tenure.core.commands.webhook_commands import (
    PauseWebhook,
    RemoveWebhook,
    ReplayWebhook,
    ResumeWebhook,
    RotateWebhook,
    SetWebhook,
    TestWebhook,
)

ALL: tuple[type[Command], ...] = tuple(Command.__subclasses__())
AnyCommand: Any  # what a decoder of any of them takes


def __getattr__(name: str) -> Any:
    if name == "AnyCommand":  # made at its first use: it compares each of a hundred types with the others
        globals()[name] = made = Union[ALL]  # noqa: UP007
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
