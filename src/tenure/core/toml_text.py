"""TOML files of people: an error names the file and the line, and how to correct it."""

from __future__ import annotations

import tomllib
from typing import Any

from tenure.core.errors import InvalidInput


def parsed(path: str, content: bytes) -> dict[str, Any]:
    """The contents of a file; InvalidInput names the file and the line. A byte order mark is skipped."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        seems = "; it seems to be UTF-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise InvalidInput(f"{path}: line {line} is not UTF-8 text{seems}", "save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path}: not TOML: {error}", "correct that line, or remove it") from None
    except RecursionError:
        raise InvalidInput(f"{path}: too deeply nested") from None
