"""Checks of input: types, sizes, names, values. Nothing that fails here has touched a store.

`validated` proves a command's types, whatever built it, and that its text can be stored everywhere; the functions
below it check what a type cannot express. Each error names the field, the value and the valid range.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import compress, repeat
from operator import attrgetter, is_not
from typing import Any, TypeVar

import msgspec

from tenure.core import graph, ids, limits, priority, reservations, retry, team, validation
from tenure.core.commands import Command, NewTask
from tenure.core.decoders import converted, decoder_of, defaults_of
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.money import parse_usd
from tenure.core.records import Brief, RetryPolicy, Task, replace

C = TypeVar("C", bound=Command)

SECOND = 1_000_000
KIB = 1024
MOST_COMMANDS = limits.BATCH
LARGEST_BATCH = limits.BATCH_BYTES
LARGEST_PLAN = limits.PLAN_TASKS
LARGEST_RESULT = limits.RESULT_BYTES
LARGEST_CHECKPOINT = limits.CHECKPOINT_BYTES
LARGEST_CLAIM_METADATA = limits.CLAIM_METADATA_BYTES
LARGEST_DESCRIPTION = limits.DESCRIPTION_BYTES
LARGEST_TEXT = limits.TEXT_BYTES
LONGEST_TITLE = limits.TITLE
LONGEST_NAME = limits.NAME
LARGEST_NUMBER = limits.INTEGER
DEEPEST = limits.NESTING
MOST_LISTED = limits.LIST
MOST_ATTEMPTS = limits.ATTEMPTS
MOST_DEPENDENCIES = limits.DEPENDENCIES
MOST_TOKENS = limits.ESTIMATED_TOKENS
LONGEST_LEASE = limits.LEASE_MAX
MIN_LEASE = limits.LEASE_MIN

# Fields that name something, in any command: short, since rows are found by them.
NAMES = frozenset(
    {
        "request_id", "trace_id", "task", "needs", "parent", "dag", "user", "host", "boot", "region", "model", "scope",
        "type", "agent_type", "command_id", "result", "reply_to", "to", "code", "branch",
    }
)  # fmt: skip
ON_LOST = ("retry", "back_off", "hold")
OUTPUT_TYPES = ("code", "markdown", "json", "artifact")
CONSTRAINTS = {
    "max_cost_usd": (int, float, str),
    "max_duration": (int, float),
    "required_capabilities": (list, tuple),
    "region": (str,),
    "prefer_region": (str,),
    "agent_type": (str,),
    "model_preferences": (list, tuple),
    "fallback_models": (list, tuple),
    "needs": (list, tuple),
    "estimated_tokens": (int,),
    "complexity": (int, float),
    "estimated_duration": (int, float),
}
OUTPUT = {"type": (str,), "summary": (str,), "validation": (str,), "settings": (dict,)}
LIMITS = {
    "max_concurrent_claims": "claims held at once",
    "max_lease": "the longest lease, in seconds",
    "min_lease": "the shortest lease, in seconds",
    "max_generations_per_task": "claims of one task in a run",
    "max_result_size": "bytes of a result",
    "max_active_sessions": "sessions at once",
    "tokens_per_line": "expected tokens per changed line; a result that used twice as many waits for a person",
    "archive_after": "age at which finished tasks that no open task needs are archived, in seconds",
    "history_retention": "age at which archived tasks are deleted, in days",
}
MAY_BE_ZERO = frozenset({"archive_after"})


class Checked(msgspec.Struct, frozen=True):
    """A command with proven types, and its canonical bytes."""

    command: Any
    encoded: bytes


def validated(command: Command) -> Checked:
    """The command with every type proven; raises InvalidInput that names the field."""
    if not all(map(_is_harmless, _given(command))):
        _check_values(command)
    try:
        encoded = msgspec.json.encode(command)
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{_name(command)}: text that is not valid UTF-8", "re-encode it, or drop the bytes"
        ) from None
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{_name(command)}: cannot be encoded as JSON: {error}") from None
    if len(encoded) > LARGEST_BATCH:
        raise TooLarge(
            f"{_name(command)}: a command may have at most {LARGEST_BATCH} bytes (got {len(encoded)})",
            "send it in several parts",
        )
    if b'"$sealed"' in encoded:
        from tenure.core.sealed import refuse_sealed  # nobody sends one by accident

        refuse_sealed(msgspec.json.decode(encoded), _name(command))
    if b"\\u0000" in encoded and _has_nul(msgspec.json.decode(encoded)):
        raise InvalidInput(f"{_name(command)}: text contains a NUL character")
    try:
        return Checked(decoder_of(type(command)).decode(encoded), encoded)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{_name(command)}: {error}") from None


FEW = 32
_CONTAINERS = (dict, list, tuple, set, frozenset, msgspec.Struct)


def _check_values(command: Command) -> None:
    """Refuse what JSON would lose or a column cannot hold: NaN and infinity, integers beyond 64 bits, deep nesting."""
    verb = _name(command)
    todo: list[tuple[Any, str, int]] = [(command, verb, 1)]
    while todo:
        value, where, depth = todo.pop()
        if depth > DEEPEST:
            raise InvalidInput(f"{where}: nested deeper than {DEEPEST} levels", "put it into a file and pass its name")
        is_struct = isinstance(value, msgspec.Struct)
        if is_struct:  # a default is harmless, and most fields have theirs
            names, values = value.__struct_fields__, msgspec.structs.astuple(value)
            items: Any = compress(zip(names, values, strict=True), map(is_not, values, _defaults(value.__class__)))
        else:
            items = ((where, item) for item in (value.values() if isinstance(value, dict) else value))
        for name, item in items:
            kind = type(item)
            if kind is str:
                if is_struct and len(item) > LONGEST_NAME and name in NAMES:
                    raise TooLarge(f"{verb}: {name} may have at most {LONGEST_NAME} characters (got {len(item)})")
            elif kind is int:
                if is_struct and not -LARGEST_NUMBER <= item <= LARGEST_NUMBER:
                    raise InvalidInput(f"{verb}: {name} does not fit 64 bits")
            elif kind is float:
                if not math.isfinite(item):
                    field = f"{verb}: {name}" if is_struct else where
                    raise InvalidInput(f"{field} must be a finite number (got {item})")
            elif item and isinstance(item, _CONTAINERS) and not _are_harmless(item):
                todo.append((item, f"{verb}: {name}" if is_struct else where, depth + 1))


def _given(command: Command) -> Iterator[Any]:
    """The values of fields that have not their default: most have, and a default is harmless."""
    values = msgspec.structs.astuple(command)
    return compress(values, map(is_not, values, _defaults(command.__class__)))


@cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[Any, ...]:
    defaults = defaults_of(kind)
    return tuple(defaults.get(name) for name in kind.__struct_fields__)


def _is_harmless(value: Any) -> bool:
    """Whether the value is short and nearly flat: almost everything in hot commands is."""
    kind = type(value)
    if kind is str:
        return len(value) <= LONGEST_NAME
    if kind is dict or kind is list:  # of a result that is small, and flat but for lists
        return len(value) <= FEW and all(map(_is_simple, value.values() if kind is dict else value))
    return value is None or kind is bool or (kind is int and -LARGEST_NUMBER <= value <= LARGEST_NUMBER) or value == ()


def _are_harmless(items: Any) -> bool:
    """Whether these are many structs of one kind, and harmless: field by field, which is faster."""
    if type(items) is not tuple or len(items) <= FEW:
        return False
    kind = type(items[0])
    if set(map(type, items)) != {kind} or not issubclass(kind, msgspec.Struct):
        return False
    columns = zip(*map(msgspec.structs.astuple, items), strict=True)
    return all(map(_is_harmless_column, kind.__struct_fields__, columns, _defaults(kind)))


def _is_harmless_column(name: str, values: tuple[Any, ...], default: Any) -> bool:
    kinds = set(map(type, values)) - {type(None), bool}
    if not kinds or (not any(values) and kinds <= {dict, tuple}) or not any(map(is_not, values, repeat(default))):
        return True
    if kinds == {str}:
        return name not in NAMES or max(map(len, filter(None, values)), default=0) <= LONGEST_NAME
    return kinds == {int} and all(-LARGEST_NUMBER <= value <= LARGEST_NUMBER for value in values if value is not None)


def _is_simple(value: Any) -> bool:
    """As in JSON: a text, a number that fits, or a short list of them."""
    kind = type(value)
    if kind is list:
        return len(value) <= FEW and all(type(item) is str for item in value)
    return kind is str or value is None or kind is bool or (kind is int and -LARGEST_NUMBER <= value <= LARGEST_NUMBER)


def _name(command: Command) -> str:
    return str(type(command).__struct_config__.tag)


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(k) or _has_nul(v) for k, v in value.items())
    return isinstance(value, list) and any(_has_nul(v) for v in value)


# --- single values ------------------------------------------------------------------------------------------


AUTO = "auto"


def lease_of(seconds: float | str | None, given: Mapping[str, int], default: float = limits.LEASE) -> int:
    """The lease in microseconds, within the limits that apply in the project."""
    if isinstance(seconds, str):
        raise InvalidInput(f"lease {seconds[:40]!r} must be a number of seconds, or {AUTO} for a claim")
    if seconds is None and not given:
        return round(default * SECOND)
    wanted = default if seconds is None else seconds
    low, high = lease_limits(given)
    if not math.isfinite(wanted) or not low <= wanted <= high:
        raise InvalidInput(
            f"lease must be from {_spelled(low)} (min_lease) to {_spelled(high)} (max_lease) in this project "
            f"(got {_spelled(wanted)})",
            "an admin can change the limits" if given else None,
        )
    return round(wanted * SECOND)


def lease_limits(given: Mapping[str, int]) -> tuple[float, float]:
    """The shortest and the longest lease under these limits, in seconds."""
    return max(MIN_LEASE, given.get("min_lease", 0)), given.get("max_lease", LONGEST_LEASE)


def micros(seconds: float, what: str, *, low: float = 0.0, high: float = 10 * 365 * 24 * 3600.0) -> int:
    if not math.isfinite(seconds) or not low <= seconds <= high:
        raise InvalidInput(f"{what} must be from {_spelled(low)} to {_spelled(high)} (got {_spelled(seconds)})")
    return round(seconds * SECOND)


def _spelled(seconds: float) -> str:
    """`300s` or `30d`, as people write it; a number that is not a duration stays as it is."""
    from tenure.core.written_times import spell_duration

    is_duration = math.isfinite(seconds) and 0 <= seconds < 1e12
    return spell_duration(round(seconds * SECOND)) if is_duration else f"{seconds:g} s"


def check_text(text: str, what: str, largest: int = LARGEST_TEXT, *, required: bool = False) -> str:
    size = len(text) if len(text) > largest else len(text.encode())
    if size > largest:
        raise TooLarge(f"{what} may have at most {largest} bytes (got {size})", "put the rest into a file and name it")
    if required and not text.strip():
        raise InvalidInput(f"{what} must not be empty")
    return text


def check_size(value: Any, what: str, largest: int) -> bytes:
    encoded = msgspec.json.encode(value)
    if len(encoded) > largest:
        raise TooLarge(
            f"{what} may have at most {largest} bytes (got {len(encoded)})", "put it into a file, pass its name"
        )
    return encoded


def check_count(count: int, most: int, what: str) -> int:
    if not 1 <= count <= most:
        raise InvalidInput(f"{what} must be from 1 to {most} (got {count})")
    return count


def check_choice(value: str, choices: Collection[str], what: str) -> str:
    if value not in choices:
        raise InvalidInput(f"{what} {value[:60]!r} must be one of {', '.join(choices)}{suggestion(value, choices)}")
    return value


def check_list(values: Collection[Any], what: str) -> tuple[str, ...]:
    if len(values) > MOST_LISTED:
        raise TooLarge(f"{what} may have at most {MOST_LISTED} entries (got {len(values)})")
    for value in values:
        if not isinstance(value, str) or not value or len(value) > 200 or "|" in value or "," in value:
            raise InvalidInput(f"{what} {str(value)[:60]!r} must be 1 to 200 characters without ',' and '|'")
    return tuple(values)


def is_model(name: str) -> bool:
    """Whether an agent's program takes this word for a model: one that begins with `-` would be an option of it."""
    return name.isprintable() and not name.startswith("-")


