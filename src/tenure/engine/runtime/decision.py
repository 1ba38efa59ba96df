"""How one command is decided: who may give it, whether it was answered before, and which function decides it.

Repeats: one effect and the same answer for a request that is sent again. A claim keeps the last few requests made with
its receipt, so a repeat gets the same answer after another agent has claimed, after the end of the task, and in a new
epoch. Claims and tasks keep their own request in their row, and a submit in its result. The rest (create without a key,
edits, operators' verbs, mail, standalone reservations) is kept for a day in separate rows. Renewals and reservations
grant something that must still hold when the repeat is answered: their receipt is judged first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from tenure.core import claims, limits, roles
from tenure.core import commands as c
from tenure.core.commands import Principal
from tenure.core.commands.command import digest_of, is_same
from tenure.core.decoders import converted
from tenure.core.errors import Bug, InvalidInput, RequestIdReused, StoreError, TenureError
from tenure.core.ids import is_genuine, parse_receipt
from tenure.core.inputs import Checked
from tenure.core.outcomes import Outcome
from tenure.core.records import Answered, Claim, Project, Request, replace
from tenure.engine.checks.evidence import NeedsEvidence
from tenure.engine.runtime.context import Context
from tenure.engine.runtime.rows import task_by_ref
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, Handlers, Refused, Reply, RunAgain, UnitOfWork

_KNOWN = frozenset(c.ALL)
# The others are refused in a project that does not exist. A delivery must not reveal whether it does.
_WITHOUT_PROJECT = frozenset(
    {c.DefineProject, c.Deliver, c.RotateDataKey, c.CreateKey, c.RotateKey, c.RevokeKey, c.Lead, c.StepDown}
    | {c.PauseRelay, c.ResumeRelay, c.RewindRelay, c.RemoveRelay}
    | {c.AddTenant, c.ChangeTenant, c.CloseTenant, c.ReopenTenant, c.InviteMember, c.ChangeMember, c.RemoveMember}
)
_OF_TEXTS = frozenset({c.Edit, c.Retry, c.SetSchedule, c.SetTrigger, c.Add, c.AddMany, c.Plan, c.Spawn})
_LOADED: Handlers = {}


def is_known(kind: type[c.Command]) -> bool:
    return kind in _KNOWN


def decided(work: UnitOfWork, item: Checked, principal: Principal) -> Reply:
    """The reply to one command on the slow path; unless it was carried out, it leaves no trace."""
    command = item.command
    work.begin_command(principal, command.trace_id, speaker=roles.spoken_for(command))
    bookmark = work.bookmark()
    try:
        project = work.get(Project, command.project, command.project)
        roles.check_role(principal, command, agents_may_operate=project is not None and project.agents_may_operate)
        if project is None and type(command) not in _WITHOUT_PROJECT:
            raise roles.no_project(command.project)
        warnings: tuple[str, ...] = ()
        if (project is not None and project.sealed) or _may_bring_secrets(command):
            from tenure.engine.secrets.of_commands import guarded  # keeps startup fast

            item, warnings = guarded(work, project, item)
            command = item.command
        if command.declaration.printed:
            item = _without_printed_secrets(item)
            command = item.command
        answered = remembered(work, item, principal)
        if answered is not None:
            return answered
        if project is not None and is_led_by_agents(work, project):
            from tenure.engine.verbs.lead import noted

            noted(work, project, command)
        outcome = handler_of(type(command))(work, command)
        if work.is_unfinished:
            work.is_unfinished = False
            return RunAgain(so_far=outcome)
        if warnings:
            outcome = replace(outcome, warnings=warnings)
        remember(work, item, principal, outcome, has_event=work.bookmark()[1] > bookmark[1])
        return outcome
    except StoreError:
        raise
    except Refused as refusal:
        work.undo_to(bookmark)
        return refusal.outcome
    except NeedsEvidence as lacking:
        work.undo_to(bookmark)
        return RunAgain(lacking.questions)
    except TenureError as error:
        work.undo_to(bookmark)
        return error
    except OUR_FAULTS as error:
        work.undo_to(bookmark)
        bug = Bug(f"{type(command).__name__}: {type(error).__name__}: {error}", "nothing was done; please report this")
        bug.__cause__ = error
        return bug


def _without_printed_secrets(item: Checked) -> Checked:
    """Here, since it holds for every client, also one of an earlier version."""
    from tenure.core.redaction import value_without_secrets  # few attempts fail; keeps startup fast

    command = item.command
    before = {name: getattr(command, name) for name in command.declaration.printed}
    after = {name: value_without_secrets(value) for name, value in before.items()}
    return item if after == before else replace(item, command=replace(command, **after))


def _may_bring_secrets(command: Any) -> bool:
    """Whether it creates or edits a task or template whose spec or metadata is not empty."""
    if type(command) not in _OF_TEXTS:
        return False
    if isinstance(command, (c.Edit, c.Retry)):
        return bool(command.changes)
    if isinstance(command, (c.SetSchedule, c.SetTrigger)):
        return any(new.spec or new.metadata for new in command.template.tasks)
    if isinstance(command, c.Add):
        return bool(command.task.spec or command.task.metadata)
    return any(new.spec or new.metadata for new in command.tasks) or bool(getattr(command, "on_end", None))


def is_led_by_agents(work: UnitOfWork, project: Project) -> bool:
    return leads_agents(work.context, project)


def leads_agents(context: Context, project: Project) -> bool:
    return roles.agents_lead(project.lead, elects=context.elects)


# --- handlers -----------------------------------------------------------------------------------------------


def handler_of(kind: type[c.Command]) -> Callable[[UnitOfWork, Any], Outcome]:
    """The function that decides commands of this kind. A theme is imported with its first command."""
    if kind not in _LOADED:
        _LOADED.update(handlers_of(kind.declaration.theme))
    return _LOADED[kind]


def handlers_of(theme: str) -> Handlers:  # noqa: PLR0912, PLR0915  # one case a theme
    match theme:
        case "claim":
            from tenure.engine.verbs.claim import HANDLERS
        case "holder_verbs":
            from tenure.engine.verbs.holder_verbs import HANDLERS
        case "submit":
            from tenure.engine.verbs.submit import HANDLERS
        case "validation":
            from tenure.engine.checks.validation_verbs import HANDLERS
        case "usage":
            from tenure.engine.verbs.usage import HANDLERS
        case "land":
            from tenure.engine.verbs.land import HANDLERS
        case "artifacts":
            from tenure.engine.artifacts.artifact_verbs import HANDLERS
        case "graph":
            from tenure.engine.verbs.graph import HANDLERS
        case "operator_verbs":
            from tenure.engine.verbs.operator_verbs import HANDLERS
        case "edit":
            from tenure.engine.verbs.edit import HANDLERS
        case "track_router":
            from tenure.engine.verbs.track_router import HANDLERS
        case "projects":
            from tenure.engine.verbs.projects import HANDLERS
        case "agents":
            from tenure.engine.verbs.agents import HANDLERS
        case "plan":
            from tenure.engine.verbs.plan import HANDLERS
        case "undo":
            from tenure.engine.verbs.undo import HANDLERS
        case "mail":
            from tenure.engine.verbs.mail import HANDLERS
        case "reserve":
            from tenure.engine.verbs.reserve import HANDLERS
        case "lead":
            from tenure.engine.verbs.lead import HANDLERS
        case "schedules":
            from tenure.engine.sources.schedules import HANDLERS
        case "triggers":
            from tenure.engine.sources.triggers import HANDLERS
        case "deliveries":
            from tenure.engine.sources.deliveries import HANDLERS
        case "failure_watch":
            from tenure.engine.sources.failure_watch import HANDLERS
        case "budgets":
            from tenure.engine.budgets.budget_verbs import HANDLERS
        case "doubts":
            from tenure.engine.budgets.doubts import HANDLERS
        case "facts":
            from tenure.engine.verbs.facts import HANDLERS
        case "secrets":
            from tenure.engine.secrets.secret_verbs import HANDLERS
        case "webhooks":
            from tenure.engine.relay.webhook_verbs import HANDLERS
        case "relays":
            from tenure.engine.relay.relay_verbs import HANDLERS
        case "pools":
            from tenure.engine.fleet.pool_verbs import HANDLERS
        case "api_keys":
            from tenure.engine.verbs.api_keys import HANDLERS
        case "tenants":
            from tenure.engine.verbs.tenants import HANDLERS
        case "members":
            from tenure.engine.verbs.members import HANDLERS
        case "audit":
            from tenure.engine.audit.audit_verbs import HANDLERS
        case _:
            raise AssertionError(theme)
    return HANDLERS


# --- repeats ------------------------------------------------------------------------------------------------

KEPT = limits.REQUEST_KEPT
MOST_ANSWERED = limits.CLAIM_REQUESTS
LARGEST_ANSWERED = limits.CLAIM_ANSWERS

OF_CLAIMS = frozenset(
    {
        c.Start,
        c.Progress,
        c.SaveCheckpoint,
        c.ReportUsage,
        c.Land,
        c.PutArtifact,
        c.Submit,
        c.Fail,
        c.Release,
        c.Ask,
        c.Spawn,
        c.Wait,
        c.Reserve,
    }
)
REMEMBER_THEMSELVES = frozenset(
    {
        *(OF_CLAIMS - {c.Reserve}),
        c.ClaimTask,
        c.ClaimNext,
        c.Renew,
        c.Gone,
        c.Heartbeat,
        c.Lead,
        c.StepDown,
        c.RenewReservation,
        c.CreateKey,
        c.RotateKey,
        c.RevokeKey,
        c.TakeValidation,
        c.RenewValidation,
        c.Judge,
        c.Undecide,
        c.SetTrigger,
        c.RotateSecret,
        c.TryTrigger,
        c.SetWebhook,
        c.RotateWebhook,
        c.Deliver,
        c.OpenSecrets,  # its answer is stored nowhere
    }
)
_BY_THEIR_ROWS = REMEMBER_THEMSELVES - OF_CLAIMS  # no claim keeps answers of these
_OF_A_TASK = ("id", "key", "ref", "title", "state")  # what a repeat returns of each created task


def check_same(kept: str | None, command: c.Command, owner: str, what: str = "command") -> None:
    """Raise where the request id was used for something else, or with a key of another owner.

    The one place that distinguishes a repeat from a reuse.
    """
    if not is_same(kept, command, owner):
        raise RequestIdReused(
            f"request id {(command.request_id or '')[:80]!r} was used for another {what}, or by another key's owner",
            "use a new id for a new request",
        )


class Requested(Protocol):
    """A row that remembers the request that gave it its secret."""

    @property
    def request_id(self) -> str | None: ...
    @property
    def request_hash(self) -> str | None: ...


def is_repeat(work: UnitOfWork, row: Requested, cmd: c.Command) -> bool:
    """Whether this request already created the secret of the row: then it gets the same."""
    if cmd.request_id is None or row.request_id != cmd.request_id:
        return False
    check_same(row.request_hash, cmd, work.principal.owner)
    return True


def remembered(work: UnitOfWork, item: Checked, principal: Principal) -> Outcome | None:
    """The first answer, if this request was answered before."""
    command = item.command
    if command.request_id is None or type(command) in _BY_THEIR_ROWS:
        return None
    claim = _claim_of(work, command)
    if claim is not None:
        return _answered_before(work, claim, command)
    if not _is_remembered(item):
        return None
    row = work.get(Request, command.project, _row_id(item, principal))
    if row is None or row.at + KEPT <= work.now:
        return None
    check_same(row.digest, command, principal.owner)
    outcome = converted(row.outcome, Outcome)
    if isinstance(command, c.Reserve):
        from tenure.engine.verbs.reserve import check_holds  # few reserve

        check_holds(work, command.project, outcome.receipt or "")
    return replace(outcome, again=True)


def remember(work: UnitOfWork, item: Checked, principal: Principal, outcome: Outcome, *, has_event: bool) -> None:
    """Keep the answer of a command that had an effect. `has_event`: it appended an event."""
    command = item.command
    if command.request_id is None or outcome.again:
        return
    if type(command) in _BY_THEIR_ROWS or (isinstance(command, c.Submit) and outcome.ok):
        return
    has_effect = outcome.ok and outcome.outcome != "UNCHANGED"
    claim = _claim_of(work, command)
    if claim is not None:
        if has_effect or has_event:
            work.put(_with_answer(claim, command, outcome))
    elif has_effect and _is_remembered(item):
        id, digest = _row_id(item, principal), digest_of(command, principal.owner)
        kept = msgspec.to_builtins(outcome)
        work.put(Request(project=command.project, id=id, digest=digest, outcome=kept, at=work.now))


# --- in a separate row --------------------------------------------------------------------------------------


def _is_remembered(item: Checked) -> bool:
    command = item.command
    if type(command) in REMEMBER_THEMSELVES:
        return False
    return not (isinstance(command, c.Add) and command.task.idempotency_key is not None)


def _row_id(item: Checked, principal: Principal) -> str:
    return f"{principal.name}|{item.command.request_id}"


def remembered_row(item: Checked, principal: Principal) -> str | None:
    """The id of the request's own row, if it is one that has none with a claim."""
    command = item.command
    of_claim = type(command) in OF_CLAIMS and command.receipt is not None
    return None if command.request_id is None or of_claim or not _is_remembered(item) else _row_id(item, principal)


