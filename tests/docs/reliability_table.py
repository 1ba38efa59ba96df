"""The table of RELIABILITY.md, written from the files that the harnesses leave in `reliability/results`."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from tests.docs.tables import table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "reliability" / "results"
PAGE = ROOT / "RELIABILITY.md"
BEGIN, END = "<!-- results: written by `./x docs` from reliability/results -->\n", "<!-- end of results -->\n"
# Harness → what it does. One that is not here yet is described by the first line of its module.
HARNESSES = {
    "model": (
        "random histories compared with a naive reference model that shares no code with the rules: claims, "
        "reservations, a budget, pauses by several causes, undo, plans, mail, drained and terminated agents, "
        "limits, repeats after a take-over, clocks that go back; every answer and every row"
    ),
    "storm": (
        "8 processes on one store, killed with SIGKILL also inside their commits; zombies that outlive their leases"
    ),
    "linearizability": "real concurrent histories of one task, 4 players, checked for linearizability",
    "run": (
        "`tenure run` over a plan of 30 tasks: three agents; an agent, a supervisor or the runner killed every "
        "few seconds"
    ),
    "landing": (
        "runners that land in a real repository, killed before the record, between record and swap, inside the swap "
        "and before the acceptance; late reviews, failing checks, files in the way, conflicts, cancels, epochs"
    ),
    "spending": (
        "`tenure run` over a paid plan of 50 tasks: agents fail, are killed, submit results that checks refuse, "
        "overrun their budgets; sums compared with the agents' own records to the nano-dollar"
    ),
    "chaos": (
        "a proxy between client and PostgreSQL drops answers after their commit and requests before it, resets, "
        "delays; backends and the server killed and restarted, workers killed"
    ),
    "failover": (
        "a replicated pair: synchronous, primary killed while commits wait for the standby; asynchronous, held "
        "back so that acknowledged commits are really lost, in three tenants, and the lost server's address answers "
        "nothing"
    ),
    "server_kills": (
        "the server of a store killed with SIGKILL under load, and started again; of a Galera cluster the node that "
        "all writers use, which comes back while another is used"
    ),
    "power_cuts": (
        "the server's files are as they were at their last sync. `--weak` shows that losses are found with settings "
        "that the store refuses or warns of"
    ),
    "mixed": "claims, renewals, submits and creates from two processes, bad items in the same batches, shared children",
    "churn": "tasks created, claimed, completed and archived without a pause; pace and table sizes over time",
    "serving": (
        "two `tenure serve` on one PostgreSQL, killed and stopped with SIGTERM under load, PostgreSQL restarted; "
        "workers continue by the SDK alone"
    ),
    "leaders": (
        "coordinators killed, and stopped past their leases, half of them with a slow clock: no duty runs twice "
        "per tick, no deposed leader writes"
    ),
    "schedules": (
        "two coordinators killed and stopped; a schedule fires repeatedly and a trigger reads each tick: one task "
        "per tick"
    ),
    "budgets": "100 processes claim against money for 37 tasks; holders die, fail, release, report late",
    "fleet": (
        "a pool's agents as real processes: a spawner that hangs, answers twice or late, or dies; the server killed "
        "at a spawn, the gateway killed with its children, agents that die with money for fewer tasks than there are"
    ),
    "loop": (
        "the whole way of a plan: a pool of 10 agents, a graph of 50 tasks, money that runs out and is raised; agents, "
        "runners and the coordinator killed at any moment"
    ),
    "api": "the HTTP API compared with its OpenAPI document: valid and invalid requests generated from it",
    "tenants": (
        "random requests of one tenant with names, ids and keys of another: each answer is equal, to the byte, to that "
        "of a store without the other tenant"
    ),
    "tamper": (
        "events, blocks, seals and archived documents edited, removed, inserted and exchanged in SQL, tails cut off: "
        "each is found with one exported head, and no untouched log is accused"
    ),
    "past": (
        "the project as it was (`--at`), at instants of random histories with archive, sweeps and new epochs: rows and "
        "answers are those of snapshots that were taken then"
    ),
    "moves": (
        "a tenant moved to and fro between two PostgreSQL servers while its agents work; the mover killed at any step"
    ),
    "many_tenants": (
        "200 tenants drained by one server, the limits of tiers over projects, and what 1,000 tenants without work cost"
    ),
    "over_http": "the engine's suite with every command sent over HTTP",
    "powerloss": (
        "every write, sync and rename of a run is recorded; images of what the disk may contain at each sync are "
        "opened by the normal store. `--no-sync` shows that the harness finds losses on a disk that ignores syncs"
    ),
    "faults": (
        "each system call of an act fails with EIO or ENOSPC, once or from then on, or the process is killed there"
    ),
    "mutants": "seeded bugs, each must be caught on every store that it concerns",
}


def results(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """In the order of HARNESSES; a harness on its default store comes before its variants."""
    names = list(HARNESSES)
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"), key=lambda path: path.stem)]
    return sorted(found, key=lambda run: names.index(run["harness"]) if run["harness"] in names else len(names))


def rows(folder: Path = RESULTS) -> str:
    last, lines = "", []
    for run in results(folder):
        harness = run["harness"]
        what = "the same" if harness == last else HARNESSES.get(harness) or _first_line(harness)
        figures = ", ".join(f"{name.replace('_', ' ')} {_spelled(value)}" for name, value in run["figures"].items())
        at = " · ".join(filter(None, (run["date"], run["commit"], "typed" if run.get("typed") else "")))
        lines.append((f"**{harness}**: {what}", f"`{run['command']}`", figures, run["verdict"], at))
        last = harness
    return table(("harness", "command", "figures of the last run", "verdict", "when"), lines)


def page(text: str | None = None, folder: Path = RESULTS) -> str:
    """RELIABILITY.md with the table between its marks."""
    text = PAGE.read_text() if text is None else text
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{PAGE.name} has no marks for the table of results: {BEGIN.strip()} and {END.strip()}")
    return before + BEGIN + rows(folder) + END + after


def _first_line(harness: str) -> str:
    source = ROOT / "tests" / "reliability" / f"{harness}.py"
    doc = ast.get_docstring(ast.parse(source.read_text())) if source.exists() else None
    return (doc or harness).partition("\n")[0].rstrip(".")


def _spelled(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
