"""`secret rotate`: the keys that seal secrets."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tenure.cli.main import Answer, Run, arg, options
from tenure.core import commands as c


@options(
    arg("--master", action="store_true", help="wrap the data keys of all projects by the current master key"),
    arg("--reseal", action="store_true", help="also seal everything in this project again with its data key"),
)
def rotate(run: Run, given: Namespace) -> Answer:
    """Rotate the keys of secrets. New secrets get a new data key; earlier ones stay readable.

    With --master the data keys stay, and another master key wraps them. For your own SQLite store that key is made here
    and put before the old one in its file; elsewhere put the new one before the old one yourself, then run this.
    """
    run.must_own()
    value: dict[str, Any] = {"project": run.project, "master": given.master}
    lines = _master(run) if given.master else [run.client.rotate_data_key().check().message]
    if given.reseal:
        value["resealed"] = _reseal(run)
        lines.append(f"{run.project}: secrets sealed again: {value['resealed']}")
    return Answer({**value, "messages": lines}, "\n".join(lines))


def _master(run: Run) -> list[str]:
    lines = []
    if not run.client.is_remote:
        sealer: Any = run.client.engine.context.sealer
        path = sealer.source.renew()
        lines += [f"a new master key is in {path}: back it up; the keys before it stay there"] if path else []
    # "" is the store itself, which may have secrets too.
    for project in [*run.client.projects(), *([] if run.client.is_remote else [""])]:
        outcome = run.client.do(c.RotateDataKey(project=project, master=True))
        if outcome.outcome == "UPDATED":
            lines.append(outcome.message)
    return lines or ["every data key is wrapped by the current master key already"]


def _reseal(run: Run) -> int:
    count, after = 0, None
    while True:
        outcome = run.client.reseal(after).check()
        count += (outcome.counts or {}).get("resealed", 0)
        after = outcome.next
        if after is None:
            return count
