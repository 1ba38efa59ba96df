"""Writes a plan file from the tasks in the store.

Applied to the project it came from, the file of a named plan changes nothing. In another project it creates the same
tasks under the same keys. Tasks without a plan cannot be recognised: applied to its own project, their file is refused,
since its keys are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from tenure.client import Client
from tenure.core import graph, ids
from tenure.core.commands import NewTask
from tenure.core.errors import Cycle, NotFound
from tenure.core.priority import TIERS
from tenure.core.records import RetryPolicy
from tenure.core.retry import differing, in_our_words
from tenure.core.written_times import SECOND, spell_duration, spell_instant
from tenure.engine.verbs.projects import TRACKS
from tenure.plans import yaml_text

Group = Mapping[str, Any]
_FIELDS = (
    "type", "description", "tags", "priority", "boost", "deadline", "not_before", "touches", "spec", "constraints",
    "output", "max_attempts", "retry", "on_lost", "metadata", "draft",
)  # fmt: skip
_DEFAULTS = NewTask(title="")
_TIERS = {number: tier for tier, (_, number) in TIERS.items()}


def export(
    client: Client,
    *,
    dag: str | None = None,
    plan: str | None = None,
    keys: bool = True,
    open_only: bool = False,
) -> str:
    """The plan of this name, the dag of this id, or everything: a document for each plan, and one for the rest.

    Without `keys` the tasks get new ones where the file is applied. With `open_only` finished tasks are left out, and
    dependencies on them count as met.
    """
    groups = client.plans(dag=dag, plan=plan, open_only=open_only)
    if not groups:
        raise NotFound("nothing to export: no tasks here", "include finished ones" if open_only else None)
    tracks = {track["code"]: track for track in client.tracks()}
    return "---\n".join(_document(group, tracks, keys, open_only) for group in _ordered(groups))


def _ordered(groups: Sequence[Group]) -> Sequence[Group]:
    """A plan comes after the plans that it waits for. Plans that wait for each other become one."""
    home = {task["id"]: str(n) for n, group in enumerate(groups) for task in group["tasks"]}
    needs: dict[str, list[str]] = {str(n): [] for n in range(len(groups))}
    for n, group in enumerate(groups):
        for task in group["tasks"]:
            wanted = [edge["id"] for edge in task["depends_on"] if not edge["subtask"]] + [task["parent"]]
            needs[str(n)] += [home[id] for id in wanted if home.get(id, str(n)) != str(n)]
    try:
        order = graph.check_acyclic(needs, {})
    except Cycle:
        tasks = [{**task, "name": None} for group in groups for task in group["tasks"]]
        return [{"id": None, "title": "", "plan": None, "on_end": {}, "budget": None, "tasks": tasks}]
    return _named([groups[int(n)] for n in order])


def _named(groups: Sequence[Group]) -> Sequence[Group]:
    """Several plans in one file need distinct names."""
    if len(groups) == 1:
        return groups
    taken = {group["plan"] for group in groups}
    named = []
    for group in groups:
        name = group["plan"]
        if name is None:
            word = ids.slug_of(group["title"]) if group["title"] else "rest"
            name = _free(word, taken)
            taken.add(name)
        named.append({**group, "plan": name})
    return named


def _free(word: str, taken: set[Any]) -> str:
    """The word, with a number where it is taken."""
    return word if word not in taken else next(name for n in count(2) if (name := f"{word}-{n}") not in taken)


def _document(group: Group, tracks: dict[str, Any], keys: bool, open_only: bool) -> str:
    names = _names(group, keys)
    tasks = {task["id"]: _task(task, names, keys, open_only) for task in group["tasks"]}
    top = []
    for task in group["tasks"]:
        if task["parent"] in tasks:
            tasks[task["parent"]].setdefault("subtasks", []).append(tasks[task["id"]])
        else:
            top.append(tasks[task["id"]])
    used = dict.fromkeys(task["track"] for task in group["tasks"])
    file: dict[str, Any] = {"name": group["plan"], "title": group["title"], "budget": group["budget"]}
    file["tracks"] = {code: _track(tracks[code]) for code in used if _is_changed(tracks[code])}
    on_end = {status: [_end(task) for task in template["tasks"]] for status, template in group["on_end"].items()}
    after = {"on_end": on_end} if on_end else {}
    return yaml_text.document({key: value for key, value in file.items() if value} | {"tasks": top} | after)


def _is_changed(track: dict[str, Any]) -> bool:
    return (track["name"], track["purpose"]) != TRACKS.get(track["code"])


def _track(track: dict[str, Any]) -> Any:
    return {"name": track["name"], "purpose": track["purpose"]} if track["purpose"] else track["name"]


def _names(group: Group, keys: bool) -> dict[str, str]:
    """A local name for each task: the plan's name for it, else its key, or a free slug where keys are left out."""
    names: dict[str, str] = {}
    taken = {task["name"] for task in group["tasks"]}
    for task in group["tasks"]:
        name = task["name"] or task["key"]
        if not keys and not task["name"]:
            name = _free(ids.slug_of(task["fields"]["title"]), taken)
        taken.add(name)
        names[task["id"]] = name
    return names


def _task(task: dict[str, Any], names: dict[str, str], keys: bool, open_only: bool) -> dict[str, Any]:
    new = msgspec.convert(task["fields"], NewTask)
    fields: dict[str, Any] = {"name": names[task["id"]], "title": new.title}
    if task["parent"] is None:
        fields |= {"key": task["key"]} if keys else {"track": task["track"]}
    elif task["parent"] not in names:
        fields["parent"] = task["parent_key"]
    if fields.get("key") == fields["name"]:
        del fields["name"]
    waits_for = _waits_for(task, names, open_only)
    if waits_for:
        fields["depends_on"] = waits_for
    return fields | _set_fields(new)


def _set_fields(new: NewTask) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    return {n: _spelled(n, value) for n in _FIELDS if (value := getattr(new, n)) != getattr(_DEFAULTS, n)}


def _end(task: dict[str, Any]) -> dict[str, Any]:
    """A task of `on_end`."""
    new = msgspec.convert(task, NewTask)
    fields = {name: value for name in ("name", "title", "track") if (value := getattr(new, name)) is not None}
    return fields | _set_fields(new) | ({"depends_on": task["depends_on"]} if new.depends_on else {})


def _waits_for(task: dict[str, Any], names: dict[str, str], open_only: bool) -> list[Any]:
    """The dependencies of a task, by name or key; those on its subtasks are implied."""
    waits_for: list[Any] = []
    for edge in task["depends_on"]:
        is_here = edge["id"] in names
        if edge["subtask"] and (edge["on_failure"] == "block" or not is_here):
            continue
        if not is_here and open_only and edge["is_met"]:
            continue
        named = names.get(edge["id"], edge["key"])
        is_usual = edge["on_failure"] == "block"
        waits_for.append(named if is_usual else {"task": named, "on_failure": edge["on_failure"]})
    return waits_for


def _spelled(name: str, value: Any) -> Any:
    if name in ("deadline", "not_before"):
        return spell_instant(value)
    if name == "retry":
        return _policy(value)
    if name == "priority":
        return _TIERS.get(value, value)
    return msgspec.to_builtins(value)


def _policy(policy: RetryPolicy) -> dict[str, Any]:
    changed = msgspec.to_builtins(differing(in_our_words(policy)))
    return {n: spell_duration(round(v * SECOND)) if n in ("initial_delay", "cap") else v for n, v in changed.items()}