def check_models(values: Collection[Any], what: str) -> tuple[str, ...]:
    for name in check_list(values, what):
        if not is_model(name):
            raise InvalidInput(
                f"{what} {name[:60]!r} is not the name of a model: it begins with '-' or has a control character"
            )
    return tuple(values)


def check_agent_type(value: str, what: str) -> str:
    if value == team.INSTANCE:
        raise InvalidInput(f"{what} {value!r} is reserved: it names the mailboxes of agents", "choose another type")
    return value


def suggestion(word: str, choices: Collection[str]) -> str:
    import difflib  # only for misspelt names

    near = difflib.get_close_matches(word, list(choices), 1)
    return f"; did you mean {near[0]}?" if near else ""


def check_key(key: str, known: Collection[str], what: str) -> None:
    if key not in known:
        raise InvalidInput(f"{what}.{key[:60]}: unknown{suggestion(key, known) or '; known: ' + ', '.join(known)}")


def check_keys(given: Mapping[str, Any], known: Mapping[str, tuple[type, ...]], what: str) -> None:
    for key, value in given.items():
        check_key(key, known, what)
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise InvalidInput(f"{what}.{key}: {value!r:.60} is not {' or '.join(t.__name__ for t in known[key])}")


def check_limits(limits: Mapping[str, int]) -> dict[str, int]:
    for name, value in limits.items():
        if name not in LIMITS:
            raise InvalidInput(f"limit {name[:60]!r}: unknown{suggestion(name, LIMITS)}; known: {', '.join(LIMITS)}")
        least = 0 if name in MAY_BE_ZERO else 1
        if not least <= value <= LARGEST_NUMBER:
            raise InvalidInput(f"limit {name} must be from {least} to {LARGEST_NUMBER} (got {value})")
    low, high = limits.get("min_lease", 1), limits.get("max_lease", LONGEST_LEASE)
    if low > min(high, LONGEST_LEASE):
        raise InvalidInput(f"limit min_lease {low} must not exceed max_lease {high:g}")
    return dict(limits)


