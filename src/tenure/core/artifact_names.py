"""Names of artifacts: paths that cannot leave their folder, on any system.

A name is one or more segments with `/` between them. The rules are the same on all systems: a shared store refuses a
name that Linux accepts and Windows reads as a device, or that looks like another in a terminal.
"""

from __future__ import annotations

import unicodedata

from tenure.core import limits
from tenure.core.errors import InvalidInput, TooLarge

LONGEST = limits.ARTIFACT_NAME
LONGEST_SEGMENT = limits.ARTIFACT_NAME_PART
DEEPEST = limits.ARTIFACT_NAME_PARTS
# A backslash separates folders on Windows, a colon names a drive or a hidden stream; Windows refuses the others.
RESERVED = frozenset('\\:*?"<>|')
DEVICES = frozenset(
    {
        *("con", "prn", "aux", "nul", "clock$", "conin$", "conout$"),
        *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789"),
    }
)


def checked_name(text: str) -> str:
    """The name in its canonical form (Unicode NFC); raises InvalidInput for an ambiguous one."""
    if len(text) > LONGEST:  # before anything slow
        raise TooLarge(f"an artifact's name may have at most {LONGEST} bytes (got {len(text)} characters)")
    for character in text:
        if not character.isprintable():  # control characters, direction marks, odd spaces, unassigned
            raise _refused(text, f"has the character U+{ord(character):04X}, which is invisible or reorders text")
    name = unicodedata.normalize("NFC", text)
    if len(name.encode()) > LONGEST:
        raise TooLarge(f"an artifact's name may have at most {LONGEST} bytes (got {len(name.encode())})")
    segments = name.split("/")
    if len(segments) > DEEPEST:
        raise _refused(text, f"has {len(segments)} path segments, more than {DEEPEST}")
    for segment in segments:
        trouble = _trouble(segment)
        if trouble is not None:
            raise _refused(text, trouble)
    return name


def folded(name: str) -> str:
    """The common form of names that some file systems treat as equal: `Report.md` and `report.md`."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _trouble(segment: str) -> str | None:
    """Why the segment is not allowed, or None."""
    if not segment:
        return "begins or ends with a slash, has two in a row, or is empty"
    # Some systems and tools fold look-alikes: a full-width slash, or one character that stands for two dots.
    plain = unicodedata.normalize("NFKC", segment)
    if plain.startswith("."):
        # `..` is only the worst of them: .git, .envrc and the like control the tools that read a folder.
        return "has a segment that begins with a dot"
    found = next((sign for sign in plain if sign in RESERVED or sign == "/"), None)
    if found is not None:
        return f"has {found!r}, or a character that some systems read as it"
    if plain.rstrip(". ") != plain or plain.lstrip() != plain:
        return "has a segment that begins with a space, or ends with a dot or a space"
    if plain.partition(".")[0].rstrip().casefold() in DEVICES:  # with any extension, and COM¹ is COM1
        return f"has {segment[:20]!r}, which is a device on Windows"
    if len(segment.encode()) > LONGEST_SEGMENT:
        return f"has a segment of {len(segment.encode())} bytes, more than {LONGEST_SEGMENT}"
    return None


def _refused(text: str, why: str) -> InvalidInput:
    shown = text.encode("ascii", "backslashreplace").decode()[:80]
    return InvalidInput(
        f"artifact name {shown!r} {why}", "Use letters, digits, `-`, `_` and `.`, as in reports/summary.md"
    )
