"""The types of AsyncClient's methods, from those of Client: the same signatures, as coroutines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "src" / "tenure" / "client"
TARGET = CLIENT / "async_verbs.pyi"
MODULES = ("caller", "queries", "sources", "messaging", "pools", "tenants", "operator_verbs", "verbs")
OWN = {"mark", "wait_for_news"}  # AsyncClient has its own

FIELDS = """class AsyncVerbs:
    project: str
    agent: str
    session: str
    user: str | None
    principal: Principal
    transport: Any
    signing_key: Any

    def _identify(
        self, project: str | None, agent: str | None, session: str | None, role: str, user: str | None
    ) -> None: ...

    async def _signed_batch(self, batch: Any, key: Any, send: Any) -> list[Any]: ...
"""
HEAD = '''"""The methods of AsyncClient for type checkers. Generated from {modules} by `./x docs`; do not edit."""
# fmt: off
'''


def text() -> str:
    imports: dict[str, set[str]] = {}
    defined: list[str] = []
    methods: list[str] = []
    for name in MODULES:
        tree = ast.parse((CLIENT / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                imports.setdefault(str(node.module), set()).update(one.name for one in node.names if not one.asname)
        for node in tree.body:
            if isinstance(node, ast.If):  # names that are only for types
                defined += [ast.unparse(one) for one in node.body if isinstance(one, (ast.Assign, ast.ClassDef))]
            if isinstance(node, ast.ClassDef) and node.name == "".join(part.capitalize() for part in name.split("_")):
                methods += [
                    _coroutine(one) for one in node.body if isinstance(one, ast.FunctionDef) and _is_public(one)
                ]
    body = "\n".join([*defined, "", FIELDS, *methods])
    used = set(re.findall(r"\w+", body))
    lines = [
        f"from {module} import {', '.join(sorted(names & used))}" for module, names in imports.items() if names & used
    ]
    head = HEAD.format(modules=", ".join(f"{name}.py" for name in MODULES))
    return "\n".join([head, *sorted(lines), "", body]) + "\n"


def _is_public(function: ast.FunctionDef) -> bool:
    return not function.name.startswith("_") and function.name not in OWN


def _coroutine(function: ast.FunctionDef) -> str:
    doc = ast.get_docstring(function, clean=False)
    body: list[ast.stmt] = [ast.Expr(ast.Constant(doc))] if doc else []
    body.append(ast.Expr(ast.Constant(...)))
    made = ast.AsyncFunctionDef(
        name=function.name, args=function.args, body=body, decorator_list=[], returns=function.returns, type_params=[]
    )  # fmt: skip
    text = ast.unparse(ast.fix_missing_locations(made))
    return "\n".join("    " + line if line else "" for line in text.splitlines()) + "\n"
