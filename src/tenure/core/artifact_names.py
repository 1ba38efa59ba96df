"""Names of artifacts: paths that cannot leave the folder they are written into, on any system.

A name is one or more segments with `/` between them. What is refused is refused for all systems at once: a name that
Linux takes and Windows reads as a device, or that looks like another in a terminal, has no place in a shared store.
"""

from __future__ import annotations

import unicodedata

from tenure.core import limits
from tenure.core.errors import InvalidInput, TooLarge

LONGEST = limits.ARTIFACT_NAME
LONGEST_SEGMENT = limits.ARTIFACT_NAME_PART
DEEPEST = limits.ARTIFACT_NAME_PARTS
# A backslash parts folders on Windows, a colon names a drive or a hidden stream; the rest no Windows takes.
RESERVED = frozenset('\\:*?"<>|')
DEVICES = frozenset(
    {
        *("con", "prn", "aux", "nul", "clock$", "conin$", "conout$"),
        *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789"),
    }
)


def checked_name(text: str) -> str:
    """The name in its one spelling (Unicode NFC); raises InvalidInput for one that could be read as something else."""
    if len(text) > LONGEST:  # before anything that takes time
        raise TooLarge(f"an artifact's name of {len(text)} characters; at most {LONGEST} bytes")
    for character in text:
        if not character.isprintable():  # control signs, marks that reorder text, odd blanks, no sign at all
            raise _refused(text, f"has the character U+{ord(character):04X}, which is not seen or reorders text")
    name = unicodedata.normalize("NFC", text)
    if len(name.encode()) > LONGEST:
        raise TooLarge(f"an artifact's name of {len(name.encode())} bytes; at most {LONGEST}")
    segments = name.split("/")
    if len(segments) > DEEPEST:
        raise _refused(text, f"has {len(segments)} folders and names within one another; at most {DEEPEST}")
    for segment in segments:
        trouble = _trouble(segment)
        if trouble is not None:
            raise _refused(text, trouble)
    return name


def folded(name: str) -> str:
    """What two names share that some file systems take for one: `Report.md` and `report.md`."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _trouble(segment: str) -> str | None:
    """Why no segment may be like this one."""
    if not segment:
        return "begins or ends with a slash, has two in a row, or is empty"
    # Some systems and tools fold such look-alikes: a full-width slash, or one sign that stands for two dots.
    plain = unicodedata.normalize("NFKC", segment)
    if plain.startswith("."):
        # `..` is only the worst of them: .git, .envrc and the like steer the tools that look into a folder.
        return "has a part that begins with a dot"
    found = next((sign for sign in plain if sign in RESERVED or sign == "/"), None)
    if found is not None:
        return f"has {found!r}, or a sign that some systems read as it"
    if plain.rstrip(". ") != plain or plain.lstrip() != plain:
        return "has a part that begins with a space, or ends with a dot or a space"
    if plain.partition(".")[0].rstrip().casefold() in DEVICES:  # with any ending, and COM¹ is COM1
        return f"has {segment[:20]!r}, which is a device on Windows"
    if len(segment.encode()) > LONGEST_SEGMENT:
        return f"has a part of {len(segment.encode())} bytes; at most {LONGEST_SEGMENT}"
    return None


def _refused(text: str, why: str) -> InvalidInput:
    shown = text.encode("ascii", "backslashreplace").decode()[:80]
    return InvalidInput(
        f"artifact name {shown!r} {why}", "Use letters, digits, `-`, `_` and `.`, as in reports/summary.md"
    )
