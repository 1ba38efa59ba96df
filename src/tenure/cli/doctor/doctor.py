"""`doctor`: finds problems in the store, the clock, the team, the work and the setup, and names a fix for each.

It writes nothing. A check is a function (patient) → findings, and a line in `_checks`. A check that fails becomes a
finding itself, and the others still run.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tenure.cli.answers import OF_ERROR
from tenure.cli.doctor.findings import Finding, drawn, error, ok, warning
from tenure.cli.main import Answer, Run, arg, options
from tenure.client.wire import plain as wire
from tenure.core.errors import TenureError

if TYPE_CHECKING:
    from tenure.client import Client
    from tenure.config import Home

FOUND = 7  # exit code where a person must fix something


class Patient(NamedTuple):
    run: Run
    home: Home
    client: Client | None  # None where the store could not be opened


Check = Callable[[Patient], Iterable[Finding]]


@options(arg("--verify", action="store_true", help="also check every invariant of every row, and replay the whole log"))
def doctor(run: Run, given: Namespace) -> Answer:
    """Find problems, and name a fix for each; nothing is changed.

    Exit code 0: no errors (notes and warnings do not count); 7: errors were found; or the code of the failure itself
    where there is no store (1), it cannot be opened (10) or the configuration is bad (11).
    With --json an array of findings: level (ok, note, warning, error), check, message, fix.
    """
    findings, code = examined(run, is_thorough=given.verify)
    return Answer(wire(findings), lambda: drawn(findings), code)


def examined(run: Run, *, is_thorough: bool) -> tuple[list[Finding], int]:
    """Every finding, and the exit code that they come to."""
    try:
        home = run.home
    except TenureError as trouble:
        # Without a store there is nothing else to check.
        name = "repository" if trouble.code == "UNTRUSTED" else "store"
        return [error(name, trouble.message, trouble.hint or "`tenure config` shows the settings")], _code(trouble)
    findings, code = [], 0
    try:
        client: Client | None = run.client
    except TenureError as trouble:
        client, code = None, _code(trouble)
        findings = [error("store", trouble.message, trouble.hint or "`tenure config url` shows where it is looked for")]
    patient = Patient(run, home, client)
    for name, check in _checks(is_thorough):
        try:
            findings += check(patient)
        except (TenureError, OSError) as trouble:
            message = getattr(trouble, "message", None) or str(trouble)
            hint = getattr(trouble, "hint", None) or "fix the reported problem, then run it again"
            findings.append(warning(name, f"could not be checked: {message}", hint))
    if not code and any(finding.level == "error" for finding in findings):
        code = FOUND
    return findings, code


def _code(trouble: TenureError) -> int:
    return OF_ERROR.get(trouble.code, FOUND)


def _checks(is_thorough: bool) -> Iterator[tuple[str, Check]]:
    from tenure.cli.doctor import agent_setup, database_checks, sink_checks, store_checks, team_checks

    yield "store", store_checks.store
    yield "permissions", store_checks.permissions
    yield "git", store_checks.git
    yield "repository", store_checks.trust
    yield "file system", store_checks.file_system
    yield "disk", store_checks.disk
    yield "copies", store_checks.copies
    yield "clock", store_checks.clock
    yield "secrets", store_checks.secrets
    yield "reviews", store_checks.reviews
    yield "database", database_checks.database
    yield "server", store_checks.server
    yield "work", team_checks.work
    yield "sinks", sink_checks.sinks
    yield "webhooks", sink_checks.webhooks
    yield "outbox", agent_setup.outbox
    yield "receipts", agent_setup.receipts
    yield "integrations", agent_setup.integrations
    if is_thorough:
        yield "promises", _promises


def _promises(patient: Patient) -> Iterator[Finding]:
    if patient.client is None:
        return
    broken = patient.client.verify()
    for sentence in broken:
        yield error("promises", sentence, "keep a copy with `tenure db backup`, and report it with the log around it")
    if not broken:
        yield ok("promises", "every invariant holds, and a replay of the log gives the tables back")
