"""Checks outside the store: finished work that was not submitted, receipts of ended sessions, setup of agents."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.cli.doctor.findings import Finding, first_of, note, ok, warning
from tenure.cli.main import Answer
from tenure.cli.text_format import counted
from tenure.core import lifecycle, limits, team
from tenure.core.records import Session, Task
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.cli.doctor.doctor import Patient
    from tenure.engine.runtime.unit_of_work import UnitOfWork

MOST_SESSIONS = limits.DOCTOR_SESSIONS


def outbox(patient: Patient) -> Iterator[Finding]:
    from tenure.agents.runner.outbox import Outbox

    box = Outbox(patient.home.folder, patient.home.url, patient.run.environ)
    found = list(box.waiting())
    waiting, aside = [finished.key for _, finished in found], box.aside()
    if waiting:
        yield warning(
            "outbox",
            f"finished work was not submitted yet: {first_of(sorted(set(waiting)))}",
            f"`tenure run` submits it when it starts; until then it is kept in {os.path.dirname(found[0][0])}",
        )
    if aside:
        yield warning(
            "outbox",
            f"the store refused {counted(len(aside), 'entry', 'entries')} of the outbox",
            f"look at {aside[0]}: it has the result and the receipt to submit it with",
        )
    if not waiting and not aside:
        yield ok("outbox", "nothing waits to be submitted")


def receipts(patient: Patient) -> Iterator[Finding]:
    """Receipts are removed when their session leaves; a session that just stopped leaves them behind, void."""
    from tenure.agents.receipts import Receipts, sessions_with_receipts

    client = patient.client
    if client is None or client.is_remote or patient.run.project not in client.projects():
        return
    project = patient.run.project
    environ = patient.run.environ
    names = sessions_with_receipts(patient.home, environ)[:MOST_SESSIONS]

    def ask(rows: UnitOfWork) -> list[str]:
        over = []
        for session in rows.get_many(Session, project, names).values():
            held = rows.find(Task, {"project": project, "session": session.id})
            holds = sum(task.state in lifecycle.HELD for task in held)
            kept = list(Receipts(patient.home, project, session.id, environ=environ).all())
            if kept and team.is_over(session, holds, rows.now):
                over.append(session.id)
        return over

    over = client.engine.read_settled((project,), ask)
    if over:
        yield note(
            "receipts",
            f"{counted(len(over), 'session')} that {'is' if len(over) == 1 else 'are'} over left receipts: "
            f"{first_of(sorted(over))}",
            "harmless, since they are void: the store refuses them, and the files may stay",
        )
    else:
        yield ok("receipts", f"{counted(len(names), 'session')} kept some, none of them over")


def integrations(patient: Patient) -> Iterator[Finding]:
    """The findings of `tenure setup --check`: pieces in agents' files, and confirmations by a person."""
    from tenure.agents.recipes import found_agents
    from tenure.cli.setup import setup

    options = Namespace(agents=[], check=True, shows=False, remove=False, is_global=False, force=False)
    seen = setup(patient.run, options)
    assert isinstance(seen, Answer)
    agents, pieces, gates = seen.value["agents"], seen.value["pieces"], seen.value["gates"]
    if not agents:
        found = found_agents(patient.home.root, patient.run.environ)
        if found:
            yield note(
                "integrations",
                f"used here but not set up: {first_of(list(found))}",
                f"`tenure setup {' '.join(map(shell_word, found))}` shows them how to use tenure",
            )
        return
    lacking = [piece for piece in pieces if piece["state"] != "active"]
    for piece in lacking:
        where = os.path.relpath(piece["path"], patient.home.root)
        why = f" ({piece['why']})" if piece["why"] else ""
        fix = f"`tenure setup {shell_word(piece['agent'])}` installs it"
        if piece["state"] in ("edited", "unreadable"):
            fix = f"`tenure setup {shell_word(piece['agent'])} --print` shows what belongs there"
        yield warning("integrations", f"{piece['agent']}: {piece['what']} in {where}: {piece['state']}{why}", fix)
    for gate in gates:
        if gate["is_open"] is False:
            yield warning("trust", f"{gate['agent']}: its setup waits for a person to confirm it", gate["text"])
        elif gate["is_open"] is None:
            yield note("trust", f"{gate['agent']}: whether a person has confirmed it is unknown", gate["text"])
    if not lacking:
        yield ok("integrations", f"{', '.join(agents)}: complete")
