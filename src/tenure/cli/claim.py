"""`claim`, `next`, `whoami`: get work, and list what you hold; with the brief that an agent reads after a claim."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tenure.agents.quotations import as_json
from tenure.cli.main import Answer, Run, answered, arg, options
from tenure.cli.option_kinds import lease, pair, seconds
from tenure.cli.text_format import lasting, plain
from tenure.core import claims, limits
from tenure.core.errors import RequestIdReused, TenureError
from tenure.core.lifecycle import HELD
from tenure.core.outcomes import Outcome, each_once
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.agents.receipts import Kept, Request
    from tenure.core.commands import Process
    from tenure.core.outcomes import Outcome

FILTERS = (
    arg("--track", action="append", default=[], metavar="CODE", help="only of this track (may be repeated)"),
    arg("--type", action="append", default=[], metavar="NAME", help="only of this type"),
    arg("-t", "--tag", action="append", default=[], metavar="TAG", help="only with this tag"),
    arg("--cap", action="append", default=None, metavar="NAME", help="your capability (else those you joined with)"),
)


def filters_of(given: Namespace) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "tracks": tuple(given.track), "types": tuple(given.type), "tags": tuple(given.tag),
    }  # fmt: skip
    if given.cap is not None:
        chosen["capabilities"] = tuple(given.cap)
    return chosen


@options(
    arg("task", nargs="?", help="the task; else the best one you may take"),
    arg("--lease", type=lease, metavar="SECONDS", help="length of the lease (or 30m, 2h, auto)"),
    arg(
        "--wait",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="wait that long for a ready task, or for the named one",
    ),
    arg("-n", type=int, default=1, metavar="N", help="take up to N tasks"),
    arg("--like", action="store_true", help="with -n: all of the type and track of the first"),
    arg(
        "--meta",
        action="append",
        default=[],
        type=pair,
        metavar="NAME=VALUE",
        help="metadata of the claim, for its history",
    ),
    arg("--request-id", metavar="ID", help="a retry with the same id gets the same answer"),
    *FILTERS,
)
def claim(run: Run, given: Namespace) -> Answer:
    """Claim a task, or the next best one that you may take, on a lease.

    The answer carries a receipt, the only proof that you hold the task. It is kept for this agent in this session, so
    that `done`, `fail` and the others find it; sub-agents that share both name the claim (KEY@GENERATION) or pass
    --receipt. If the answer of a claim was lost, the same command gets the same claim again. With `--lease auto` the
    lease follows the task's estimate, else what tasks of its type take.
    """
    run.is_holder = True
    run.check_named()
    began = time.perf_counter()  # measures the claim itself: open to commit
    asked = _asked(run, given)
    outcome, request = _claimed(run, given, asked)
    took = round((time.perf_counter() - began) * 1000, 2)
    for granted in outcome.claims or (outcome,):
        if granted.receipt and granted.task:
            try:
                run.receipts.keep(granted.task["id"], granted.task["key"], granted.receipt)
            except OSError as error:
                run.warn(f"the receipt could not be kept ({error}); present it yourself: --receipt {granted.receipt}")
    if request is not None:
        request.answered()
        run.unwritten.append(request.unanswered)
    value = answered(outcome, lambda: claimed(run, outcome), took_ms=took)
    _name_claims(run, outcome, value.value)
    return value


# Of a granted claim, at the top too: what every script reads first.
_AT_THE_TOP = ("id", "key", "title")


def _name_claims(run: Run, outcome: Outcome, value: dict[str, Any]) -> None:
    """Add what scripts and agents read first: id, key, title, `KEY@GENERATION`, and what only the log has."""
    from tenure.agents.receipts import claim_name

    shown = [value] if outcome.receipt else value.get("claims") or []
    for granted, one in zip(outcome.claims or (outcome,), shown, strict=False):
        task = granted.task or {}
        one |= {name: task[name] for name in _AT_THE_TOP if name in task}
        one["task_ref"] = claim_name(str(granted.receipt))
        if run.is_json:
            from tenure.agents.briefing import FROM_LOG
            from tenure.client.wire import plain as wire

            brief = _brief_of(run, granted)
            one |= {name: wire(brief[name]) for name in FROM_LOG if name in brief}


def _asked(run: Run, given: Namespace) -> dict[str, Any]:
    """The arguments of the claim, without the process: a repeat may come from another one."""
    length = given.lease if given.lease is not None else run.setting("lease")
    return {
        "task": given.task, "lease": length, "n": given.n, "agent_type": run.who.type, "metadata": dict(given.meta),
        **filters_of(given), **({"like": True} if given.like else {}),
    }  # fmt: skip


def _claimed(run: Run, given: Namespace, asked: dict[str, Any]) -> tuple[Outcome, Request | None]:
    if given.request_id:
        return _ask(run, given, asked, given.request_id), None
    from tenure.agents.receipts import request

    words = str((run.project, run.who.session, run.who.agent, run.who.user, sorted(asked.items())))
    while True:
        within = limits.LEASE_IN_A_SHELL if isinstance(asked["lease"], str) else asked["lease"]
        sent = request(run.environ, run.home, words, within)
        try:
            outcome = _ask(run, given, asked, sent.id)
        except RequestIdReused:
            sent.answered()
            if sent.is_again:
                continue
            raise
        except TenureError as error:
            if error.definite:
                sent.answered()
            raise
        if not (sent.is_again and outcome.again and _is_over(run, outcome)):
            return outcome, sent
        sent.answered()  # that claim has ended since: a new one is wanted


def _is_over(run: Run, outcome: Outcome) -> bool:
    granted = [claim for claim in outcome.claims or (outcome,) if claim.task]
    states = run.client.states([str(claim.task["id"]) for claim in granted if claim.task])
    return any(
        state.get("generation") != claim.generation or state.get("state") not in HELD
        for claim, state in zip(granted, states, strict=True)
    )


def _ask(run: Run, given: Namespace, asked: dict[str, Any], request_id: str) -> Outcome:
    process = _process(run)

    def ask(wait: float = 0.0) -> Outcome:
        return run.client.claim(**asked, wait=wait, request_id=request_id, process=process)

    outcome = ask()
    if outcome.outcome in ("NO_TASK", "DENIED_ACTIVE_CLAIM") and _is_freed(run):
        outcome = ask()
    if given.wait and (outcome.outcome == "NO_TASK" or claims.may_end(outcome)):
        outcome = ask(given.wait)
    return outcome


def _is_freed(run: Run) -> bool:
    """End claims of ended processes of this host; called only where no other task can be claimed."""
    from tenure.agents.ended_holders import release_ended

    return bool(release_ended(run.client))


def _process(run: Run) -> Process | None:
    """The process whose end ends the session; others on this host may then take over before the lease is over."""
    if run.who.process is None:
        return None
    from tenure.process_table import as_claimed

    return as_claimed(run.who.process)


def claimed(run: Run, outcome: Outcome) -> str:
    """The text that an agent reads after a claim."""
    if outcome.claims or outcome.receipt:
        parts = outcome.claims or (outcome,)
        is_only = outcome.claims is None
        return "\n\n".join(briefing_text(part, _brief_of(run, part), is_only=is_only) for part in parts)
    return nothing(outcome)


def _brief_of(run: Run, granted: Outcome) -> Mapping[str, Any]:
    from tenure.agents.briefing import of_claim

    return of_claim(run.client, granted)


@options(*FILTERS)
def next_(run: Run, given: Namespace) -> Answer:
    """Show what `claim` would take now. Nothing is claimed; another agent may be faster."""

    found = run.client.next(**filters_of(given))
    return answered(found, lambda: summary(found.task) if found.task else nothing(found))


@options(arg("--receipt", action="store_true", help="show the receipts of what you hold: each proves its claim"))
def whoami(run: Run, given: Namespace) -> Answer:
    """Show your identity, how each part of it was detected, and what you hold.

    What an agent prints is in its transcript, which others read: so receipts are shown on request only.
    """
    from tenure.agents.receipts import Receipts

    who = run.who
    kept = Receipts(run.home, run.project, who.session, environ=run.environ).live()
    held = [one for one in kept if one.agent == who.agent]
    others = [one for one in kept if one not in held]
    value = {
        "agent": who.agent, "session": who.session, "role": who.role, "type": who.type, "user": who.user,
        "source": who.source, "agent_source": who.agent_source, "role_source": who.role_source,
        "process": None if who.process is None else who.process.pid, "project": run.project, "store": run.home.shown,
        "holds": [_shown(one, given) for one in held],
        "others": [{**_shown(one, given), "agent": one.agent} for one in others],
    }  # fmt: skip
    ends = "" if who.process is None else f"; ends with process {who.process.pid}"
    lines = [
        f"agent    {who.agent} (from {who.agent_source})",
        f"session  {who.session} (from {who.source}{ends})",
        f"role     {who.role}, type {who.type} ({who.role_source})",
        f"project  {run.project} in {run.home.shown}",
        *(f"holds    {one.name}  {one.key}{f'  {one.receipt}' if given.receipt else ''}" for one in held),
        *(f"beside   {one.name}  {one.key}  of agent {one.agent} in this session" for one in others),
    ]
    return Answer(value, "\n".join(lines))


def _shown(kept: Kept, given: Namespace) -> dict[str, Any]:
    more = {"receipt": kept.receipt} if given.receipt else {}
    return {"task": kept.task, "key": kept.key, "task_ref": kept.name, **more}


MOST_SHOWN = limits.INPUT_SHOWN


def briefing_text(outcome: Outcome, brief: Mapping[str, Any], *, is_only: bool = False) -> str:
    """`is_only`: the one claim of this command, which TENURE_TASK may name."""
    from tenure.agents.briefing import asked_of, parts_of, text_of

    task = outcome.task or {}
    claim = f"{task.get('ref', '')}@{outcome.generation}"
    lines = [f"{task.get('key')} is yours: generation {outcome.generation}, attempt {outcome.attempt}."]
    lines += [f"claim    {claim}", f"receipt  {outcome.receipt}"]
    if outcome.lease is not None:
        why = f" ({outcome.lease_why})" if outcome.lease_why else ""
        lines += [f"lease    {lasting(outcome.lease)}{why}; every command on this task renews it"]
    if outcome.term is not None:
        lines += [f"offer    by the leader, term {outcome.term}"]
    if outcome.model:
        lines += [f"model    {outcome.model} ({outcome.why})"]
    if outcome.secrets:  # not their values: what a terminal shows, an agent reads
        names = ", ".join(map(plain, outcome.secrets))
        lines += [f"secrets  {names}; `tenure show {shell_word(str(task.get('ref')))} --receipt …` prints them"]
    lines += ["", plain(task.get("title", "")), *asked_of(brief)]
    for name in ("constraints", "output", "touches"):
        if task.get(name):
            lines += [f"{name}: {_short(task[name])}"]
    for block in text_of(
        parts_of(brief, most=MOST_SHOWN, rest=f"tenure show {shell_word(str(task.get('ref')))} --json"), ""
    ):
        lines += ["", block]
    if outcome.unfinished:
        lines += ["", f"This session also holds: {', '.join(outcome.unfinished)}"]
    own = shell_word(claim)
    lines += ["", f'Then: tenure done {own} -s "what you did"   (or: fail {own} -m "why", release {own})']
    if is_only:
        lines += [f"export TENURE_TASK={own}"]
    return "\n".join(lines)


def summary(task: Mapping[str, Any]) -> str:
    return f"{task['key']}  {task['tier']}  {plain(task['title'])}"


def nothing(outcome: Outcome) -> str:
    lines = [f"{outcome.outcome}: {outcome.message}" if outcome.message else outcome.outcome]
    if outcome.counts:
        lines += ["  " + ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in each_once(outcome.counts).items())]
    if outcome.unfinished:
        lines += [f"  this session holds: {', '.join(outcome.unfinished)}"]
    if outcome.hint:
        lines += [f"  {outcome.hint}"]
    return "\n".join(line for line in lines if line.strip())


def _short(value: Any) -> str:
    text = as_json(value)  # on one line: nothing in it can pass for a line of ours
    return (
        text
        if len(text) <= MOST_SHOWN
        else text[:MOST_SHOWN] + f" … ({len(text)} characters; `tenure show` prints all)"
    )
