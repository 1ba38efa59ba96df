"""Artifacts: which may be put, which go with a result, and when the bytes behind them may be deleted.

The bytes are outside of the store, under their digest (see `tenure.artifacts`); rows have their names and claims. The
bytes are put first and the row is written after, under the guard of every holder's write: so a row always has its
bytes, and bytes of a superseded holder have no row. `Content` counts the rows that refer to the same bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput, LimitReached, TooLarge
from tenure.core.records import Artifact, Claim, Content, Task, replace

SECOND = 1_000_000
LARGEST = limits.ARTIFACT_BYTES
TRANSCRIPT = "transcript.jsonl"  # an agent's transcript; passed on only on request
RESULT = "result.json"  # the data of a result that is too large for a row
KEPT_IDLE = limits.ARTIFACT_IDLE
GOING = 600 * SECOND  # by then a sweep has deleted them, or failed
REFERENCE = "artifact:"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}(; ?charset=[A-Za-z0-9._-]{1,40})?")
# The receipt is the task's last, but its claim has ended: nobody else has claimed yet.
_NOT_OVERTAKEN = ("NO_CLAIM", "ALREADY_EXPIRED", "TASK_ALREADY_COMPLETED", "TASK_CANCELLED")


# --- putting ------------------------------------------------------------------------------------------------


def artifact_id(claim: Claim, name: str) -> str:
    return f"{claim.id}:{name}"


def largest(given: Mapping[str, int]) -> int:
    """The most bytes that an artifact may have, under the limits that apply in its project."""
    return given.get("max_result_size", LARGEST)


def check_size(given: Mapping[str, int], size: int) -> None:
    if size > largest(given):
        raise TooLarge(
            f"an artifact may have at most {largest(given)} bytes here (got {size})",
            "an admin can raise the limit max_result_size",
        )


def check_type(type: str) -> str:
    """Check a media type such as `text/markdown`: it may become a header."""
    if not _TYPE.fullmatch(type):
        raise InvalidInput(f"type {type[:80]!r} is not a media type", "as in text/markdown or application/json")
    return type


def check_digest(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise InvalidInput(f"{digest[:80]!r} is not a digest", "use a SHA-256 of 64 lower-case hexadecimal digits")
    return digest


def check_beside(task: Task, name: str, others: Collection[str]) -> None:
    """Refuse a name that some file system cannot keep beside the task's others, and one too many."""
    if name in others:
        return
    if len(others) >= limits.ARTIFACTS:
        raise LimitReached(f"{task.key} has {limits.ARTIFACTS} artifacts, the maximum", "put many files as one archive")
    mine = folded(name)
    for other in others:
        theirs = folded(other)
        if mine == theirs:
            raise InvalidInput(
                f"{task.key} has the artifact {other!r}, which some systems treat as {name!r}",
                "use its spelling, or another name",
            )
        if mine.startswith(theirs + "/") or theirs.startswith(mine + "/"):
            raise InvalidInput(
                f"{task.key} has the artifact {other!r}: {name!r} would be a file and a folder at once",
                "use another name",
            )


def is_evidence(name: str) -> bool:
    """Whether the name is reserved for what a runner records; also in another case, as people read it."""
    return name.casefold() == TRANSCRIPT


def may_put_late(name: str, code: str | None) -> bool:
    """Whether the holder of an ended claim, refused with `code`, may still put this.

    The transcript is complete only once the agent has ended, which may be after its submit. It affects nobody else; but
    once another agent has the task, nothing more is written under the earlier claim.
    """
    return name == TRANSCRIPT and code in _NOT_OVERTAKEN


# --- with a result------------------------------------------------------------------------------------------


def newest(rows: Iterable[Artifact], run: int | None = None) -> list[Artifact]:
    """The latest generation's artifact of each name, by name; of one run only."""
    found: dict[str, Artifact] = {}
    for row in sorted(rows, key=lambda row: row.generation):
        if run is None or row.run == run:
            found[row.name] = row
    return [found[name] for name in sorted(found)]


def passed_on(rows: Iterable[Artifact], claim: Claim, names: Collection[str] | None) -> tuple[str, ...]:
    """The ids of the artifacts that go with a result: those its claim has put and names, else all of its run."""
    if names is None:
        return tuple(row.id for row in newest(rows, claim.run) if row.name != TRANSCRIPT)
    mine = {row.name: row.id for row in rows if row.generation == claim.generation}
    wanted = [checked_name(name) for name in names]
    for name in wanted:
        if name not in mine:
            raise InvalidInput(
                f"artifacts: {name[:80]!r} was not put under this claim",
                f"put it first; this claim has: {', '.join(sorted(mine)[:10]) or 'none'}",
            )
    return tuple(mine[name] for name in dict.fromkeys(wanted))


class Named(msgspec.Struct, frozen=True):
    task: str
    name: str


def named_by(reference: str) -> Named | None:
    """What `artifact:TASK/NAME` names; None where it is not such a reference."""
    task, slash, name = reference.removeprefix(REFERENCE).partition("/")
    if not reference.startswith(REFERENCE) or not slash or not task or not name:
        return None
    return Named(task, name)


def task_of_ref(reference: str) -> str | None:
    """The task that `task:TASK:output` or `artifact:TASK/NAME` names; None where it is neither."""
    if reference.startswith("task:") and reference.endswith(":output"):
        return reference[len("task:") : -len(":output")] or None
    named = named_by(reference)
    return named.task if named is not None else None


# --- the bytes ----------------------------------------------------------------------------------------------


def used(content: Content | None, project: str, digest: str, size: int) -> Content:
    """One more row refers to these bytes."""
    content = content or Content(project=project, id=digest, size=size)
    return replace(content, uses=content.uses + 1, idle_at=None, dropped_at=None, gone=False)


def unused(content: Content, now: int, by: int = 1) -> Content:
    """This many rows fewer refer to them."""
    uses = content.uses - by
    return replace(content, uses=uses, idle_at=None if uses else now)


def may_be_gone(content: Content | None, since: int, now: int) -> bool:
    """Whether a sweep may have deleted bytes put at `since` or later, because they had no reference then.

    Rows remember this for a little more than a day; an upload that took longer is refused.
    """
    if now - since >= KEPT_IDLE:
        return True
    return content is not None and content.dropped_at is not None and content.dropped_at + GOING >= since


def is_to_drop(content: Content, now: int) -> bool:
    """Whether these bytes are due for deletion. An interrupted sweep is repeated."""
    if content.idle_at is None or content.gone or content.idle_at + KEPT_IDLE > now:
        return False
    return content.dropped_at is None or content.dropped_at + 2 * GOING <= now


def is_forgotten(content: Content, now: int) -> bool:
    """Whether they were deleted so long ago that no upload that began before can still arrive."""
    return content.gone and content.dropped_at is not None and content.dropped_at + GOING + KEPT_IDLE <= now


# --- names: paths that cannot leave their folder, on any system ---------------------------------------------
#
# A name is one or more segments with `/` between them. The rules are the same on all systems: a shared store refuses a
# name that Linux accepts and Windows reads as a device, or that looks like another in a terminal.

LONGEST = limits.ARTIFACT_NAME
LONGEST_SEGMENT = limits.ARTIFACT_NAME_PART
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
    if len(segments) > limits.ARTIFACT_NAME_PARTS:
        raise _refused(text, f"has {len(segments)} path segments, more than {limits.ARTIFACT_NAME_PARTS}")
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
