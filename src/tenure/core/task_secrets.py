"""Secrets of tasks: how callers mark them, which names do, how they are shown, and what hides them. Pure.

A secret is a text in `spec.context`, `spec.arguments` or the metadata of a task: `{"$secret": "…"}`, or the value of a
name that ends in a word of `secret_names.WORDS`. It is stored as a sealed value (`core/sealed.py`) and shown as
`«secret»`. Its path is a JSON pointer in the task, as `/spec/context/db/password`; it is authenticated with the value.

Who was given secrets may repeat them, so what it writes is searched for them: `Hidden` replaces each, plain, in base64,
or with the escapes of JSON, shells, HTML and URLs (`core/escaped_texts.py`). A secret of fewer than `SEARCHED`
characters is sealed but not searched for: it would be found everywhere.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.escaped_texts import may_have_escapes, unescaped, unescaped_with_places
from tenure.core.sealed import SEALED, is_sealed
from tenure.core.secret_names import is_secret_name

if TYPE_CHECKING:
    from tenure.core.events import Event

SECRET = "$secret"  # noqa: S105 - the mark, not a secret
SHOWN = "«secret»"
VARIABLE = "TENURE_SECRET_"  # what the environment variables of a task's secrets begin with
SEARCHED = limits.SECRET_SEARCHED
MOST = limits.TASK_SECRETS
LINE = limits.SECRET_LINE
CONTEXT, ARGUMENTS, METADATA = "/spec/context", "/spec/arguments", "/metadata"
PLACES = (CONTEXT, ARGUMENTS, METADATA)  # where a task may have secrets

_WITH_VALUES = frozenset({"task.edited", "task.retried", "task.retry_due"})  # their details have values of the task

# --- walking ------------------------------------------------------------------------------------------------

Leaf = Callable[[str, Any], Any]  # path and value → what stands there instead; KEPT: look inside
KEPT = object()


def walked(value: Any, path: str, leaf: Leaf) -> Any:
    """The value with every part that `leaf` replaces. The same object where nothing changes."""
    replaced = leaf(path, value)
    if replaced is not KEPT:
        return replaced
    if isinstance(value, Mapping):
        after: dict[Any, Any] = {key: walked(inner, f"{path}/{_step(key)}", leaf) for key, inner in value.items()}
        return after if any(after[key] is not inner for key, inner in value.items()) else value
    if isinstance(value, (list, tuple)):
        items = [walked(inner, f"{path}/{number}", leaf) for number, inner in enumerate(value)]
        return items if any(one is not other for one, other in zip(items, value, strict=True)) else value
    return value


def _step(name: Any) -> str:
    """A name in a JSON pointer."""
    return str(name).replace("~", "~0").replace("/", "~1")


def name_of(path: str) -> str:
    """The last name of a path."""
    return path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def shown_name(path: str) -> str:
    """How a secret is called: its names, joined by dots; outside of the context they begin with that of their place."""
    inner = path.removeprefix(CONTEXT if path.startswith(CONTEXT) else "/spec")
    return ".".join(name_of(f"/{part}") for part in inner.split("/")[1:]) or "context"


def variable_of(name: str) -> str:
    """The environment variable of a secret. The prefix keeps a task from setting any other variable."""
    return VARIABLE + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def value_at(value: Any, path: str) -> Any:
    """What stands at a path in a value, None where nothing does."""
    for part in path.split("/")[1:]:
        name = name_of(f"/{part}")
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, (list, tuple)) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


# --- in input -----------------------------------------------------------------------------------------------


class Marked(NamedTuple):
    """A secret in input. `by_name`: the caller did not mark it."""

    path: str
    value: str
    by_name: bool


def is_marked(value: Any) -> bool:
    return isinstance(value, Mapping) and SECRET in value


def secret_of(path: str, value: Any) -> Marked | None:
    """The secret that stands at this path in a task's input; None where this is none."""
    if is_marked(value):
        text = value[SECRET]
        if len(value) != 1 or not isinstance(text, str) or not text:
            raise InvalidInput(
                f"{shown_name(path)}: a secret is a text that is not empty", f'as in {{"{SECRET}": "the text"}}'
            )
        return Marked(path, text, by_name=False)
    if isinstance(value, str) and value and value != SHOWN and is_secret_name(name_of(path)):
        return Marked(path, value, by_name=True)
    return None


def is_place(path: str) -> bool:
    """Whether a task may have a secret at this path."""
    return path in PLACES or path.startswith(tuple(f"{place}/" for place in PLACES))


def check_places(value: Any, path: str) -> None:
    """Refuse marks outside of the places where a secret may stand: they would be stored as they are."""

    def leaf(at: str, found: Any) -> Any:
        if at in PLACES:
            return found
        if is_marked(found):
            raise InvalidInput(
                f"{at[1:].replace('/', '.')} has {SECRET!r}: secrets are in spec.context, spec.arguments and metadata",
                "move it there",
            )
        return KEPT

    walked(value, path, leaf)


def check_names(paths: Iterable[str]) -> None:
    """No two secrets of a task have the same variable, and they are not too many."""
    names: dict[str, str] = {}
    for count, path in enumerate(paths, 1):
        if count > MOST:
            raise TooLarge(f"a task may have at most {MOST} secrets")
        name = shown_name(path)
        other = names.setdefault(variable_of(name), name)
        if count > len(names):
            raise InvalidInput(
                f"the secrets {other} and {name} would both be {variable_of(name)}", "rename one of them"
            )


