"""Runs every case in both orders and prints the results, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.peers import install
from bench.zombies.referee import AFTER, DURING, ORDERS, CaseFailed, Found, play
from bench.zombies.roster import Case, chosen, title
from tests.servers.postgres import PostgresServer
from tests.servers.processes import Server, Unavailable
from tests.servers.valkey import ValkeyServer

HEAD = (
    "tool",
    "takes over",
    "zombie after the other finished",
    "zombie while the other works",
    "result that stands",
    "trace",
)


def played(cases: Iterable[Case], python: Path | None, say: Any) -> dict[Case, dict[str, Found] | str]:
    """What each case showed in each order, or why it could not be played."""
    cases = tuple(cases)
    answers: dict[Case, dict[str, Found] | str] = {}
    with ExitStack() as stack:
        running: dict[str, Server] = {}
        missing: dict[str, str] = {}
        for store in {case.store for case in cases} - {"SQLite"}:
            try:
                server = PostgresServer.measured() if store == "PostgreSQL" else ValkeyServer(python)
                running[store] = stack.enter_context(server)
            except Unavailable as why:
                missing[store] = str(why)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-zombies-")))
        for number, case in enumerate(cases):
            if case.store in missing:
                answers[case] = missing[case.store]
            elif python is None and not case.is_ours:
                answers[case] = "the peers are not installed"
            else:
                answers[case] = _both_orders(case, python or Path(), running.get(case.store), folder / str(number))
            say(case, answers[case])
    return answers


def _both_orders(case: Case, python: Path, server: Server | None, folder: Path) -> dict[str, Found] | str:
    found: dict[str, Found] = {}
    for order in ORDERS:
        own = folder / order
        own.mkdir(parents=True)
        place = {"folder": str(own)}
        if isinstance(server, PostgresServer):
            place["postgres"] = server.create(f"zombies_{folder.name}_{order}")
        if isinstance(server, ValkeyServer):
            place["valkey"] = server.url(0 if order == AFTER else 1)
        try:
            found[order] = play(case, order, python, place, server)
        except CaseFailed as why:
            return f"{order}: {why}"
        if not found[order].takes_over:
            break  # there is no second worker to complete before
    return found


def row_of(case: Case, answer: dict[str, Found] | str) -> tuple[str, ...]:
    if isinstance(answer, str):
        return (title(case), f"NOT PLAYED: {answer}", "", "", "", "")
    first = answer[AFTER]
    if not first.takes_over:
        return (title(case), "no", "–", "–", f"{first.result}", first.trace)
    second = answer[DURING]
    stands = " / ".join(f"{f.result}{'†' if f.is_own else ''}" for f in (first, second))
    # Once the zombie was accepted, it is the rightful holder whose completion comes too late.
    late = f"; then the other: {second.holder}" if second.completion == "accepted" else ""
    return (title(case), "yes", first.completion, second.completion + late, stands, first.trace)


def markdown(answers: dict[Case, dict[str, Found] | str]) -> str:
    pinned = install.versions()
    lines = ["| " + " | ".join(HEAD) + " |", "| " + " | ".join("---" for _ in HEAD) + " |"]
    for case, answer in answers.items():
        _, *rest = row_of(case, answer)
        name = f"{case.name} {pinned.get(case.package, '')}".strip()
        lines.append("| " + " | ".join([f"{name} ({case.store})", *rest]) + " |")
    return "\n".join(lines)


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./x bench zombies", description=__doc__)
    parser.add_argument(
        "--only", metavar="WORDS", help="tools whose name or store has one of these words, as in celery,dbos"
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one object a line, with the rows that were read")
    shape.add_argument("--markdown", action="store_true", help="the table of the docs")
    given = parser.parse_args(argv)
    given.cases = chosen(given.only)
    if not given.cases:
        parser.error(f"no tool has any of {given.only!r} in its name")
    return given


def main(argv: list[str]) -> int:
    given = arguments_of(argv)
    python = None
    if not all(case.is_ours for case in given.cases):
        try:
            python = install.install()
        except install.NotInstalled as why:
            print(f"bench: {why}", file=sys.stderr)
    answers = played(given.cases, python, _say)
    if given.json:
        for case, answer in answers.items():
            print(json.dumps(_plain(case, answer), ensure_ascii=False))
    elif given.markdown:
        print(markdown(answers))
    else:
        rows = [HEAD, *(row_of(case, answer) for case, answer in answers.items())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    # Ours must hold whatever the others do.
    return 1 if any(case.is_ours and not is_fenced(answer) for case, answer in answers.items()) else 0


def is_fenced(answer: dict[str, Found] | str) -> bool:
    """Another took over, the zombie was refused in both orders, and the other's result stands."""
    return not isinstance(answer, str) and all(
        f.takes_over and f.completion == "refused" and f.result == "B" for f in answer.values()
    )


def _plain(case: Case, answer: dict[str, Found] | str) -> dict[str, Any]:
    about = {"tool": case.name, "store": case.store, "recovery": case.recovery, "page": case.page}
    if isinstance(answer, str):
        return {**about, "failed": answer}
    return {**about, "is_fenced": is_fenced(answer), **{order: found._asdict() for order, found in answer.items()}}


def _say(case: Case, answer: dict[str, Found] | str) -> None:
    print("bench: " + "; ".join(part for part in row_of(case, answer) if part), file=sys.stderr, flush=True)
