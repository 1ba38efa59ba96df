"""`audit verify-access`: check files that a server has written. Needs no store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from tenure.cli.main import Answer, Run, Usage, arg, options
from tenure.cli.text_format import counted
from tenure.core.access_chain import check, parse_head

FOUND = 8  # exit code


@options(
    arg("files", nargs="+", metavar="FILE", help="the files of one chain, the oldest first"),
    arg("--head", metavar="NUMBER:HASH", help="a head that was kept elsewhere: a cut or rewritten chain is found too"),
)
def verify_access(run: Run, given: Namespace) -> Answer:
    """Check that no line of an access log was changed, removed, inserted or moved; print its head.

    Keep the head elsewhere: with --head a chain that was cut off, or computed again, is found as well. A line that a
    crash has torn is named, and is not a fault. Exit code 8 with findings.
    """
    expected = parse_head(given.head) if given.head else None
    with ExitStack() as stack:
        files = list(_opened(stack, given.files))
        found = check(files, expected)
    value = {
        "ok": not found.findings, "lines": found.lines, "first": found.first, "head": str(found.head),
        "findings": found.findings, "torn": found.torn,
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