# --- with the claim -----------------------------------------------------------------------------------------


def _claim_of(work: UnitOfWork, command: Any) -> Claim | None:
    """The claim whose genuine receipt the command presents, whatever has happened to it since."""
    if type(command) not in OF_CLAIMS or command.receipt is None:
        return None
    try:
        receipt = parse_receipt(command.receipt)
    except InvalidInput:
        return None
    task = task_by_ref(work, command.project, receipt.name)
    claim = None if task is None else work.get(Claim, command.project, claims.claim_id(task.id, receipt.generation))
    return claim if is_genuine(receipt, claim) else None


def _answered_before(work: UnitOfWork, claim: Claim, command: c.Command) -> Outcome | None:
    of_submit = isinstance(command, c.Submit)
    # An accepted result is recognised by its own row, on the fast path too: of submits only refusals are kept here.
    found = next(
        (a for a in claim.requests if a.id == command.request_id and (a.verb == _verb(command) or not of_submit)), None
    )
    if found is None:
        return None
    roles.check_mine(work.principal, claim.agent, f"the claim of generation {claim.generation}")
    check_same(found.digest, command, "")  # the receipt proves whose request it was
    if isinstance(command, c.Reserve):
        from tenure.engine.verbs.holder_verbs import held

        held(work, command.project, command.receipt or "")  # Refused where the claim is over
    return replace(converted(found.outcome, Outcome), again=True)


def _verb(command: c.Command) -> str:
    return str(type(command).__struct_config__.tag)


def _with_answer(claim: Claim, command: c.Command, outcome: Outcome) -> Claim:
    assert command.request_id is not None
    id, digest = command.request_id, digest_of(command)
    answer = Answered(id=id, verb=_verb(command), digest=digest, outcome=_trimmed(outcome))
    kept, size = [answer], 0
    for earlier in reversed(claim.requests):
        size += len(msgspec.json.encode(earlier))
        if len(kept) == MOST_ANSWERED or size > LARGEST_ANSWERED:
            break
        kept.append(earlier)
    return replace(claim, requests=tuple(reversed(kept)))


def _trimmed(outcome: Outcome) -> dict[str, Any]:
    """The answer without what a repeat does not need: callers query the views they want."""
    if outcome.tasks is not None:
        named = ({name: task[name] for name in _OF_A_TASK if name in task} for task in outcome.tasks)
        outcome = replace(outcome, tasks=tuple(named))
    found: dict[str, Any] = msgspec.to_builtins(outcome)
    return found