def check_retry(given: RetryPolicy) -> RetryPolicy:
    """The policy with our names of its fields."""
    policy = retry.in_our_words(given)
    check_choice(policy.strategy, retry.STRATEGIES, "retry.strategy")
    for name in ("initial_delay", "cap"):
        if not 0 <= getattr(policy, name) <= LONGEST_LEASE:
            raise InvalidInput(f"retry.{name} must be from 0 s to 30 days (got {getattr(policy, name)} s)")
    if not (math.isfinite(policy.multiplier) and 1 <= policy.multiplier <= 100):
        raise InvalidInput(f"retry.multiplier must be from 1 to 100 (got {policy.multiplier})")
    if not (math.isfinite(policy.jitter) and 0 <= policy.jitter <= 1):
        raise InvalidInput(f"retry.jitter must be from 0 to 1 (got {policy.jitter})")
    if not 0 <= policy.poison <= MOST_ATTEMPTS:
        raise InvalidInput(f"retry.poison must be from 0 (off) to {MOST_ATTEMPTS} (got {policy.poison})")
    for name in (*policy.retry_on, *policy.no_retry_on):
        check_choice(name, retry.CLASSES, "retry class")
    return policy


def check_plan_name(name: str) -> str:
    ids.check_name(name, "plan")
    if ":" in name:
        raise InvalidInput(f"plan {name!r} must not contain ':', which ends the name in the keys of its tasks")
    return name