# --- in rows and views --------------------------------------------------------------------------------------


def sealed_in(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Path and sealed value of each secret."""
    if is_sealed(value):
        yield path, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from sealed_in(inner, f"{path}/{_step(name)}")
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from sealed_in(inner, f"{path}/{number}")


def masked(value: Any) -> Any:
    """As everybody but the holder sees it: the same object where it has no secret."""
    return walked(value, "", lambda _, found: SHOWN if is_sealed(found) else KEPT)


def shown_details(event: Event) -> dict[str, Any]:
    """The details of an event as anybody may see them; those that undo needs stay in the log, sealed."""
    return masked(event.details) if event.kind in _WITH_VALUES else event.details


def comparable(value: Any) -> Any:
    """With the digest of each secret in its place: equal where the plain values are."""
    return walked(value, "", lambda _, found: {SEALED: found[SEALED].get("digest")} if is_sealed(found) else KEPT)


def same(wanted: Any, known: Any) -> bool:
    """Whether input equals the known value; a secret may be given as it is shown."""

    def leaf(path: str, found: Any) -> Any:
        there = value_at(known, path) if found == SHOWN else None
        return there if is_sealed(there) else KEPT

    return bool(comparable(walked(wanted, "", leaf)) == comparable(known))


def same_secrets(wanted: Any, known: Any) -> bool:
    """Whether input has the secrets that are there, whatever else it changes."""
    there = {path: value[SEALED].get("digest") for path, value in sealed_in(known, "")}
    kept = walked(wanted, "", lambda path, found: value_at(known, path) if found == SHOWN and path in there else KEPT)
    return there == {path: value[SEALED].get("digest") for path, value in sealed_in(kept, "")}


# --- in what a holder writes --------------------------------------------------------------------------------


class Hidden:
    """Finds secrets in texts, plain, in base64 or escaped, and replaces them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret for secret in secrets if len(secret) >= SEARCHED}
        self._spelled = _longest_first({text for secret in known for text in spellings(secret)})
        self._unescaped = _longest_first({unescaped(text) for text in self._spelled})
        self._has_digits = any(secret.isdecimal() for secret in known)

    def __bool__(self) -> bool:
        return bool(self._spelled)

    def text(self, text: str) -> str:
        found = [secret for secret in self._spelled if secret in text]  # far faster than a pattern of all
        if found:
            text = _any_of(found).sub(SHOWN, text)
        if not self._spelled or not may_have_escapes(text):
            return text
        meant = unescaped(text)
        found = [secret for secret in self._unescaped if secret in meant]
        return _without(text, found) if found else text

    def value(self, value: Any) -> Any:
        """The value without the secrets, names of its parts included. The same object where it has none."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return value
        if isinstance(value, Mapping):
            after = {self.value(name): self.value(inner) for name, inner in value.items()}
            return value if after == value else after
        if isinstance(value, (list, tuple)):
            items = [self.value(inner) for inner in value]
            return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
        if isinstance(value, msgspec.Struct):
            return self.struct(value, ())
        if self._has_digits and isinstance(value, (int, float)) and not isinstance(value, bool):
            text = str(value)
            return value if self.text(text) == text else SHOWN
        return value

    def struct(self, value: Any, kept: Iterable[str]) -> Any:
        """A struct, whose own numbers stay; so do the texts of the fields that are `kept`."""
        changed = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            if before is None or isinstance(before, (bool, int, float)) or (name in kept and isinstance(before, str)):
                continue
            after = self.value(before)
            if after is not before and after != before:
                changed[name] = after
        return msgspec.structs.replace(value, **changed) if changed else value


def _longest_first(texts: Iterable[str]) -> list[str]:
    """A secret may be part of another."""
    return sorted((text for text in texts if len(text) >= SEARCHED), key=lambda text: (-len(text), text))


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, texts)))


def _without(text: str, found: Iterable[str]) -> str:
    """The text without these, which are in it once its escapes are resolved."""
    meant, parts, at = unescaped_with_places(text), [], 0
    for match in _any_of(found).finditer(meant.text):
        start, end = meant.starts[match.start()], meant.ends[match.end() - 1]
        parts += [text[at : max(at, start)], SHOWN]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def spellings(secret: str) -> set[str]:
    """The texts that give a secret away."""
    from urllib.parse import quote, quote_plus  # most tasks have no secret; keeps startup fast

    plain = secret.encode()
    found = {secret, msgspec.json.encode(secret).decode()[1:-1]}
    if "\n" in secret:  # transcripts are searched line by line
        found |= {line for line in secret.splitlines() if len(line) >= LINE and not line.startswith("-----")}
    for text in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        found |= {text, re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), text)}
    for encode in (b64encode, urlsafe_b64encode):
        found.add(encode(plain).decode().rstrip("="))
        for before in range(3):  # inside of a longer text the secret may begin at any of three bits
            first, last = -(-before * 8 // 6), (before + len(plain)) * 8 // 6
            inner = encode(b"\0" * before + plain).decode()[first:last]
            if len(inner) >= SEARCHED:
                found.add(inner)
    return {text for text in found if len(text) >= SEARCHED}
