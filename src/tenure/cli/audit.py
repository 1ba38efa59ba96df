"""`audit …`: the sealed log of a project, and the access log of a server. Files are checked without a store."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown
from tenure.cli.text_format import counted
from tenure.core import queries as q
from tenure.core.access_chain import Head, check, parse_head
from tenure.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from tenure.core.audit_lines import Header

FOUND = 8  # exit code
_HEAD = "a head that was kept elsewhere, or the file of an attestation: a cut or rewritten log is found too"


@options()
def on(run: Run, given: Namespace) -> Answer:
    """Seal the log of the project from now on, what it has so far included. It cannot be turned off.

    The process that leads (`serve`, `daemon`) seals every 10 s or 1,000 events; the audit's verbs seal before they
    read. Only sealed events are archived or deleted by retention.
    """
    outcome = run.client.audit_on()
    begun = "is sealed already" if outcome.outcome == "UNCHANGED" else "is sealed from now on"
    return answered(outcome, f"the log {begun}; keep the head of `tenure audit head` elsewhere")


@options(arg("--all", action="store_true", help="of every project that is sealed, and of the store"))
def head(run: Run, given: Namespace) -> Answer:
    """Seal the committed events; print the head. Keep it where nobody who can write the store can change it."""
    if not given.all:
        return shown(run.client.audit_head(), _head_text)
    found = [run.client.query(q.AuditHead(project=name, store=is_store)) for name, is_store in _audited(run)]
    return shown(found, lambda all_: "\n".join(map(_head_text, all_)))


def _head_text(found: dict[str, Any]) -> str:
    younger = f"; {counted(found['unsealed'], 'event')} younger than it" if found["unsealed"] else ""
    return f"{found['project'] or 'the store'}: head {found['head']}, up to event {found['last']}{younger}"


@options()
def attest(run: Run, given: Namespace) -> Answer:
    """Print the head, signed with the server's Ed25519 key, as JSON: keep it elsewhere, for `verify --head FILE`."""
    from tenure.client.wire import plain

    found = plain(run.client.attest())
    return Answer(found, lambda: _json(found))


def _json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


@options(arg("file", metavar="FILE", help="the file to write; it must not exist"))
def export(run: Run, given: Namespace) -> Answer:
    """Write the sealed log with its seals to a file, which `audit verify FILE` checks without a store.

    It has everything that the log has: results, texts of tasks, names. Its mode is 0600. Keep the digest that is
    printed elsewhere: it is the only proof of the tenant and the time in the first line.
    """
    path = os.path.join(run.folder, given.file)
    found = run.client.export_audit(path)
    text = f"{counted(found['lines'], 'line')} written to {path}; digest {found['digest']}"
    return Answer({"file": path, **found}, text)


@options(
    arg("file", nargs="?", metavar="FILE", help="an export (else the store)"),
    arg("--head", metavar="HEAD", help=_HEAD),
)
def verify(run: Run, given: Namespace) -> Answer:
    """Check that nobody has changed, removed, inserted or moved a sealed event, and every signature of a result.

    Without --project every project that is sealed is checked, and the store's own log. What retention has deleted is
    counted apart. Events younger than the last seal are not protected. Exit code 8 with findings.
    """
    if given.file is not None:
        return _verify_file(run, given)
    if given.project is None and given.head is None:
        asked = [q.VerifyAudit(project=name, store=is_store) for name, is_store in _audited(run)]
        reports = [run.client.query(query) for query in asked]
        if not reports:
            raise Usage("audit verify: no project is sealed", "`tenure audit on` begins")
    else:
        expected = None if given.head is None else str(_head_given(run, given.head, run.client.project))
        reports = [run.client.verify_audit(head=expected)]
    return _answer(reports)


def _answer(reports: Sequence[Any]) -> Answer:
    from tenure.client.wire import plain

    findings = [f"{_named(one)}: {line}" for one in reports for line in one["findings"]]
    value = {"ok": not findings, "findings": findings, "projects": plain(list(reports))}
    lines = findings + [_good(one) for one in reports if not one["findings"]]
    return Answer(value, "\n".join(lines), FOUND if findings else 0)


def _named(report: Any) -> str:
    return report["project"] or "the store"


