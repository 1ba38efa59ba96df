"""Whether a pytest node id names a test that exists, read from the source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.mutants.mutant import ROOT

SHIPPED = ROOT / "src" / "tenure" / "testing"  # suites whose tests the classes in test files inherit

Function = ast.FunctionDef | ast.AsyncFunctionDef


def trouble_with(node: str) -> str | None:
    """Why pytest would not find it, in a sentence; None for a test that exists."""
    name, _, parameters = node.partition("[")
    file, *path = name.split("::")
    if not (ROOT / file).is_file():
        return f"there is no file {file}: was it renamed?"
    if not path:
        return f"{file} is a whole file: name the test in it that fails"
    functions = list(_found(file, path))
    if not functions:
        return f"there is no test {'::'.join(path)} in {file}: was it renamed?"
    if parameters and not any(_is_case(function, parameters.removesuffix("]")) for function in functions):
        return f"{'::'.join(path)} has no case [{parameters}"
    return None


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _inherited() -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for path in sorted(SHIPPED.rglob("*.py")):
        for node in ast.walk(_parsed(path)):
            if isinstance(node, Function):
                found.setdefault(node.name, []).append(node)
    return found


def _found(file: str, path: list[str]) -> Iterator[Function]:
    body: list[ast.stmt] = _parsed(ROOT / file).body
    for name in path[:-1]:
        classes = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
        if not classes:
            return
        body = classes[0].body
    yield from (node for node in body if isinstance(node, Function) and node.name == path[-1])
    if len(path) > 1:
        yield from _inherited().get(path[-1], [])


def _is_case(function: Function, case: str) -> bool:
    """Judged where the cases are a list of plain values; fixtures and other decorators may add more to the id."""
    lists = [
        node.args[1]
        for node in function.decorator_list
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.parametrize" and len(node.args) > 1
    ]
    try:
        values = ast.literal_eval(lists[0]) if len(lists) == 1 else None
    except ValueError:
        return True
    if not values or not all(isinstance(value, str | int) for value in values):
        return True
    return any(str(value) in case for value in values)
