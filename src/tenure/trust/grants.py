"""Which risky settings of a repository's files this user has read and allowed.

A cloned repository runs nothing and is sent nothing. `tenure trust` remembers the parts that start something, open
something or name where things are sent, word for word, in a file of the user's own; they count only while they are
exactly what was remembered, and a change is refused and spelled out. What a command itself does (the tests it runs, a
script it calls) is the work under test and is not remembered.

Whoever uses it runs the very values that were checked, and never reads the file a second time.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tenure.core import limits
from tenure.core.errors import InvalidInput, TenureError
from tenure.trust.risky_settings import SECRET, section_of
from tenure.user_state import make_private_folder

FILE = "trusted.json"
LARGEST = limits.TRUST_BYTES
MOST_CHANGES = limits.TRUST_CHANGES
LONGEST_VALUE = limits.TRUST_VALUE


class Untrusted(TenureError):
    """What a repository brought and this user has not allowed; `changes` says what to read first."""

    code = "UNTRUSTED"

    def __init__(self, message: str, changes: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint or "Read it; `tenure trust` allows it as it is now, for you alone.")
        self.changes = changes


def read_section(path: str | Path) -> dict[str, Any]:
    """All of a configuration file that is risky; empty where it has nothing of the kind."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None
    if len(content) > LARGEST:
        raise InvalidInput(f"{path}: more than {LARGEST:,} bytes")
    try:
        parsed = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path}: {error}") from None
    return section_of(parsed)


class Trusted:
    """What one user allows, for each configuration file by its real path."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / FILE

    def checked(self, path: str | Path) -> dict[str, Any]:
        """The risky part of the file, if it is allowed as it is; raises Untrusted."""
        section = read_section(path)
        self.check(path, section)
        return section

    def check(self, path: str | Path, section: Mapping[str, Any], why: str = "", *, instead: str | None = None) -> None:
        """Raise Untrusted unless this part of the file is allowed as it is, here or at the path `instead`.

        `why`: why it needs to be allowed at all.
        """
        if not section:
            return
        known = self._read()
        remembered = known.get(_place(path)) or (known.get(_place(instead)) if instead else None)
        if remembered is None:
            found = changes({}, section)
            because = f": {why}" if why else ""
            raise Untrusted(f"{path}: you have not allowed it yet{because}; it has {'; '.join(found)}", found)
        if canonical(remembered) != canonical(section):
            found = changes(remembered, section)
            raise Untrusted(f"{path}: it is not what you allowed: {'; '.join(found)}", found)

    def trust(self, path: str | Path, section: Mapping[str, Any]) -> None:
        """Allow exactly this, as it was shown to the user."""
        with self._changing() as known:
            known[_place(path)] = json.loads(canonical(section))

    def forget(self, path: str | Path) -> bool:
        """Allow nothing of the file any more; whether something was allowed."""
        with self._changing() as known:
            return known.pop(_place(path), None) is not None

    def listed(self) -> dict[str, dict[str, Any]]:
        """What is allowed, by the files' real paths."""
        return self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise Untrusted(f"{self.path}: {error.strerror}") from None
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise Untrusted(
                    f"{self.path}: others can get at it, so it proves nothing (it must be yours, mode 0600)"
                )
            try:
                known = json.loads(file.read())
            except (ValueError, RecursionError):
                known = None
        if not isinstance(known, dict) or not all(isinstance(section, dict) for section in known.values()):
            raise Untrusted(f"{self.path}: cannot be read")
        return known

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """What is allowed, written back as a whole; one at a time."""
        make_private_folder(str(self.path.parent))
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self._read()
            yield known
            self._write(known)
        finally:
            os.close(lock)

    def _write(self, known: Mapping[str, Any]) -> None:
        temporary = self.path.with_suffix(f".{secrets.token_hex(8)}")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(known, file, indent=1, sort_keys=True)
                file.flush()
                os.fsync(handle)
            temporary.replace(self.path)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()


def canonical(section: Mapping[str, Any]) -> str:
    """One text for one content: what is compared. In ASCII, so that what looks alike is not alike."""
    return json.dumps(section, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """What differs, one line a value, fit for a terminal whatever the values hold."""
    old, new = dict(_flat(before)), dict(_flat(now))
    lines = []
    for key in sorted(old.keys() | new.keys()):
        if key not in new:
            lines.append(f"- {key} = {_shown(key, old[key])}")
        elif key not in old:
            lines.append(f"+ {key} = {_shown(key, new[key])}")
        elif canonical({"": old[key]}) != canonical({"": new[key]}):
            lines.append(f"~ {key} = {_shown(key, old[key])} → {_shown(key, new[key])}")
    if len(lines) > MOST_CHANGES:
        lines[MOST_CHANGES:] = [f"… and {len(lines) - MOST_CHANGES} more"]
    return tuple(lines)


def _flat(section: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        name = above + ascii(key)[1:-1]
        if isinstance(value, Mapping) and value:
            yield from _flat(value, name + ".")
        else:
            yield name, value


def _shown(key: str, value: Any) -> str:
    if key in SECRET:
        return "…"
    text = json.dumps(value, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 2] + " …"


def without_secrets(section: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """The section as it may be printed."""
    return {
        key: without_secrets(value, f"{above}{key}.") if isinstance(value, Mapping)
        else "…" if above + key in SECRET else value
        for key, value in section.items()
    }  # fmt: skip


def _place(path: str | Path) -> str:
    return str(Path(path).resolve())
