"""`reserve`, `unreserve`, `locks`: reservations of paths, ports and names."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tenure.cli.main import Answer, Run, answered, arg, options
from tenure.cli.option_kinds import seconds
from tenure.cli.text_format import clock, table
from tenure.client.wire import plain as wire


@options(
    arg("patterns", nargs="+", metavar="PATTERN", help="src/api/**, port:8080, env:staging"),
    arg("--shared", action="store_true", help="allow others to share it"),
    arg("--with", dest="task", metavar="TASK", help="for as long as you hold this task's claim"),
    arg("--receipt", metavar="R", help="the receipt of that task"),
    arg("--lease", type=seconds, metavar="SECONDS", help="without a task: length of the lease"),
)
def reserve(run: Run, given: Namespace) -> Answer:
    """Reserve paths, ports or names. Without a task the reservation has its own lease and receipt."""
    receipt = run.receipt(given) if given.task or given.receipt else None
    mode = "shared" if given.shared else "exclusive"
    outcome = run.client.reserve(*given.patterns, receipt=receipt, mode=mode, lease=given.lease)
    what = outcome.message or f"{', '.join(given.patterns)}, {mode}"
    own = f"\n  to release: tenure unreserve {outcome.receipt}" if outcome.receipt and receipt is None else ""
    return answered(outcome, f"{outcome.outcome}: {what}{own}")


@options(arg("receipt", help="what `reserve` printed"))
def unreserve(run: Run, given: Namespace) -> Answer:
    """Release a reservation."""
    return answered(run.client.unreserve(given.receipt))


@options()
def locks(run: Run, given: Namespace) -> Answer:
    """List reservations: pattern, holder, end of the lease."""
    held = run.client.reservations()
    return Answer(wire(held), lambda: _locks(held))


def _locks(held: list[dict[str, Any]]) -> str:
    rows = [(r["pattern"], r["mode"], r["agent"], r["task"], clock(r["until"])) for r in held]
    return table(rows, ("pattern", "mode", "agent", "task", "until")) or "no reservations"
