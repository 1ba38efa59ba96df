"""`plan …`, `import`: plan files, the graphs they make, and the files of other tools."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenure.cli.main import Answer, Run, arg, options
from tenure.cli.text_format import counted, plain
from tenure.client import Client
from tenure.client.wire import outcome_value
from tenure.client.wire import plain as wire_plain
from tenure.core.errors import InvalidInput, NoStore, NotFound, TenureError
from tenure.core.graph import PENDING, RUNNING
from tenure.core.outcomes import Outcome
from tenure.plans import files, graph_text
from tenure.plans.apply import apply as apply_plan
from tenure.plans.check import plans_of, proven
from tenure.plans.export import export as export_plan
from tenure.plans.files import PlanFile
from tenure.plans.importers.item_plan import Imported
from tenure.plans.importers.port import Note
from tenure.plans.importers.registry import read
from tenure.plans.nodes import LARGEST_FILE, Finding

if TYPE_CHECKING:
    from tenure.core.views import DagEntry

INVALID = 8
STDIN = "-"


def source_of(run: Run, name: str) -> tuple[bytes | str, str]:
    """The content of the file, or of stdin for `-`, and its name in messages."""
    if name == STDIN:
        stream = getattr(sys.stdin, "buffer", sys.stdin)
        return stream.read(LARGEST_FILE + 1), STDIN
    return files.load(Path(run.folder, name)), name


def line_of(finding: Finding) -> str:
    """A line that editors and terminals can jump from."""
    return plain(str(finding))


def listed(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
    return [wire_plain(finding) for finding in findings]


def refused(run: Run, findings: tuple[Finding, ...], what: str, hint: str) -> Answer:
    """A file that cannot be read: every finding is printed, and nothing was done."""
    count = sum(finding.level == "error" for finding in findings)
    message = f"{plain(what)}: {counted(count, 'error')}; nothing was stored"
    if not run.is_json:
        raise InvalidInput("\n".join([message, *map(line_of, findings)]), hint)
    error = {"code": InvalidInput.code, "message": message, "hint": hint, "findings": listed(findings)}
    return Answer({"error": error}, code=INVALID)


def _client(run: Run) -> Client | None:
    """The store's client where there is a store, with the project in it."""
    try:
        _ = run.home
    except NoStore:
        return None
    try:
        run.client.tracks()
    except NotFound:
        return None
    return run.client


@options(arg("file", nargs="+", metavar="FILE", help="plan files, YAML or JSON; - reads stdin"))
def check(run: Run, given: Namespace) -> Answer:
    """Report every error in plan files. With a store, tasks and tracks outside the files are looked up."""
    client = _client(run)
    findings: list[Finding] = []
    lines: list[str] = []
    for name in given.file:
        source, path = source_of(run, name)
        reading = proven(files.read(source, path, 0), client)
        findings += reading.findings
        lines += map(line_of, reading.findings)
        if not reading.errors:
            tasks = sum(len(plan.tasks) for plan in reading.plans)
            lines.append(f"{plain(path)}: {counted(tasks, 'task')}, nothing wrong")
    if client is None:
        lines.append("no store here: tasks and tracks outside the files were not looked up")
    is_wrong = any(finding.level == "error" for finding in findings)
    return Answer(listed(tuple(findings)), "\n".join(lines), INVALID if is_wrong else 0)


@options(
    arg("file", metavar="FILE", help="a plan file, YAML or JSON; - reads stdin"),
    arg("--name", metavar="NAME", help="the plan's name, by which it is known when applied again (else the file's)"),
    arg("--prune", action="store_true", help="cancel unclaimed tasks that the plan no longer has"),
    arg("--dry-run", action="store_true", help="show what would happen, without storing"),
)
def apply(run: Run, given: Namespace) -> Answer:
    """Create or update the tasks of a plan file, in one transaction."""
    source, path = source_of(run, given.file)
    now = run.client.status()["now"]
    reading = proven(files.read(source, path, now), run.client)
    if reading.errors:
        return refused(run, reading.findings, path, "fix them and apply it again")
    if given.name and len(reading.plans) > 1:
        raise InvalidInput("--name: the file holds several plans", "name each of them in the file")
    if path == STDIN and not given.name and any(plan.name is None for plan in reading.plans):
        raise InvalidInput("a plan from stdin without a name", "add `name:` to it, or give --name")
    outcomes = _apply_all(run.client, reading.plans, given)
    value = {"plans": [{"name": name, **outcome_value(outcome)} for name, outcome in outcomes]}
    return Answer(value, lambda: "\n".join(_plan_text(name, outcome) for name, outcome in outcomes))


