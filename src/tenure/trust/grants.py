"""Which risky settings of a repository's files this user has read and allowed.

A cloned repository runs nothing and receives nothing. `tenure trust` stores the settings that start a program, open a
port or name a destination, word for word, in a private file of the user. They count only while they are equal to that;
a change is refused and listed. The files that a command uses (the tests it runs, a script it calls) are the work under
test and are not stored.

Callers use the values that were checked, and never read the file a second time.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tenure.core import limits, toml_text
from tenure.core.errors import InvalidInput, TenureError
from tenure.trust.risky_settings import section_of, shown
from tenure.user_state import make_private_folder

FILE = "trusted.json"
LARGEST = limits.TRUST_BYTES
MOST_CHANGES = limits.TRUST_CHANGES
LONGEST_VALUE = limits.TRUST_VALUE


class Untrusted(TenureError):
    """A setting of a repository that this user has not allowed; `changes` lists the differences."""

    code = "UNTRUSTED"

    def __init__(self, message: str, changes: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint or "Read it; `tenure trust` allows it as it is now, for you alone.")
        self.changes = changes


def read_section(path: str | Path) -> dict[str, Any]:
    """The risky part of a configuration file; empty where it has none."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None
    if len(content) > LARGEST:
        raise InvalidInput(f"{path}: more than {LARGEST:,} bytes")
    return section_of(toml_text.parsed(str(path), content))


class Trusted:
    """The settings that one user allows, for each configuration file by its real path."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / FILE

    def checked(self, path: str | Path) -> dict[str, Any]:
        """The risky part of the file, if it is allowed as it is; raises Untrusted."""
        section = read_section(path)
        self.check(path, section)
        return section

    def check(self, path: str | Path, section: Mapping[str, Any], why: str = "", *, instead: str | None = None) -> None:
        """Raise Untrusted unless this part of the file is allowed as it is, here or at the path `instead`.

        `why`: the reason why it must be allowed.
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
        """Allow nothing of the file any more; returns whether it was allowed."""
        with self._changing() as known:
            return known.pop(_place(path), None) is not None

    def listed(self) -> dict[str, dict[str, Any]]:
        """The allowed settings, by the files' real paths."""
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
                    f"{self.path}: other users can change it, so it is not trusted (it must be yours, mode 0600)"
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
        """The allowed settings, written back as a whole, under a lock."""
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
    """One text for one content, to compare. In ASCII, so that characters that look alike differ."""
    return json.dumps(section, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """The differences, one line per value, safe to print on a terminal."""
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
    text = json.dumps(shown(key, value), ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 2] + " …"


def without_secrets(section: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """The section, safe to print."""
    return {
        key: without_secrets(value, f"{above}{key}.") if isinstance(value, Mapping) else shown(above + key, value)
        for key, value in section.items()
    }


def _place(path: str | Path) -> str:
    return str(Path(path).resolve())
