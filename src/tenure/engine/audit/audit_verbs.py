"""The verbs of the sealed log: turn it on, its head, its check, its export, its attestation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import commands, roles
from tenure.core import queries as q
from tenure.core.access_chain import parse_head
from tenure.core.attestation import attested
from tenure.core.audit_lines import BODY, DOCUMENT, EVENT, PRUNED, SEAL, header_line, line_of, named_bodies
from tenure.core.errors import InvalidInput, NotAllowed, NotFound
from tenure.core.log_seals import head_text
from tenure.core.outcomes import Outcome
from tenure.core.records import STORE, Archived, Body, Project, PrunedLeaves, Row, Seal, replace
from tenure.core.seal_check import SealCheck
from tenure.engine.audit.sealer import is_audited, last_seal, unsealed
from tenure.engine.runtime.rows import event_pages, project_of, row_pages
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core import views as v

EVENTS_A_PAGE = 1000


def audit_on(work: UnitOfWork, cmd: commands.AuditOn) -> Outcome:
    project = project_of(work, cmd.project)
    if project.audited_at:
        return Outcome(outcome="UNCHANGED")
    audited = replace(project, audited_at=work.now)
    work.record("project.changed", audited, project=project.id, details={"changed": ["audited_at"]})
    return Outcome(outcome="UPDATED", command_id=work.command_id)


def audit_head(work: UnitOfWork, project: str, *, store: bool = False) -> v.AuditHeadView:
    name = _audited(work, project, store)
    seal = last_seal(work, name)
    return {
        "project": name,
        "head": str(head_text(seal)),
        "last": 0 if seal is None else seal.last,
        "sealed_at": None if seal is None else seal.sealed_at,
        "unsealed": unsealed(work, name, 0 if seal is None else seal.last),
    }


def verify_audit(work: UnitOfWork, project: str, *, head: str | None = None, store: bool = False) -> v.AuditReportView:
    expected = None if head is None else parse_head(head)
    name, tx = _audited(work, project, store), work.tx
    seals = (seal for page in row_pages(tx, Seal, {"project": name}, 20) for seal in page)
    check = SealCheck(name, seals, tenant=work.context.tenant, is_signed=_is_signed)
    for events in event_pages(tx, {"project": name}, EVENTS_A_PAGE):
        for event in events:
            check.take(event)
    for documents in row_pages(tx, Archived, {"project": name}, 100):
        for row in documents:
            check.take_document(row)
    for body in tx.load(Body, [(name, wanted) for wanted in sorted(check.wanted_bodies())]):
        check.take_body(body.id, body.content)
    for pruned in row_pages(tx, PrunedLeaves, {"project": name}, 20):
        for leaves in pruned:
            check.take_pruned(leaves)
    report = check.report(expected)
    if not is_audited(work.find(Project, {}), name):
        report.findings.append("it has seals, and nothing is sealed any more: the mark of `audit on` was taken off")
    return {"project": name, "ok": not report.findings, **report._asdict(), "head": str(report.head)}  # type: ignore[typeddict-item]


def _is_signed(key: str, value: str, text: bytes) -> bool:
    from tenure.sealing.signing import is_signed

    return is_signed(key, value, text)


def attest(work: UnitOfWork, project: str, *, store: bool = False) -> v.AttestationView:
    name = _audited(work, project, store)
    if work.context.signer is None:
        raise NotAllowed("attest: this process has no key to sign with")
    key = work.context.signer()
    return attested(work.context.tenant, name, head_text(last_seal(work, name)), work.now, key.public, key.sign)


def _audited(work: UnitOfWork, project: str, store: bool) -> str:
    if store and not roles.sees_store(work.principal):
        raise NotAllowed("the store's own log is for keys of all projects")
    name = STORE if store else project
    if not is_audited(work.find(Project, {}), name) and not work.find(Seal, {"project": name} if name else {}, limit=1):
        raise NotFound(f"the log of project {project} is not sealed", "`tenure audit on` begins")
    return name


# --- the export ---------------------------------------------------------------------------------------------
#
# The parts in the order in which `SealCheck` takes them, each in pages. Between two pages a task may move from the log
# to the archive, or from there be deleted by retention: then it is met twice, or its leaves are, but it is not missed.

Lines = list[str]


def audit_page(work: UnitOfWork, project: str, *, after: str | None = None, store: bool = False) -> v.AuditPageView:
    name = _audited(work, project, store)
    part, _, place = (after or "head:").partition(":")
    if part not in _PARTS or (part == "events" and not place.isdecimal()):
        raise InvalidInput(f"after {after!r} is not a place in the export", "as `next` of the page before")
    lines, following = _PARTS[part](work, name, place)
    if following is not None:
        return {"lines": lines, "next": f"{part}:{following}"}
    names = list(_PARTS)
    then = names[names.index(part) + 1 :][:1]
    return {"lines": lines, "next": f"{then[0]}:{'0' if then[0] == 'events' else ''}" if then else None}


def _head(work: UnitOfWork, project: str, place: str) -> tuple[Lines, str | None]:
    return [header_line(work.context.tenant, project, work.now, str(head_text(last_seal(work, project))))], None


def _events(work: UnitOfWork, project: str, place: str) -> tuple[Lines, str | None]:
    events = work.tx.events({"project": project}, after=int(place), limit=EVENTS_A_PAGE)
    lines: Lines = []
    for event in events:
        lines.append(line_of(EVENT, event))
        for name in sorted(named_bodies(event)):
            body = work.get(Body, project, name)
            if body is not None:
                lines.append(line_of(BODY, body))
    return lines, str(events[-1].sequence) if len(events) == EVENTS_A_PAGE else None


def _pruned(work: UnitOfWork, project: str, place: str) -> tuple[Lines, str | None]:
    rows, following = _rows(work, PrunedLeaves, project, place, 20)
    ids = tuple(row.id for row in rows)
    # their events again: one may be younger than the page of the log that would have had it
    events = (
        {event.id: event for event in work.tx.events({"project": project, "id": ids}, limit=len(ids))} if ids else {}
    )
    lines: Lines = []
    for row in rows:
        if row.id in events:
            lines.append(line_of(EVENT, events[row.id]))
        lines.append(line_of(PRUNED, row))
    return lines, following


def _paged(kind: type[Row], part: str, size: int) -> Callable[[UnitOfWork, str, str], tuple[Lines, str | None]]:
    def page(work: UnitOfWork, project: str, place: str) -> tuple[Lines, str | None]:
        rows, following = _rows(work, kind, project, place, size)
        return [line_of(part, row) for row in rows], following

    return page


def _rows(work: UnitOfWork, kind: type[Row], project: str, place: str, size: int) -> tuple[Sequence[Any], str | None]:
    rows: Sequence[Any] = work.tx.find(kind, {"project": project}, after=(place, place) if place else None, limit=size)
    return rows, rows[-1].id if len(rows) == size else None


_PARTS: dict[str, Callable[[UnitOfWork, str, str], tuple[Lines, str | None]]] = {
    "head": _head,
    "seals": _paged(Seal, SEAL, 20),
    "events": _events,
    "documents": _paged(Archived, DOCUMENT, 100),
    "pruned": _pruned,
}

HANDLERS: Handlers = {commands.AuditOn: audit_on}
READS: Reads = {q.AuditHead: audit_head, q.VerifyAudit: verify_audit, q.AuditPage: audit_page, q.Attest: attest}