def check_track(code: str, name: str, purpose: str) -> str:
    ids.check_track_code(code)
    check_text(name, f"track {code}: name", 255, required=True)
    check_text(purpose, f"track {code}: purpose")
    return code


def check_instant(value: Any, what: str) -> int | None:
    if value is not None and not 0 <= value < 1 << 53:
        raise InvalidInput(f"{what} must be microseconds since 1970 in UTC (got {value})")
    found: int | None = value
    return found


def check_deadline(deadline: Any, now: int) -> None:
    """A deadline that a person sets must be in the future."""
    if deadline is not None and deadline <= now:
        from tenure.core.instants import format_instant, lasting  # of errors alone; keeps startup fast

        past = f"{format_instant(deadline)[:19]}Z, {lasting((now - deadline) / SECOND)} ago"
        raise InvalidInput(f"deadline {past}, is in the past", "name a later time, as in 2h or 3d from now")


# --- tasks --------------------------------------------------------------------------------------------------


def check_new_task(new: NewTask) -> NewTask:
    """Everything about a new task that needs no query to the store."""
    check_own(new)
    check_brief(new.description, new.spec, new.metadata, new.output, new.constraints)
    check_list(new.tags, "tag")
    check_list((new.type,), "type")
    for pattern in check_list(new.touches, "touches"):
        reservations.normalised(pattern)
    check_retry(new.retry)
    _check_optional(new)
    if new.boost is not None:
        priority.parse_boost(new.boost)
    check_instant(new.deadline, "deadline")
    check_instant(new.not_before, "not_before")
    for name in ("deadline", "not_before"):
        if (seconds := getattr(new, f"{name}_in")) is not None:
            micros(seconds, f"{name}_in")
            if getattr(new, name) is not None:
                raise InvalidInput(f"{name} and {name}_in exclude each other", f"leave out {name}_in")
    _check_key(new)
    if len(new.depends_on) > MOST_DEPENDENCIES:
        raise TooLarge(
            f"depends_on may have at most {MOST_DEPENDENCIES} tasks (got {len(new.depends_on)})",
            "add a task in between that depends on them",
        )
    for dependency in new.depends_on:
        if not isinstance(dependency, str):
            check_choice(dependency.on_failure, graph.ON_FAILURE, "on_failure")
    return new


