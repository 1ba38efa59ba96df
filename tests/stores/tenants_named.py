"""Which tables with tenants a SQL statement touches without naming the tenant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'")
_INNERMOST = re.compile(r"\(([^()]*)\)")
_INSERT = re.compile(r'INSERT (?:IGNORE )?INTO "?(\w+)"? (\d+)@')
_TABLE = re.compile(r'\b(?:FROM|JOIN|STRAIGHT_JOIN|UPDATE|INTO) "?(\w+)"?(?: AS "?(\w+)"?)?')
_NAMED = re.compile(
    r"""(?:(?P<of>\w+)\.)? "?tenant"? (?:\ \|\|\ :text)? \ =\ # a column and its value
    (?: \?\d* | :tenant | (?P<other>\w+)\."?tenant"? )(?!\w)""",
    re.VERBOSE,
)


def parts(text: str, tenant: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each query of the text without what stands in its parentheses, and that by number.

    Texts in quotes are replaced: by `:tenant` where it is that name, else by `:text`.
    """
    text = _LITERAL.sub(lambda found: ":tenant" if found[1] == tenant else ":text", text)
    inner: dict[str, str] = {}

    def kept(found: re.Match[str]) -> str:
        inner[name := str(len(inner))] = found[1]
        return f"{name}@"

    while (shorter := _INNERMOST.sub(kept, text)) != text:
        text = shorter
    for whole in (*text.split(";"), *inner.values()):
        for part in re.split(r"\bUNION ALL\b", whole):
            yield " ".join(part.split()), inner


def without_tenant(text: str, tables: Collection[str], tenant: str) -> list[str]:
    """The queries of the statement in which a table of `tables` is not bound to the tenant."""
    return [part for part, inner in parts(text, tenant) if not _is_bound(part, inner, tables)]


def tables_of(text: str, tables: Collection[str], tenant: str) -> set[str]:
    """Those of `tables` that the statement touches."""
    return {found[1] for part, _ in parts(text, tenant) for found in _TABLE.finditer(part)} & {*tables}


def _is_bound(part: str, inner: dict[str, str], tables: Collection[str]) -> bool:
    insert = _INSERT.search(part)
    if insert is not None:
        return insert[1] not in tables or re.match(r'"?tenant"?,', inner[insert[2]].strip()) is not None
    touched = [(found[2] or found[1]) for found in _TABLE.finditer(part) if found[1] in tables]
    if not touched:
        return True
    _, *rest = re.split(r"\b(?:WHERE|ON)\b", part, maxsplit=1)
    condition = "".join(rest)
    if re.search(r"\bOR\b", condition):  # it would not bind what stands behind it
        return False
    bound = {
        found["of"] or (touched[0] if len(touched) == 1 else "")
        for found in _NAMED.finditer(condition)
        if found["other"] != (found["of"] or touched[0])
    }
    return bound.issuperset(touched)
