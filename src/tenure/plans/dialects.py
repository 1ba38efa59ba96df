"""Plan files of other shapes, as ours: the tree is rewritten before it is read, so that findings keep their places.

- a list of tasks at the top, each with `id`, `title`, `depends_on`;
- `project:` and `tracks: {A: [{id, description, depends_on}, …]}`, where the tasks stand below their track.

In all of them `id` is the task's name in the plan, and its key where it has the form of one, number included: other
plans and scripts speak of B-003 too. A task without a title takes its description's first line.
"""

from __future__ import annotations

from tenure.core import inputs
from tenure.core.ids import parse_key, slug_of
from tenure.plans.nodes import Mapping, Node, Scalar, Sequence, SourcePosition

Entries = dict[str, tuple[SourcePosition, Node]]


def in_our_form(tree: Node) -> Node:
    if isinstance(tree, Sequence) and tree.items and any(isinstance(item, Mapping) for item in tree.items):
        return Mapping(place=tree.place, entries={"tasks": (tree.place, _tasks(tree))})
    if not isinstance(tree, Mapping):
        return tree
    entries = dict(tree.entries)
    if "project" in entries and "name" not in entries:
        entries["name"] = entries.pop("project")
    tracks = tree.get("tracks")
    if isinstance(tracks, Mapping) and any(isinstance(node, Sequence) for _, node in tracks.entries.values()):
        entries["tracks"], entries["tasks"] = _apart(tracks, entries["tracks"][0], tree.get("tasks"))
    elif isinstance(tree.get("tasks"), Sequence):
        entries["tasks"] = (entries["tasks"][0], _tasks(entries["tasks"][1]))
    return Mapping(place=tree.place, entries=entries)


def _apart(
    tracks: Mapping, place: SourcePosition, tasks: Node | None
) -> tuple[tuple[SourcePosition, Node], tuple[SourcePosition, Node]]:
    """The tracks by name, and the tasks that stood below them."""
    names: Entries = {}
    items = list(_tasks(tasks).items) if isinstance(tasks, Sequence) else []
    for code, (where, node) in tracks.entries.items():
        if not isinstance(node, Sequence):
            names[code] = (where, node)
            continue
        names[code] = (where, Scalar(place=where, value=code, text=code))
        for item in _tasks(node).items:
            if isinstance(item, Mapping) and "track" not in item.entries:
                track = Scalar(place=where, value=code, text=code)
                item = Mapping(place=item.place, entries={**item.entries, "track": (where, track)})  # noqa: PLW2901
            items.append(item)
    return (place, Mapping(place=place, entries=names)), (place, Sequence(place=place, items=items))


def _tasks(node: Node) -> Sequence:
    assert isinstance(node, Sequence)
    return Sequence(place=node.place, items=[_task(item) for item in node.items])


def _task(node: Node) -> Node:
    if not isinstance(node, Mapping) or not {"id", "description"} & node.entries.keys():
        return node
    entries = dict(node.entries)
    if "id" in entries and "name" not in entries:
        place, name = entries.pop("id")
        entries["name"] = (place, _as_text(name))
    waits = entries.get("depends_on")
    if waits is not None and isinstance(waits[1], Sequence):
        items = [_as_text(item) for item in waits[1].items]
        entries["depends_on"] = (waits[0], Sequence(place=waits[1].place, items=items))
    described = entries.get("description")
    if "title" not in entries and described is not None and isinstance(described[1], Scalar):
        line = next((line.strip() for line in described[1].text.splitlines() if line.strip()), "")
        title = line[: inputs.LONGEST_TITLE]
        if title:
            entries["title"] = (described[0], Scalar(place=described[1].place, value=title, text=title))
    if "id" in node.entries and "key" not in entries:
        key = _key(node.entries["id"][1], entries.get("title"))
        if key is not None:
            entries["key"] = (node.entries["id"][0], key)
    return Mapping(place=node.place, entries=entries)


def _key(id: Node, title: tuple[SourcePosition, Node] | None) -> Scalar | None:
    """The key that an id is: `B-007` with the slug of the title. A subtask's key follows from its parent's."""
    key = parse_key(id.text) if isinstance(id, Scalar) else None
    if key is None or key.path or not isinstance(id, Scalar):
        return None
    slug = key.slug or (slug_of(title[1].text) if title is not None and isinstance(title[1], Scalar) else "")
    text = f"{key.ref}-{slug}" if slug else id.text
    return Scalar(place=id.place, value=text, text=text)


def _as_text(node: Node) -> Node:
    """An id is a name, also where YAML reads a number."""
    if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return Scalar(place=node.place, value=node.text, text=node.text)
    return node
