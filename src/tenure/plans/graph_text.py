"""A dag as text, Mermaid or DOT: states, dependencies, the critical path marked.

`client.dag` returns the view; `planned` makes one from a plan file. Titles are untrusted text: each form quotes them,
so that they can only ever be a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from tenure.core import graph, inputs, lifecycle, limits
from tenure.core.commands import Dependency
from tenure.core.records import Edge, Task
from tenure.plans.files import PlanFile

View = Mapping[str, Any]
PLANNED = "planned"
LONGEST_LABEL = limits.PLAN_LABEL

_MARKS = {
    lifecycle.COMPLETED: "✓", lifecycle.CANCELLED: "✗", lifecycle.DEAD_LETTERED: "✗", lifecycle.READY: "○",
    lifecycle.CLAIMED: "●", lifecycle.RUNNING: "●", lifecycle.VALIDATING: "●", lifecycle.PAUSED: "‖",
    lifecycle.RETRYING: "↻",
}  # fmt: skip
_COLOURS = {
    lifecycle.COMPLETED: "#c8e6c9", lifecycle.READY: "#fff9c4", lifecycle.CLAIMED: "#bbdefb",
    lifecycle.RUNNING: "#bbdefb", lifecycle.VALIDATING: "#bbdefb", lifecycle.PAUSED: "#ffe0b2",
    lifecycle.RETRYING: "#ffe0b2", lifecycle.DEAD_LETTERED: "#ffcdd2", lifecycle.CANCELLED: "#eeeeee",
}  # fmt: skip


def draw(view: View, form: str) -> str:
    """The graph in one of FORMS."""
    return FORMS[inputs.check_choice(form, FORMS, "format")](view)


def planned(plan: PlanFile) -> View:
    """The view of a plan that is not in the store: tasks by their local names, none of them started."""
    names = [task.name or task.key or task.title for task in plan.tasks]
    local = {n: name for task, name in zip(plan.tasks, names, strict=True) for n in (task.name, task.key) if n}
    edges: dict[tuple[str, str], str] = {}
    for task, name in zip(plan.tasks, names, strict=True):
        for wanted in task.depends_on:
            dependency = Dependency(task=wanted) if isinstance(wanted, str) else wanted
            edges[name, local.get(dependency.task, dependency.task)] = dependency.on_failure
        if task.parent is not None:
            edges.setdefault((local.get(task.parent, task.parent), name), "block")
    rows = {
        name: Task(
            project="",
            id=name,
            key=name,
            ref=name,
            track="",
            sequence=0,
            dag="",
            state=lifecycle.PENDING,
            created_at=0,
            updated_at=0,
        )
        for name in names
    }
    path = graph.critical_path(rows, [Edge(project="", id="", task=t, needs=n) for t, n in edges])
    return {
        "id": None, "title": plan.title, "plan": plan.name, "status": PLANNED, "total": len(names), "completed": 0,
        "tasks": [
            {"key": name, "state": PLANNED, "title": task.title} for task, name in zip(plan.tasks, names, strict=True)
        ],
        "edges": [{"task": t, "needs": n, "on_failure": how} for (t, n), how in edges.items()],
        "critical_path": list(path),
    }  # fmt: skip


# --- text ---------------------------------------------------------------------------------------------------


def as_text(view: View) -> str:
    """Levels of what can run side by side, each task with what it waits for."""
    tasks = {task["key"]: task for task in view["tasks"]}
    needs = _needs(view)
    critical = set(view["critical_path"])
    levels: dict[int, list[str]] = {}
    for key, level in _levels(tasks, needs).items():
        levels.setdefault(level, []).append(key)
    width = min(LONGEST_LABEL, max((_width(key) for key in tasks), default=0))
    lines = [_head(view)]
    for level in sorted(levels):
        lines.append(f"\nlevel {level + 1}")
        for key in sorted(levels[level]):
            task = tasks[key]
            mark = "*" if key in critical else " "
            state = _MARKS.get(task["state"], "·")
            pad = " " * max(0, width - _width(key))
            words = [f" {mark} {state} {line_of(key)}{pad}  {task['state']:<13}{shortened(task.get('title') or '')}"]
            if task.get("agent"):
                words.append(f"[{line_of(task['agent'])}]")
            if needs.get(key):
                words.append("← " + ", ".join(_needed(edge, tasks) for edge in needs[key]))
            lines.append("  ".join(words).rstrip())
    if view["critical_path"]:
        path = [line_of(key) for key in view["critical_path"]]
        shown = path if len(path) <= 12 else [*path[:6], "…", *path[-5:]]
        lines.append(f"\n* critical path, {len(path)} long: {' → '.join(shown)}")
    return "\n".join(lines) + "\n"


def _head(view: View) -> str:
    name = view.get("title") or view.get("plan") or view.get("id") or "plan"
    known = [str(view[k]) for k in ("plan", "id") if view.get(k) and view[k] != name]
    aside = f" ({', '.join(line_of(word) for word in known)})" if known else ""
    return f"{shortened(str(name))}{aside}: {view['status']}, {view['completed']} of {view['total']} completed"


def _needed(edge: dict[str, Any], tasks: dict[str, Any]) -> str:
    how = "" if edge["on_failure"] == "block" else f" ({edge['on_failure']})"
    return line_of(edge["needs"]) + how + ("" if edge["needs"] in tasks else " (elsewhere)")


def _needs(view: View) -> dict[str, list[dict[str, Any]]]:
    needs: dict[str, list[dict[str, Any]]] = {}
    for edge in sorted(view["edges"], key=lambda e: str(e["needs"])):
        needs.setdefault(edge["task"], []).append(edge)
    return needs


def _levels(tasks: Iterable[str], needs: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    """How many tasks of this dag stand before each, at least: 0 for those that wait for none."""
    inside = {key: [e["needs"] for e in needs.get(key, ())] for key in tasks}
    level: dict[str, int] = {}
    for key in graph.check_acyclic(inside, {}):
        if key in inside:
            level[key] = 1 + max((level[n] for n in inside[key] if n in level), default=-1)
    return level


def line_of(text: str) -> str:
    """The text on one line: a character that could move the cursor or hide others becomes a space."""
    if text.isascii() and text.isprintable():
        return text.strip()
    return " ".join("".join(c if unicodedata.category(c)[0] not in "CZ" else " " for c in text).split())


def shortened(text: str) -> str:
    text = line_of(text)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1].rstrip() + "…"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line_of(text))


# --- mermaid ------------------------------------------------------------------------------------------------

_MERMAID = re.compile(r"[^\w .,:/()+=!?→–-]")


def as_mermaid(view: View) -> str:
    """A flowchart; nodes are numbered, so that no key can be read as syntax."""
    number, labels = _numbered(view)
    tasks = {task["key"]: task for task in view["tasks"]}
    lines = ["flowchart TD"]
    for key, n in number.items():
        task = tasks.get(key)
        label = _mermaid_label(key) + "".join(f"<br/>{_mermaid_label(line)}" for line in labels[key])
        lines.append(f'    n{n}["{label}"]' + (f":::{task['state']}" if task else ":::elsewhere"))
    for edge in view["edges"]:
        start, end = number[edge["needs"]], number[edge["task"]]
        arrow = "-->" if edge["on_failure"] == "block" else f"-. {edge['on_failure']} .->"
        lines.append(f"    n{start} {arrow} n{end}")
    for state, colour in _COLOURS.items():
        lines.append(f"    classDef {state} fill:{colour},color:#000000")
    lines.append("    classDef elsewhere stroke-dasharray: 4 4")
    lines.append("    classDef critical stroke:#c62828,stroke-width:3px")
    critical = [f"n{number[key]}" for key in view["critical_path"]]
    if critical:
        lines.append(f"    class {','.join(critical)} critical")
    return "\n".join(lines) + "\n"


def _mermaid_label(text: str) -> str:
    """The text, with every special character of Mermaid, Markdown or HTML as a number."""
    return _MERMAID.sub(lambda match: f"#{ord(match.group())};", line_of(text))


def _numbered(view: View) -> tuple[dict[str, int], dict[str, list[str]]]:
    """A number for each task, also of other dags, and the lines below its key."""
    keys = dict.fromkeys(task["key"] for task in view["tasks"])
    keys |= dict.fromkeys(edge["needs"] for edge in view["edges"])
    keys |= dict.fromkeys(edge["task"] for edge in view["edges"])
    labels: dict[str, list[str]] = {key: [] for key in keys}
    for task in view["tasks"]:
        labels[task["key"]] = [shortened(task.get("title") or "") or task["key"], task["state"]]
    return {key: n for n, key in enumerate(keys)}, labels


# --- dot ----------------------------------------------------------------------------------------------------


def as_dot(view: View) -> str:
    number, labels = _numbered(view)
    tasks = {task["key"]: task for task in view["tasks"]}
    critical = list(view["critical_path"])
    on_path = set(pairwise(critical))
    lines = [
        f"digraph {_dot(view.get('title') or view.get('plan') or 'plan')} {{",
        "    rankdir=TB;",
        '    node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="sans-serif"];',
    ]
    for key, n in number.items():
        marks = [f"label={_dot(chr(10).join([line_of(key), *labels[key]]))}"]
        if key not in tasks:
            marks.append('style="rounded,dashed"')
        elif tasks[key]["state"] in _COLOURS:
            marks.append(f'fillcolor="{_COLOURS[tasks[key]["state"]]}"')
        if key in critical:
            marks.append('color="#c62828", penwidth=3')
        lines.append(f"    n{n} [{', '.join(marks)}];")
    for edge in view["edges"]:
        marks = []
        if edge["on_failure"] != "block":
            marks.append(f"style=dashed, label={_dot(edge['on_failure'])}")
        if (edge["needs"], edge["task"]) in on_path:
            marks.append('color="#c62828", penwidth=2')
        attributes = f" [{', '.join(marks)}]" if marks else ""
        lines.append(f"    n{number[edge['needs']]} -> n{number[edge['task']]}{attributes};")
    return "\n".join(lines) + "\n}\n"


def _dot(text: str) -> str:
    """A quoted string of DOT: a backslash would start an escape, an ampersand an entity, a quote would end it."""
    escapes = {"\\": "\\\\", '"': '\\"', "&": "&amp;"}
    lines = ("".join(escapes.get(c, c) for c in line_of(line)) for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'


FORMS = {"text": as_text, "mermaid": as_mermaid, "dot": as_dot}
