"""What every command has: its declaration, the principal it runs for, and the digest that recognises a repeat."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar

import msgspec

from tenure.core.decoders import defaults_of

PROJECT = "/projects/{project}"
TASK = PROJECT + "/tasks/{task}"


class Declaration(msgspec.Struct, frozen=True):
    """Of a command or query; the tables of roles, routes, handlers and OpenAPI are derived from it."""

    theme: str  # the engine module that decides it: `runtime/decision.py` or `reads/query_table.py` imports it
    role: str  # the lowest role that may send it
    method: str = ""  # "": no route carries it
    path: str = ""  # words in braces are its fields
    speaks_for: str | None = None  # the field that names its agent; an agent acts only for itself
    costly: bool = False  # a query's cost grows with the log or the tasks: few are answered at once
    printed: tuple[str, ...] = ()  # fields with what a program printed: they are stored without secrets


class Principal(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The principal of a command. The role decides what it may do; it never proves a holder."""

    role: str = "owner"
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    address: str | None = None
    projects: tuple[str, ...] = ()  # where it may read and write; empty: everywhere
    is_proven: bool = False  # its key or token proves the agent; else the name is its own claim
    key: str | None = None  # an API key's id, or a token's subject
    capabilities: tuple[str, ...] = ()  # of its key or token, beyond the role
    credential: str = ""  # the secret, session or token it showed: checked again during a stream
    maker: str | None = None  # of a key in the name of `user`: the other person who made it
    tenant: str | None = None  # where it signed in: nothing of another is done for it; None: where it is, embedded

    @property
    def person(self) -> str | None:
        """The user, and who made its key in that name."""
        return self.user if self.maker is None else f"{self.user or ''} (key made by {self.maker})"

    @property
    def name(self) -> str:
        return f"agent:{self.agent or ''}" if self.role == "agent" else f"human:{self.person or ''}"

    @property
    def is_served(self) -> bool:
        """Whether it came over HTTP, where nothing but its key, token or address says who it is."""
        return self.address is not None or self.tenant is not None

    @property
    def owner(self) -> str:
        """The key's owner: what the key proves, never a header. "" without a key."""
        if self.key is None:
            return ""
        return f"agent:{self.agent}" if self.is_proven else f"user:{self.person or ''}"


OWNER = Principal()


# --- who acted in an event ----------------------------------------------------------------------------------
#
# An agent acts, or a person, or time. The principal names the first two; where it names no agent, a command acts as the
# agent that it speaks for, or whose genuine receipt it presents. What time does, as the end of a lease, has the holder
# as its agent: nobody else has to do with it.

HOLDER = "holder"  # in the details of an event: whose claim it is, where another acted
BY = "by"  # and who acted, where the event's agent is the one that it is about


def actor_of(
    principal: Principal, spoken: str | None, holder: str | None, *, is_time: bool
) -> tuple[str | None, dict[str, Any]]:
    """The agent of an event about a claim, and what its details say beside it.

    `spoken`: the agent that the command speaks for, or whose receipt it presents. `is_time`: nobody acts.
    """
    agent = holder if is_time else principal.agent or spoken
    return agent, {} if holder in (None, agent) else {HOLDER: holder}


def operator_of(principal: Principal, spoken: str | None, agent: str) -> dict[str, Any]:
    """What the details of an event about this agent say: who acted, if it was another."""
    is_other = agent not in (principal.agent, spoken) and (principal.agent or principal.person)
    return {BY: principal.name} if is_other else {}


class Command(msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="command", tag=str.lower):
    """`project` is the scope; `request_id` makes a repeat harmless."""

    declaration: ClassVar[Declaration]

    project: str
    request_id: str | None = None
    trace_id: str | None = None


# --- digests of requests, kept to recognise a repeat --------------------------------------------------------
#
# A digest begins with the number of its form. The second form leaves out every field with its default, so that a field
# added by a later version changes nothing; rows of the first form have no number, and still match.