def _apply_all(client: Client, plans: tuple[PlanFile, ...], given: Namespace) -> list[tuple[str, Outcome]]:
    done: list[tuple[str, Outcome]] = []
    for plan in plans:
        name = given.name or plan.name or files.name_for(plan.path) or ""
        try:
            outcome = apply_plan(client, plan, name=name or None, prune=given.prune, dry_run=given.dry_run)
        except TenureError as error:
            if done:
                before = ", ".join(name for name, _ in done)
                error.message = f"plan {name}: {error.message}; of this file, {before} had been applied before"
            raise
        done.append((name, outcome))
    return done


def _plan_text(name: str, outcome: Outcome) -> str:
    lines = [f"{plain(name)}: {plain(outcome.message)}"]
    lines += [f"  {plain(task['key'])}  {task['state']}" for task in outcome.tasks or ()]
    for what, keys in (("changed", outcome.changed), ("left as it is", outcome.left), ("not in it", outcome.missing)):
        lines += [f"  {plain(key)}  {what}" for key in keys or ()]
    if outcome.missing:
        lines.append("  --prune cancels those of the last that nobody has claimed")
    return "\n".join(lines)


@options(
    arg("what", nargs="?", metavar="FILE|NAME|DAG|TASK", help="a plan file, a plan's name, a dag or one of its tasks"),
    arg("--format", choices=(*graph_text.FORMS, "json"), default="text", help="how to draw it (text)"),
)
def graph(run: Run, given: Namespace) -> Answer:
    """Draw the graph with states and the critical path. Without a name: every open plan."""
    views = _views(run, given.what)
    value = wire_plain(views if given.what is None else views[0] if len(views) == 1 else views)
    if given.format == "json":
        import msgspec

        return Answer(value, lambda: msgspec.json.format(msgspec.json.encode(value)).decode())
    return Answer(value, lambda: "\n".join(graph_text.draw(view, given.format) for view in views))


def _views(run: Run, what: str | None) -> Sequence[Mapping[str, Any]]:
    if what is not None and (what == STDIN or Path(run.folder, what).is_file()):
        source, path = source_of(run, what)
        return [graph_text.planned(plan) for plan in plans_of(files.read(source, path, 0))]
    client = run.client
    dags = client.dags()
    if what is None:
        views = [client.dag(dag["id"]) for dag in dags if dag["status"] in (PENDING, RUNNING)]
        if not views:
            raise NotFound("no open plan here", "name a plan file, or a task to see its dag")
        return views
    return [client.dag(_dag_named(client, dags, what))]


def _dag_named(client: Client, dags: Sequence[DagEntry], what: str) -> str:
    """A plan's name, a dag's id, or a task of it."""
    for dag in dags:
        if what in (dag["plan"], dag["id"]):
            return str(dag["id"])
    if what.startswith("dag_"):
        return what
    try:
        return str(client.show(what)["dag"])
    except NotFound as error:
        plans = ", ".join(dag["plan"] for dag in dags if dag["plan"])
        raise NotFound(
            f"no file, plan, dag or task {what[:80]!r}", f"plans here: {plans[:200]}" if plans else error.hint
        ) from None


