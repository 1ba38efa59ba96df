"""`claim`, `next`, `whoami`: getting work, and knowing what one holds."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tenure.cli.frame import Answer, Run, answered, arg, options
from tenure.cli.kinds import pair, seconds
from tenure.core.commands import Process

if TYPE_CHECKING:
    from tenure.client import Client
    from tenure.core.outcomes import Outcome

FILTERS = (
    arg("--track", action="append", default=[], metavar="CODE", help="only of this track (may be repeated)"),
    arg("--type", action="append", default=[], metavar="NAME", help="only of this type"),
    arg("-t", "--tag", action="append", default=[], metavar="TAG", help="only with this tag"),
    arg("--cap", action="append", default=None, metavar="NAME", help="what you can do (else what you joined with)"),
)


def filters_of(given: Namespace) -> dict[str, Any]:
    chosen: dict[str, Any] = {
        "tracks": tuple(given.track), "types": tuple(given.type), "tags": tuple(given.tag),
    }  # fmt: skip
    if given.cap is not None:
        chosen["capabilities"] = tuple(given.cap)
    return chosen


@options(
    arg("task", nargs="?", help="which one; else the best that you may take"),
    arg("--lease", type=seconds, metavar="SECONDS", help="how long the claim is good for, unless renewed (or 30m, 2h)"),
    arg("--wait", type=seconds, default=0.0, metavar="SECONDS", help="stay that long for a task to be ready"),
    arg("-n", type=int, default=1, metavar="N", help="take up to N tasks"),
    arg(
        "--meta",
        action="append",
        default=[],
        type=pair,
        metavar="NAME=VALUE",
        help="said of the claim, for its history",
    ),
    arg("--request-id", metavar="ID", help="sent again with the same id, the answer is the same"),
    *FILTERS,
)
def claim(run: Run, given: Namespace) -> Answer:
    """Take a task, or the next best one that you may take, on a lease.

    The answer carries a receipt: it alone proves that you hold the task. It is kept for this session, so that `done`,
    `fail` and the others find it; sub-agents that share the session pass it with --receipt.
    """
    process = _process(run)
    began = time.perf_counter()  # what follows is the claim itself: open to commit
    outcome = _ask(run, given, process)
    if outcome.outcome in ("NO_TASK", "DENIED_ACTIVE_CLAIM") and _is_freed(run):
        outcome = _ask(run, given, process)
    if outcome.outcome == "NO_TASK" and given.wait:
        outcome = _ask(run, given, process, wait=given.wait)
    took = round((time.perf_counter() - began) * 1000, 2)
    for granted in outcome.claims or (outcome,):
        if granted.receipt and granted.task:
            run.receipts.keep(granted.task["id"], granted.task["key"], granted.receipt)
    return answered(outcome, lambda: claimed(run.client, outcome), took_ms=took)


def _ask(run: Run, given: Namespace, process: Process | None, wait: float = 0.0) -> Outcome:
    lease = given.lease if given.lease is not None else run.setting("lease")
    return run.client.claim(
        given.task, lease=lease, n=given.n, wait=wait, request_id=given.request_id, process=process,
        metadata=dict(given.meta),
        agent_type=run.who.type if run.who.role == "agent" else None, **filters_of(given),
    )  # fmt: skip


def _is_freed(run: Run) -> bool:
    """Whether something can be taken over from a process that has ended; looked for only where nothing else is left."""
    from tenure.agents.gone import tell_of_gone

    return bool(tell_of_gone(run.client))


def _process(run: Run) -> Process | None:
    """The process whose end ends the session; others on this host may then take over before the lease is over."""
    found = run.who.process
    if found is None:
        return None
    from tenure.agents import processes

    return Process(host=processes.host(), boot=processes.boot_id(), pid=found.pid, start=found.start)


def claimed(client: Client, outcome: Outcome) -> str:
    """What an agent reads after a claim: few words, all that it needs."""
    from tenure.agents.quoting import editor_of
    from tenure.cli.briefing import briefing, nothing

    if outcome.claims or outcome.receipt:
        parts = outcome.claims or (outcome,)
        return "\n\n".join(briefing(part, editor_of(client, part.task or {})) for part in parts)
    return nothing(outcome)


@options(*FILTERS)
def next_(run: Run, given: Namespace) -> Answer:
    """Look at what `claim` would take now. Nothing is claimed, and by the time you claim it may be another's."""
    from tenure.cli.briefing import nothing, summary

    found = run.client.next(**filters_of(given))
    return answered(found, lambda: summary(found.task) if found.task else nothing(found))


@options()
def whoami(run: Run, given: Namespace) -> Answer:
    """Who you are here, where that was recognised from, and what this session holds."""
    who = run.who
    held = run.receipts.live()
    value = {
        "agent": who.agent, "session": who.session, "role": who.role, "type": who.type, "user": who.user,
        "source": who.source, "project": run.project, "store": run.home.shown,
        "holds": [{"task": kept.task, "key": kept.key, "receipt": kept.receipt} for kept in held],
    }  # fmt: skip
    lines = [
        f"agent    {who.agent} ({who.type}, role {who.role})",
        f"session  {who.session} (from {who.source})",
        f"project  {run.project} in {run.home.shown}",
        *(f"holds    {kept.key}  {kept.receipt}" for kept in held),
    ]
    return Answer(value, "\n".join(lines))