# What may differ between new tasks that are alike.
_OWN = frozenset({"title", "name", "description", "idempotency_key"})
_shape = attrgetter(*(name for name in NewTask.__struct_fields__ if name not in _OWN))


def alike(new_tasks: Sequence[NewTask]) -> list[NewTask]:
    """For each new task an earlier one that differs in its names and its description alone; itself where none does.

    Of many tasks that are created together most are alike: the checks and derived values of one count for all.
    """
    models: list[NewTask] = []
    shape: Any = None
    for new in new_tasks:
        own = _shape(new)
        models.append(models[-1] if own == shape else new)
        shape = own
    return models


def check_own(new: NewTask) -> NewTask:
    """What `check_new_task` checks, for a task that is alike to a checked one."""
    check_title(new.title)
    check_text(new.description, "description", LARGEST_DESCRIPTION)
    for name, value in (("name", new.name), ("idempotency_key", new.idempotency_key)):
        if value is not None and not 1 <= len(value) <= 255:
            raise InvalidInput(f"{name} must have 1 to 255 characters")
    return new


def _check_optional(new: NewTask) -> None:
    """Fields that a new task may leave to its project."""
    if new.on_lost is not None:
        check_choice(new.on_lost, ON_LOST, "on_lost")
    if new.priority is not None:
        priority.parse_priority(new.priority)
    if new.max_attempts is not None and not 1 <= new.max_attempts <= MOST_ATTEMPTS:
        raise InvalidInput(f"max_attempts must be from 1 to {MOST_ATTEMPTS} (got {new.max_attempts})")


def _check_key(new: NewTask) -> None:
    if new.track is not None:
        ids.check_track_code(new.track)
    if new.key is None:
        return
    key = ids.parse_key(new.key)
    if key is None or not key.slug or key.path or key.sequence == 0 or key.sequence >= 1 << 31:
        raise InvalidInput(f"key {new.key[:80]!r} must be TRACK-SEQ-slug, as in B-003-implement-repositories")
    if len(key.slug) > ids.SLUG_LENGTH:
        raise InvalidInput(f"key {new.key[:80]!r}: the slug may have at most {ids.SLUG_LENGTH} characters")
    if new.track is not None and new.track != key.track:
        raise InvalidInput(f"key {new.key}: its track is {key.track}, but track is {new.track}")


def check_title(title: str) -> str:
    if title and not title.strip():
        raise InvalidInput("title must not be blank", "describe the work in a few words")
    if not title or len(title) > LONGEST_TITLE:
        raise InvalidInput(f"title must have 1 to {LONGEST_TITLE} characters (got {len(title)})")
    return title