@options(
    arg("what", nargs="?", metavar="NAME|DAG|TASK", help="a plan's name, a dag, or a task of it"),
    arg("--all", action="store_true", help="all plans, one document each, and one for the rest"),
    arg("-o", "--output", metavar="FILE", help="write to a new file instead"),
    arg("--open", action="store_true", help="leave out finished tasks and dependencies on them"),
    arg("--no-keys", action="store_true", help="omit the keys, so that the tasks get new ones elsewhere"),
)
def export(run: Run, given: Namespace) -> Answer:
    """Export a plan as a plan file. Applied to its own project it changes nothing."""
    if (given.what is None) == (not given.all):
        raise InvalidInput("export: name a plan, dag or task, or pass --all", "`tenure plan graph` shows what there is")
    client = run.client
    dag = None if given.all else _dag_named(client, client.dags(), given.what)
    text = export_plan(client, dag=dag, keys=not given.no_keys, open_only=given.open)
    if given.output is None:
        return Answer({"text": text}, text)
    path = os.path.join(run.folder, given.output)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInput(f"{given.output}: exists already, and was not changed", "name another file") from None
    except OSError as error:
        raise InvalidInput(f"{given.output}: {error.strerror or error}") from None
    return Answer({"file": path, "text": text}, f"written to {given.output}")


SHOWN = 5
_WORDS = {
    "done": "done there, not imported",
    "dropped": "deleted, cancelled or not work, not imported",
    "begun": "in progress there; nobody holds them here",
    "draft": "drafts; `tenure publish` publishes them",
    "met": "dependencies on done work, met",
    "loosened": "dependencies on tasks that were not imported, dropped",
    "parent": "parents that could not be kept",
    "changed": "values changed to fit",
    "kept": "values that are only in the metadata",
}


@options(
    arg("tool", metavar="TOOL", help="beads, task-master, backlog, or an installed importer"),
    arg("path", nargs="?", default=".", metavar="PATH", help="a repository, or the tool's own file or folder (.)"),
    arg("--tag", metavar="NAME", help="only the tasks of this tag (task-master)"),
    arg("--dry-run", action="store_true", help="show what would happen, without storing"),
    arg("--skip-bad", action="store_true", help="leave out invalid entries instead of refusing all"),
)
def import_(run: Run, given: Namespace) -> Answer:
    """Import open tasks of another tool. Done ones are left out, and nothing is imported twice."""
    imported = read(given.tool, Path(run.folder, given.path), tag=given.tag, skip_bad=given.skip_bad)
    if imported.errors:
        return refused(run, imported.findings, imported.tool, "fix them, or pass --skip-bad to leave them out")
    outcome = apply_plan(run.client, imported.plan, dry_run=given.dry_run) if imported.plan else None
    value: dict[str, Any] = {
        "tool": imported.tool, "seen": imported.seen, "plan": imported.plan.name if imported.plan else None,
        "outcome": outcome_value(outcome) if outcome else None, "notes": [wire_plain(n) for n in imported.notes],
        "findings": listed(imported.findings),
    }  # fmt: skip
    return Answer(value, lambda: _import_text(imported, outcome))


def _import_text(imported: Imported, outcome: Outcome | None) -> str:
    message = plain(outcome.message) if outcome else "nothing open to import"
    lines = [line_of(finding) for finding in imported.findings]
    lines.append(f"{imported.tool}: {counted(imported.seen, 'item')} read; {message}")
    by_kind: dict[str, list[Note]] = {}
    for note in imported.notes:
        by_kind.setdefault(note.what, []).append(note)
    for what, words in _WORDS.items():
        notes = by_kind.get(what, [])
        if notes:
            ids = list(dict.fromkeys(plain(note.id) for note in notes))
            some = ", ".join(ids[:SHOWN]) + (" …" if len(ids) > SHOWN else "")
            lines.append(f"  {len(notes):>5}  {words}: {some}")
    if imported.notes:
        lines.append("  --json lists each of them")
    if outcome and outcome.missing:
        lines.append(f"  no longer open in {imported.tool}: {', '.join(plain(key) for key in outcome.missing[:SHOWN])}")
    return "\n".join(lines)