def _good(report: Any) -> str:
    parts = [f"{counted(report['sealed'], 'event')} in {counted(report['seals'], 'seal')}, unchanged"]
    if report["pruned"]:
        parts.append(f"{report['pruned']} of them deleted by retention")
    if report["signatures"]:
        parts.append(f"{counted(report['signatures'], 'signature')} checked")
    if report["unsealed"]:
        parts.append(f"{report['unsealed']} younger than the last seal")
    return f"{_named(report)}: {'; '.join(parts)}; head {report['head']}"


def _verify_file(run: Run, given: Namespace) -> Answer:
    from tenure.client.audit_file import check_file
    from tenure.sealing.signing import is_signed

    path = os.path.join(run.folder, given.file)
    if not os.path.isfile(path):
        what = "is not a file" if os.path.exists(path) else "no such file"
        raise Usage(f"{path}: {what}", "`tenure audit export FILE` writes one")

    def head_of(header: Header) -> Head | None:
        return None if given.head is None else _head_given(run, given.head, header.project, header.tenant)

    header, digest, report = check_file(path, head_of=head_of, is_signed=is_signed)
    if given.project not in (None, header.project):
        raise Usage(f"{path} is of the project {header.project}, not of {given.project}", "leave --project out")
    found = {**report._asdict(), "project": header.project, "ok": not report.findings, "head": str(report.head)}
    answer = _answer([found])
    if digest is None:
        note = "An older version wrote this file: nothing proves the tenant and the time in its first line."
    else:
        note = f"digest of the file: {digest}"
    return Answer({**answer.value, "digest": digest}, f"{answer.text}\n{note}", answer.code)


def _head_given(run: Run, text: str, project: str, tenant: str | None = None) -> Head:
    """A head as NUMBER:SHA256, or the file of an attestation."""
    path = os.path.join(run.folder, text)
    if not os.path.isfile(path):
        return _spelt(text, "nor the file of an attestation")
    import msgspec

    from tenure.core.attestation import head_in
    from tenure.sealing.signing import is_signed

    try:
        with open(path, "rb") as file:
            attestation = msgspec.json.decode(file.read(100_000))
    except (OSError, msgspec.DecodeError) as error:
        raise Usage(f"{text}: {error}") from None
    return head_in(attestation, project, is_signed, tenant=tenant)


def _spelt(text: str, also: str = "") -> Head:
    """Exit code 2, not 8: that a head cannot be read says nothing about the log."""
    try:
        return parse_head(text)
    except InvalidInput as error:
        raise Usage(f"{error.message}, {also}" if also else error.message, error.hint) from None


def _audited(run: Run) -> Iterator[tuple[str, bool]]:
    """Each project that is sealed, and at last one of them for the store's own log."""
    names = [name for name in run.client.projects() if _is_sealed(run, name)]
    yield from ((name, False) for name in names)
    if names:
        yield names[0], True


def _is_sealed(run: Run, project: str) -> bool:
    """By its seals: one whose mark was taken off is not passed over."""
    try:
        run.client.query(q.AuditHead(project=project))
    except NotFound:
        return False
    return True


# --- the access log -----------------------------------------------------------------------------------------


@options(
    arg("files", nargs="+", metavar="FILE", help="the files of one chain, the oldest first"),
    arg("--head", metavar="NUMBER:HASH", help="a head that was kept elsewhere: a cut or rewritten chain is found too"),
)
def verify_access(run: Run, given: Namespace) -> Answer:
    """Check that no line of an access log was changed, removed, inserted or moved; print its head.

    Keep the head elsewhere: with --head a chain that was cut off, or computed again, is found as well. A line that a
    crash has torn is named, and is not a fault; lines that the server could not write are. Exit code 8 with findings.
    """
    expected = _spelt(given.head) if given.head else None
    with ExitStack() as stack:
        files = list(_opened(stack, given.files))
        found = check(files, expected)
    value = {
        "ok": not found.findings, "lines": found.lines, "first": found.first, "head": str(found.head),
        "findings": found.findings, "torn": found.torn, "lost": found.lost,
    }  # fmt: skip
    lines = [*found.findings, *found.torn]
    if not found.findings:
        lines.append(f"{counted(found.lines, 'line')}, each in its place; head {found.head}")
    return Answer(value, "\n".join(lines), FOUND if found.findings else 0)


def _opened(stack: ExitStack, names: Sequence[str]) -> Iterator[tuple[str, Iterable[bytes]]]:
    for name in names:
        try:
            yield name, stack.enter_context(open(name, "rb"))  # noqa: SIM115 - closed by the stack
        except OSError as error:
            raise Usage(f"{name}: {error.strerror}") from None
