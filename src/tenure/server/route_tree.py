"""Finds the value that was added for a method and a path, and the fields of the path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar
from urllib.parse import unquote

from tenure.core.errors import TenureError

T = TypeVar("T")


class NoRoute(TenureError):
    code = "NO_ROUTE"


class NoMethod(TenureError):
    code = "NO_METHOD"

    def __init__(self, message: str, allowed: Iterable[str]) -> None:
        super().__init__(message)
        self.allowed = ", ".join(sorted(allowed))


class RouteTree(Generic[T]):
    """Literal segments win over fields; a path has no slash at its end.

    A last field with a star, as `{name*}`, is the rest of the path, including slashes.
    """

    def __init__(self) -> None:
        self._root = _Node[T]()

    def add(self, method: str, path: str, value: T) -> None:
        node = self._root
        for segment in path.strip("/").split("/"):
            if segment.endswith("*}"):
                node.rest_name = segment.strip("{*}")
                node.rest = node.rest or _Node()
                node = node.rest
            elif segment.startswith("{"):
                node.name = segment.strip("{}")
                node.field = node.field or _Node()
                node = node.field
            else:
                node = node.literals.setdefault(segment, _Node())
        node.methods[method] = value

    def find(self, method: str, path: str) -> tuple[T, dict[str, str]]:
        """The value that was added for the raw path, and the path's fields, unquoted."""
        node: _Node[T] | None = self._root
        fields: dict[str, str] = {}
        segments = path.strip("/").split("/")
        for at, segment in enumerate(segments):
            assert node is not None
            if node.rest is not None:
                fields[node.rest_name] = unquote("/".join(segments[at:]))
                node = node.rest
                break
            below = node.literals.get(segment)
            if below is None and segment:
                fields[node.name] = unquote(segment)
                below = node.field
            node = below
            if node is None:
                break
        if node is None or not node.methods:
            raise NoRoute(f"no route for {path[:200]}", "/openapi.json lists all routes")
        value = node.methods.get("GET" if method == "HEAD" else method)
        if value is None:
            raise NoMethod(f"{method} is not allowed for {path[:200]}", node.methods)
        return value, fields

    def __iter__(self) -> Iterator[T]:
        """All values that were added."""
        todo = [self._root]
        while todo:
            node = todo.pop()
            yield from node.methods.values()
            todo += [*node.literals.values(), *(below for below in (node.field, node.rest) if below is not None)]


class _Node(Generic[T]):
    __slots__ = ("field", "literals", "methods", "name", "rest", "rest_name")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[T]] = {}
        self.field: _Node[T] | None = None
        self.name = ""
        self.rest: _Node[T] | None = None
        self.rest_name = ""
        self.methods: dict[str, T] = {}
