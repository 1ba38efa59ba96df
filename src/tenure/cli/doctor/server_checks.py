"""Checks of the team and the work over a server: silent agents, stops, tasks that wait for a person.

On the server's own host `doctor` checks more: it reads every row there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tenure.cli.doctor.findings import MOST, Finding, first_of, note, ok, warning
from tenure.cli.text_format import lasting, shorten

if TYPE_CHECKING:
    from tenure.client import Client


def work(client: Client) -> Iterator[Finding]:
    status = client.status()
    yield from _agents(status["agents"], status["now"])
    for scope, why in status["stopped"].items():
        yield note("stopped", f"claiming is stopped for {scope.rstrip(':')}{why and ': ' + why}", "`tenure go -h`")
    yield from _sources(status)
    yield from [*_dead_letters(client), *_questions(client)] or [ok("stuck", "no task waits for a person")]


def _sources(status: dict[str, Any]) -> Iterator[Finding]:
    if any(status["sources"].values()) and status["coordinator"] is None:
        yield warning(
            "sources", "no coordinator runs, so schedules and triggers do not fire",
            "check that the server's coordinator runs: `GET /health/coordinator`",
        )  # fmt: skip


def _agents(agents: list[dict[str, Any]], now: int) -> Iterator[Finding]:
    silent = [agent for agent in agents if agent["status"] == "stale"]
    for agent in silent:
        if agent["tasks"]:
            yield warning(
                "agents", f"{agent['name']} holds {first_of(list(agent['tasks']))} and was last seen "
                f"{lasting((now - agent['last_seen']) / 1e6)} ago",
                "check that it still runs; if not, others can claim when its lease ends",
            )  # fmt: skip
    yield ok("agents", f"{len(agents) - len(silent)} seen recently, {len(silent)} not")


def _dead_letters(client: Client) -> Iterator[Finding]:
    letters = client.dead_letters()
    for letter in letters[:MOST]:
        yield warning(
            "stuck", f"{letter['key']} is a dead letter",
            f"`tenure history {letter['key']}` shows how it failed, `tenure retry {letter['key']}` tries again",
        )  # fmt: skip
    if len(letters) > MOST:
        yield warning("stuck", f"{len(letters) - MOST} more dead letters", "`tenure dlq` lists them all")


def _questions(client: Client) -> Iterator[Finding]:
    paused = client.tasks(state="paused", limit=200)
    asking = [t for t in paused if any(pause["cause"] == "question" for pause in t.get("pauses", ()))]
    for task in asking[:MOST]:
        question = shorten(task["reason"].removeprefix("question: "), 100)
        yield warning("stuck", f"{task['key']} waits for an answer: {question}", f"`tenure answer {task['ref']} TEXT`")
