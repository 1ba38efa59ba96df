"""What has several parts closes each of them, whatever the others raise."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import tenure
from tenure.core.errors import close_all, popped
from tenure.processes.thread_errors import reported

SOURCES = Path(tenure.__file__).parent
CLOSES = {"close", "stop", "shutdown", "shut", "resign", "begin_close", "terminate", "aclose", "disconnect"}


def fails(error: BaseException) -> object:
    raise error


def test_each_part_is_closed_whatever_the_others_raise() -> None:
    closed: list[str] = []
    with pytest.raises(ValueError, match="first") as refused:
        close_all(
            lambda: closed.append("a"),
            lambda: fails(ValueError("first")),
            lambda: closed.append("b"),
            lambda: fails(OSError("second")),
            lambda: closed.append("c"),
        )
    assert closed == ["a", "b", "c"]
    assert refused.value.__notes__ == ["also, while the rest was closed: OSError: second"]


def test_an_interruption_comes_before_an_error_and_cuts_nothing_short() -> None:
    closed: list[str] = []
    with pytest.raises(KeyboardInterrupt) as refused:
        close_all(lambda: fails(ValueError("first")), lambda: fails(KeyboardInterrupt()), lambda: closed.append("last"))
    assert closed == ["last"]
    assert refused.value.__notes__ == ["also, while the rest was closed: ValueError: first"]


def test_what_is_taken_out_of_a_list_meanwhile_is_left_out() -> None:
    items = [1, 2, 3]
    found = []
    for item in popped(items):
        found.append(item)
        items[:] = items[:1]
    assert found == [3, 1]


def test_an_error_that_ends_a_thread_is_one_sentence_with_what_it_means() -> None:
    said: list[tuple[str, BaseException]] = []
    before = threading.excepthook
    error = ValueError("broken")
    with reported(lambda text, cause: said.append((text, cause))):
        for name, raised in (("tenure-coordinator", error), ("other", SystemExit())):
            thread = threading.Thread(target=fails, args=(raised,), name=name)
            thread.start()
            thread.join()
    ((text, cause),) = said
    assert text.startswith("tenure-coordinator was ended by an error: ValueError: broken; ")
    assert text.endswith("this process leads no more, and another may")
    assert cause is error
    assert threading.excepthook is before


# --- everything that closes several parts does it so ---------------------------------------------------------


def closes(statement: ast.stmt, of: str = "") -> int:
    """How many parts a statement closes; `of`: of this name alone."""
    if isinstance(statement, ast.For):
        name = statement.target.id if isinstance(statement.target, ast.Name) else ""
        return 2 * bool(name and sum(closes(one, name) for one in statement.body))
    if isinstance(statement, ast.If):
        return 0 if isinstance(statement.body[-1], ast.Return) else sum(closes(one, of) for one in statement.body)
    if not isinstance(statement, ast.Expr):
        return 0
    call = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in CLOSES:
        return 0
    owner = ast.unparse(call.func.value)
    return int(owner != "os" and of in ("", owner))  # a descriptor that is open is closed by `os.close`


def blocks(tree: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def test_no_function_closes_one_part_after_another_without_care() -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{block[0].lineno}"
        for path in sorted(SOURCES.rglob("*.py"))
        if "testing" not in path.parts
        for block in blocks(ast.parse(path.read_text()))
        if sum(map(closes, block)) > 1
    ]
    assert found == []
