"""`history`: who held a task, one line a generation, and refused submissions below their generation."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from tenure.cli.main import Answer, Run, arg, options
from tenure.cli.state_marks import MARKS, in_words
from tenure.cli.text_format import NOTHING, clock, counted, lasting, moment, plain, shorten, style, table, width_of
from tenure.client.wire import plain as wire

HOW = {
    "COMPLETED": "green", "SUBMITTED": "blue", "FAILED": "red", "EXPIRED": "red", "VOLUNTARY": "cyan",
    "PAUSED": "magenta", "WAITING": "cyan", "CANCELLED": "grey", "SUPERSEDED": "yellow", "ERROR": "red",
}  # fmt: skip
HEADERS = ("gen", "agent", "session", "held", "ended by", "result", "work product")


@options(arg("task", help="id, key, short key (B-003) or an unambiguous prefix"))
def history(run: Run, given: Namespace) -> Answer:
    """Show the lineage of a task: one line a generation, and below it every refused submission.

    With --json an array, one object a generation: generation, session, agent, acquired_at, released_at,
    release_reason, result_accepted, work_product_ref, refused …
    """
    claims = run.client.history(given.task)
    if run.is_json:
        return Answer(wire(claims))
    task = run.client.show(given.task)
    return Answer(None, f"{headline(task, len(claims))}\n\n{fitted(claims, run.client.status()['now'])}")


def headline(task: Mapping[str, Any], generations: int) -> str:
    mark = MARKS[task["state"]]
    state = style(f"{mark.sign} {in_words(task['state'])}", mark.colour)
    run = f", run {task['run']}" if task["run"] > 1 else ""
    name = f"{style(task['key'], 'bold')}  {shorten(task['title'], 60)}"
    return f"{name}\n{state}{run}, {counted(generations, 'generation')}"


def fitted(claims: Sequence[Mapping[str, Any]], now: int) -> str:
    """The timeline; narrow if the terminal is narrow, complete in a pipe."""
    text = drawn(claims, now)
    if not sys.stdout.isatty():
        return text
    room = os.get_terminal_size(sys.stdout.fileno()).columns
    return text if max(width_of(line) for line in text.split("\n")) <= room else drawn(claims, now, is_narrow=True)


def drawn(claims: Sequence[Mapping[str, Any]], now: int, *, is_narrow: bool = False) -> str:
    """The timeline, with refused submissions below the generation of their receipt.

    A narrow one has neither session nor work product.
    """
    if not claims:
        return "not claimed yet"
    kept = [n for n, header in enumerate(HEADERS) if not is_narrow or header not in ("session", "work product")]
    rows = [_row(claim, now) for claim in claims]
    lines = table([[row[n] for n in kept] for row in rows], [HEADERS[n] for n in kept]).split("\n")
    drawing, run = [lines[0]], claims[0]["run"]
    for claim, line in zip(claims, lines[1:], strict=True):
        if claim["run"] != run:
            run = claim["run"]
            drawing.append(style(f"     run {run}: a person started it over", "dim"))
        drawing.append(line)
        drawing += [f"     {part}" for part in _under(claim, now, is_narrow=is_narrow)]
    return "\n".join(drawing)


def _row(claim: Mapping[str, Any], now: int) -> tuple[object, ...]:
    reason = claim["release_reason"]
    ended = style(reason, HOW.get(reason, "dim")) if reason else style("holds it", "yellow")
    return (
        claim["generation"], shorten(claim["agent"], 20), shorten(claim["session"], 24), _held(claim, now), ended,
        _fate(claim), claim["work_product_ref"],
    )  # fmt: skip


def _held(claim: Mapping[str, Any], now: int) -> str:
    began, ended = claim["acquired_at"], claim["released_at"]
    until = clock(ended) if ended is not None else "…"
    return f"{moment(began, now)} – {until} ({lasting(((now if ended is None else ended) - began) / 1e6)})"


def _fate(claim: Mapping[str, Any]) -> str:
    """The fate of its results: an accepted one wins over refused ones of the same generation."""
    if claim["result_accepted"]:
        return style("accepted", "green")
    if claim["refused"]:
        return style("refused, kept", "red")
    return NOTHING


def verdict_line(verdict: Mapping[str, Any]) -> str:
    """A validator's verdict, or that there is none yet."""
    said = f"{verdict['validator']}: {verdict['state']}"
    if verdict["decided_by"]:
        said += f" by {plain(verdict['decided_by'])}"
    if verdict["holder"]:
        said += f", {plain(verdict['holder'])} checks it"
    if verdict["state"] in ("waiting", "running") and verdict["tries"]:
        said += f", try {verdict['tries']}"
    why = "; ".join(verdict["reasons"]) or (verdict["note"] if verdict["state"] == "waiting" else "")
    return f"{said}: {shorten(why, 90)}" if why else said


def _under(claim: Mapping[str, Any], now: int, *, is_narrow: bool) -> list[str]:
    said = []
    if claim.get("error"):
        kind = f"{claim['error_class']}: " if claim.get("error_class") else ""
        said.append(f"└ {kind}{shorten(claim['error'], 90)}")
    verdict = claim.get("validation")
    if verdict:
        said.append(f"└ {verdict_line(verdict)}")
    said += [
        f"└ was about to land {landing['new'][:12]} on {plain(landing['branch'])}"
        for landing in reversed(claim.get("landings") or ())
    ]
    for result in claim["refused"]:
        why = style(f"refused: {result['reason']}", "red")
        who = f"from {plain(result['agent'])} with generation {result['generation']}"
        said.append(f"└ {moment(result['submitted_at'], now)} {why}, {who}")
        if result["summary"]:
            said.append(f"    {shorten(result['summary'], 90)}")
    usage = claim.get("usage")
    if usage and not is_narrow:
        from tenure.cli.status import paid

        said.append(style(f"└ {paid(usage)}", "dim"))
    return said