def check_brief(
    description: str,
    spec: Mapping[str, Any],
    metadata: Mapping[str, Any],
    output: Mapping[str, Any],
    constraints: Mapping[str, Any],
) -> None:
    check_text(description, "description", LARGEST_DESCRIPTION)
    check_size(spec, "spec", limits.SPEC_BYTES)
    for what, value in (("metadata", metadata), ("output", output), ("constraints", constraints)):
        check_size(value, what, LARGEST_DESCRIPTION)
    check_keys(output, OUTPUT, "output")
    validation.check_contract(output)
    if "type" in output:
        check_choice(output["type"], OUTPUT_TYPES, "output.type")
    check_keys(constraints, CONSTRAINTS, "constraints")
    for name in ("required_capabilities", "needs"):
        check_list(constraints.get(name, ()), f"constraints.{name}")
    for name in ("model_preferences", "fallback_models"):
        check_models(constraints.get(name, ()), f"constraints.{name}")
    for pattern in constraints.get("needs", ()):
        reservations.normalised(pattern)
    if "max_cost_usd" in constraints:
        parse_usd(str(constraints["max_cost_usd"]), "constraints.max_cost_usd")
    for name in ("region", "prefer_region"):
        if name in constraints:
            check_list((constraints[name],), f"constraints.{name}")
    priority.region_of(constraints.get("region"), constraints.get("prefer_region"))
    if "agent_type" in constraints:
        check_list((check_agent_type(constraints["agent_type"], "constraints.agent_type"),), "constraints.agent_type")
    _check_expected(constraints)
    for name in ("max_duration", "estimated_duration"):
        if name in constraints:
            micros(constraints[name], f"constraints.{name}", low=1)
    refs = spec.get("context_refs", ())
    if not isinstance(refs, (list, tuple)) or not all(isinstance(r, str) for r in refs):
        raise InvalidInput("spec.context_refs must be a list of texts such as task:B-003:output")


def _check_expected(constraints: Mapping[str, Any]) -> None:
    for name, most in (("complexity", limits.COMPLEXITY), ("estimated_tokens", MOST_TOKENS)):
        value = constraints.get(name)
        if value is not None and not 0 < value <= most:
            raise InvalidInput(f"constraints.{name} must be above 0 and at most {most:,} (got {value:g})")


def constrained(task: Task, brief: Brief) -> Task:
    """The task with the brief's values that its hot row repeats, so that a claim is decided without the wide row."""
    wanted = brief.constraints
    duration, estimate = wanted.get("max_duration"), wanted.get("estimated_duration")
    return replace(
        task,
        requires=tuple(sorted(set(wanted.get("required_capabilities", ())))),
        region=priority.region_of(wanted.get("region"), wanted.get("prefer_region")),
        agent_type=wanted.get("agent_type"),
        models=tuple(wanted.get("model_preferences", ())),
        fallback_models=tuple(wanted.get("fallback_models", ())),
        max_duration=None if duration is None else micros(duration, "constraints.max_duration", low=1),
        estimate=micros(estimate, "constraints.estimated_duration") if estimate else None,
        guarded=bool(brief.touches or wanted.get("needs")),
        capped=task.capped or "max_cost_usd" in wanted,
        checked=validation.validator_of(brief.output) != validation.NONE or validation.is_submitted(task),
    )


# What `edit` may change: at any time, or (`held` False) only while nobody holds the task.
EDITABLE = {
    "title": True, "description": True, "tags": True, "priority": True, "deadline": True, "metadata": True,
    "boost": True, "max_attempts": True, "not_before": False, "retry": True, "on_lost": True, "type": False,
    "spec": False, "output": False, "constraints": False, "touches": False,
}  # fmt: skip
CLOSES_WINDOW = ("description", "spec", "output", "constraints", "touches")  # a result for the old text is void
OF_THE_RESULT = ("description", "spec", "output")  # fixed while a result waits


def check_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Values of an edit, with types proven by the same rules that create a task."""
    for name in changes:
        if name not in EDITABLE:
            raise InvalidInput(
                f"{name[:60]!r} cannot be edited{suggestion(name, EDITABLE) or '; these can: ' + ', '.join(EDITABLE)}"
            )
    if not changes:
        raise InvalidInput("edit has no changes", "name at least one field")
    try:
        probe = converted({"title": "edited", **changes}, NewTask)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"edit: {error}") from None
    check_new_task(probe)
    values = {name: getattr(probe, name) for name in changes}
    return values | ({"retry": check_retry(probe.retry)} if "retry" in values else {})
