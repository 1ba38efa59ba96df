"""Every limit is written once, in core/limits.py and its first half, limits_of_tasks.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tenure.core import limits

SOURCES = Path(limits.__file__).parents[1]
# How a constant is named that bounds something: sizes, counts and lifetimes, wherever they are enforced.
BOUND = re.compile(
    r"_?(?:(?:LARGEST|LONGEST|SHORTEST|DEEPEST|MOST|LEAST|MAX|MIN)(?:_\w+)?|AT_MOST|OLD|OLDEST|"
    r"\w*(?:LEASE|STALE|KEPT|IDLE|LIFETIME|COOL_OFF|GRACE|PATIENCE|TIMEOUT|RETENTION|AT_MOST)(?:_AFTER)?)"
)
# Constants so named that are no limit of the product: name and value, and why they stay where they are.
APART = {
    ("GRACE", 2.0): "from SIGTERM to SIGKILL of a test command, a detail of processes/bounded_run.py",
    ("KEPT", 64): "names of ended workers that a page of metrics may meet twice",
    ("LARGEST", 1 << 26): "a value between workers of one server, above every body that it accepts",
    ("LONGEST_PATH", 90): "the address of a Unix socket, by the kernel",
    ("MOST", 1 << 10): "items of a call of the fast path, as its functions have it",
    ("MOST_APART", 8): "when a batch is divided; answers are the same",
    ("MOST_KNOWN", 50_000): "agents that a process keeps in mind",
    ("MOST_RUNS", 4): "when a batch is divided; answers are the same",
    ("MOST_TEARS", 10): "how often a reader of Valkey begins again before it gives up",
    ("OLDEST", (2, 38)): "a version of git",
    ("OLDEST", (7, 0)): "a version of Redis",
    ("_LARGEST", 2**63 - 1): "the largest value of a PostgreSQL bigint",
    ("_LONGEST", 18): "digits that a sequence can have",
    ("SHORTEST", 0.05): "the shortest interval of polling",
    ("SHORTEST", 0.2): "the shortest interval of polling",
}


def defined(path: Path) -> Iterator[tuple[str, object]]:
    """Upper-case names in a file that are given a number of its own: no name of limits.py occurs in the value."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target, value = node.target if isinstance(node, ast.AnnAssign) else node.targets[0], node.value
        if not isinstance(target, ast.Name):
            continue
        names = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
        numbers = [p.value for p in ast.walk(value) if isinstance(p, ast.Constant) and type(p.value) in (int, float)]
        arithmetic = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Name, ast.operator, ast.unaryop, ast.Load)
        if numbers and "limits" not in names and all(isinstance(part, arithmetic) for part in ast.walk(value)):
            yield target.id, value_of(value) if not names else None


def value_of(node: ast.expr) -> object:
    return eval(compile(ast.Expression(node), "", "eval"), {})


def second_literals(folder: Path) -> list[str]:
    return [
        f"{path.relative_to(folder)}: {name} = {value}"
        for path in sorted(folder.rglob("*.py"))
        if "testing" not in path.relative_to(folder).parts and path.name not in ("limits.py", "limits_of_tasks.py")
        for name, value in defined(path)
        if name.isupper() and BOUND.fullmatch(name) and (name, value) not in APART
    ]


def test_no_module_defines_a_limit_of_its_own() -> None:
    assert second_literals(SOURCES) == [], "give it a row in core/limits.py, and read it from there"


def test_a_limit_that_is_written_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "reading.py").write_text("SECOND = 1000\nMOST_ROWS = 500\nLEASE = 5 * SECOND\nWIDTH = 80\n")
    assert second_literals(tmp_path) == ["reading.py: MOST_ROWS = 500", "reading.py: LEASE = None"]


def test_every_row_of_the_table_belongs_to_the_name_beside_it() -> None:
    table = limits.table()
    assert all(getattr(limits, name) == row[1] for name, row in table.items())
    assert (table["TITLE"][1:4], table["TRUST_CACHED"][2]) == ((255, "characters", "a title"), "files")


def test_every_row_names_its_unit_who_may_change_it_and_what_happens() -> None:
    assert [name for name, row in limits.table().items() if not all(map(str, row))] == []


def test_every_limit_of_the_table_is_read_somewhere() -> None:
    text = "\n".join(path.read_text() for path in SOURCES.rglob("*.py"))
    assert [name for name in limits.table() if f"limits.{name}" not in text] == []
