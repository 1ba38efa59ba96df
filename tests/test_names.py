"""One name for one thing: within a layer no module and no public class is called like another.

Back ends are alike on purpose: `stores/sqlite/transaction.py` and `stores/postgres/transaction.py` implement one port
and do not know each other.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src" / "tenure"
# A command that adds tasks, and the row of a process; both names are seen by users.
ALLOWED = {("core", "Spawn")}


def layer_of(file: Path) -> str:
    """The folder of a store's back end counts as a layer."""
    first, *rest = file.relative_to(SOURCES).parts
    return f"{first}/{rest[0]}" if first == "stores" and len(rest) > 1 else first


def modules() -> Iterator[tuple[str, str, Path]]:
    for file in SOURCES.rglob("*.py"):
        if file.stem not in ("__init__", "__main__"):
            yield layer_of(file), file.stem, file


def classes() -> Iterator[tuple[str, str, Path]]:
    for file in SOURCES.rglob("*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield layer_of(file), node.name, file


@pytest.mark.parametrize("names", [modules, classes])
def test_no_name_is_given_twice_in_a_layer(names: type) -> None:
    places = defaultdict(list)
    for layer, name, file in names():
        places[layer, name].append(str(file.relative_to(SOURCES)))
    twice = {key: files for key, files in places.items() if len(files) > 1 and key not in ALLOWED}
    assert twice == {}


def formatted_by_hand(text: str) -> Iterator[tuple[int, ast.stmt]]:
    """Lines with `# fmt: skip`, with the smallest statement around each. Decorators belong to their function."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "# fmt: skip" in line]
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)] if lines else []
    for line in lines:
        around = [node for node in statements if first_line(node) <= line <= (node.end_lineno or 0)]
        yield line, max(around, key=first_line)


def first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])


def is_table(node: ast.stmt, line: int) -> bool:
    """A display, the arguments of a call, or those of a decorator: all are read by rows."""
    value = getattr(node, "value", None)
    if isinstance(value, ast.Await | ast.Yield):
        value = value.value
    return isinstance(value, ast.Dict | ast.List | ast.Set | ast.Tuple | ast.Call) or any(
        one.lineno <= line <= (one.end_lineno or 0) for one in getattr(node, "decorator_list", ())
    )


def test_only_tables_keep_their_own_format() -> None:
    wrong = [
        f"{file.relative_to(SOURCES)}:{line}"
        for file in SOURCES.rglob("*.py")
        for line, node in formatted_by_hand(file.read_text("utf-8"))
        if not is_table(node, line)
    ]
    assert wrong == []


@pytest.mark.parametrize("text", ["x = [a for a in b]", "if (\n  a):\n    pass", "from a import (b)", "x = 1 + 2"])
def test_code_is_no_table(text: str) -> None:
    ((line, node),) = formatted_by_hand(text + "  # fmt: skip\n")
    assert not is_table(node, line)