FORM = "2:"
_APART = frozenset({"request_id", "trace_id"})  # the request's own name, and its trace
_PLAIN = (str, int, bool, float, type(None))
_ALWAYS = ("project", "request_id", "trace_id")


def digest_of(command: Command, owner: str = "") -> str:
    """`owner`: the owner of the key that sent it, if any; the same request by another owner is another request."""
    digest = FORM + _hashed(msgspec.json.encode(_set_fields(command), order="deterministic"))
    return bound(digest, owner)


def bound(text: str, owner: str) -> str:
    """A request's id or digest, tied to the owner of the key that sent it."""
    return f"{text}.{_hashed(owner.encode())[:12]}" if owner else text


def is_same(kept: str | None, command: Command, owner: str = "") -> bool:
    """Whether the kept digest is of this command. Digests of the first form name no owner."""
    if kept is None:
        return False
    return kept == (digest_of(command, owner) if kept.startswith(FORM) else first_form(command))


def _hashed(encoded: bytes) -> str:
    import hashlib  # a fifth of the startup time, and rarely needed

    return hashlib.sha256(encoded).hexdigest()[:32]


# Fields that had these defaults once and have none now: a request from before an upgrade has the same digest.
FORMER_DEFAULTS: dict[str, dict[str, Any]] = {"NewTask": {"priority": 50, "max_attempts": 3, "on_lost": "retry"}}


def _set_fields(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        names, defaults, given, tag = _shape(type(value))
        former = FORMER_DEFAULTS.get(type(value).__name__, {})
        fields = {
            name: item if type(item) in _PLAIN else _set_fields(item)
            for name, default, item in zip(names, defaults, given(value), strict=True)
            if item is not default and item != default and item != former.get(name, default)
        }
        if tag is not None:
            fields["command"] = tag
        return fields
    if isinstance(value, (tuple, list)):
        return [_set_fields(item) for item in value]
    if isinstance(value, dict):
        if "$sealed" in value:  # the same secret is sealed differently each time
            return value["$sealed"]["digest"]
        return {key: _set_fields(item) for key, item in value.items()}
    return value


@cache
def _shape(kind: Any) -> tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], tuple[Any, ...]], Any]:
    fields = [(name, default) for name, default in _fields(kind) if name not in _APART]
    names = tuple(name for name, _ in fields)
    get = attrgetter(*names)
    return (
        names, tuple(default for _, default in fields), get if len(names) > 1 else lambda value: (get(value),),
        kind.__struct_config__.tag,
    )  # fmt: skip


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names and defaults; a required field differs from all values."""
    missing, defaults = object(), defaults_of(kind)
    return tuple((name, defaults.get(name, missing)) for name in kind.__struct_fields__)


def first_form(command: Command) -> str:
    from tenure.core.commands.first_form import FIELDS

    def as_then(value: Any) -> Any:
        if isinstance(value, msgspec.Struct):
            kind = type(value)
            known = next((FIELDS[one.__name__] for one in kind.__mro__ if one.__name__ in FIELDS), None)
            had = [name for name in (*_ALWAYS, *(known or "").split()) if hasattr(value, name)]
            more = [
                n for n, default in _fields(kind) if n not in had and (known is None or getattr(value, n) != default)
            ]
            former = FORMER_DEFAULTS.get(kind.__name__, {})
            fields = {
                name: as_then(former.get(name) if (part := getattr(value, name)) is None else part)
                for name in (*had, *more)
            }
            tag = kind.__struct_config__.tag
            return fields if tag is None else {"command": tag, **fields}
        if isinstance(value, (tuple, list)):
            return [as_then(item) for item in value]
        if isinstance(value, dict):
            return {key: as_then(item) for key, item in value.items()}
        return value

    return _hashed(msgspec.json.encode(as_then(msgspec.structs.replace(command, trace_id=None))))
