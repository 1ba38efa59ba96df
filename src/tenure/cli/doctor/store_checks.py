"""Checks of the store itself: schema, project, log file, clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tenure.cli.doctor.disk import MEGABYTE, is_file_store, path_of
from tenure.cli.doctor.findings import Finding, error, first_of, note, ok, warning
from tenure.cli.text_format import SECOND, counted, lasting

if TYPE_CHECKING:
    from tenure.cli.doctor.doctor import Patient

LONG_LOG = 256 * MEGABYTE
TOLERATED = 2 * SECOND  # this host's clock may be that far behind the last event
SILLY = 1_700_000_000 * SECOND  # an earlier clock is wrong


def store(patient: Patient) -> Iterator[Finding]:
    if patient.client is None:
        return  # reported already
    projects = patient.client.projects()
    schema = None if patient.client.is_remote else getattr(patient.client.store, "schema", None)
    facts = [f"schema {schema}" if schema is not None else "", counted(len(projects), "project")]
    if is_file_store(patient.home.url):
        import apsw

        facts.insert(0, f"SQLite {apsw.sqlite_lib_version()}")
    yield ok("store", f"{patient.home.shown}: {', '.join(fact for fact in facts if fact)}")
    if patient.run.project not in projects:
        there = f"there are {first_of(projects)}" if projects else "it has none yet"
        yield error(
            "project", f"project {patient.run.project} is not in this store; {there}",
            "name another with --project, or create it with `tenure init`",
        )  # fmt: skip
    if is_file_store(patient.home.url):
        log = path_of(patient.home.url) + "-wal"
        if os.path.exists(log) and os.path.getsize(log) > LONG_LOG:
            yield note(
                "store", f"the log beside the store has {os.path.getsize(log) // MEGABYTE} MB: a reader keeps it open",
                "end commands that have been reading for long; then it shrinks by itself",
            )  # fmt: skip
        if os.path.exists(f"{log}.1.aside"):
            yield note(
                "store", f"a backup was copied over the store; its former log is {log}.1.aside",
                "it has the last commits of the former store; delete it when they are not needed",
            )  # fmt: skip


def clock(patient: Patient) -> Iterator[Finding]:
    """The store's time never goes back by itself, and a clock that jumps ahead is refused."""
    if patient.client is None or patient.client.is_remote:
        return  # doctor on the server's host checks it
    state = patient.client.clock()
    whose = "this host's clock" if state.is_host else "the server's clock"
    if time.time_ns() // 1000 < SILLY:
        yield error("clock", f"this host's date is {time.strftime('%Y-%m-%d')}", "set its clock right")
    elif state.jump:
        yield error(
            "clock", f"{whose} jumped {lasting(state.jump / 1e6)} ahead: every write is refused (CLOCK_JUMP)",
            "have the clock set right (chrony, ntp); if it is right now, `tenure db clock --accept`",
        )  # fmt: skip
    elif state.behind > TOLERATED and state.is_host:
        yield warning(
            "clock", f"{whose} is {lasting(state.behind / 1e6)} behind the store's time, which continues without it",
            "have the clock set right (chrony, ntp); if it is right now, `tenure db clock --accept`",
        )  # fmt: skip
    elif state.behind > TOLERATED:
        yield warning(
            "clock", f"{whose} is {lasting(state.behind / 1e6)} behind the last event: the store's time stands still "
            "until then, and leases last longer",
            "set the server's clock right (chrony, ntp); the store continues by itself",
        )  # fmt: skip
    else:
        yield ok("clock", "not behind the last event")
