"""A table in a TOML file of another tool, whose comments are kept."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenure.agents.recipes.pieces import MCP, MISSING, UNREADABLE, CannotMerge, standing


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise CannotMerge(f"is not valid TOML ({error}), so it cannot be edited safely") from None


@dataclass(frozen=True)
class TomlEntry:
    """`value` (texts, numbers, lists of texts) as a table at `keys`."""

    path: str
    keys: tuple[str, str]
    value: Mapping[str, Any]
    what: str = MCP
    is_wanted: bool = True

    def state(self, text: str | None) -> str:
        if text is None:
            return MISSING
        try:
            here: Any = _read(text)
        except CannotMerge:
            return UNREADABLE
        return standing(here, self.keys, self.value)

    def steps(self, text: str | None) -> list[str]:
        if not text:
            return [self._block("\n")]
        before = _read(text)
        if not isinstance(before.get(self.keys[0], {}), dict):
            raise CannotMerge(f"has {self.keys[0]}, which is not a table", self.keys)
        line = "\r\n" if "\r\n" in text else "\n"
        apart = line if text.endswith("\n") else line * 2
        appended = text + apart + self._block(line)
        # A table may be last in every file, unless its parent is an inline table.
        after = appended if _is_toml(appended) else self._inline(text)
        wanted = {**before, self.keys[0]: {**before.get(self.keys[0], {}), self.keys[1]: dict(self.value)}}
        if _read(after) != wanted:
            raise CannotMerge(f"is such that {'.'.join(self.keys)} cannot be added safely", self.keys)
        return [after]

    def take(self, text: str) -> str | None:
        line = "\r\n" if "\r\n" in text else "\n"
        for block in (line + self._block(line), self._block(line)):
            if text.endswith(block):
                return text.removesuffix(block) or None
        import tomlkit

        document = tomlkit.parse(text)
        parent: Any = document[self.keys[0]]
        del parent[self.keys[1]]
        if not parent:
            del document[self.keys[0]]
        return tomlkit.dumps(document) or None

    def _block(self, line: str) -> str:
        import tomlkit

        table = tomlkit.table()
        table.update(dict(self.value))
        body = tomlkit.dumps(table)
        return f"[{'.'.join(self.keys)}]\n{body}".replace("\n", line)

    def _inline(self, text: str) -> str:
        import tomlkit

        document = tomlkit.parse(text)
        parent: Any = document[self.keys[0]]
        entry = tomlkit.inline_table()
        entry.update(dict(self.value))
        parent[self.keys[1]] = entry
        return tomlkit.dumps(document)


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return False
    return True
