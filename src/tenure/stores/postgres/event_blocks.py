"""Event blocks: the events of one call of the fast path, kept as one row.

Why. As a separate row, with its indexes and the JSON of its patch, an event costs ten times as much as an entry in a
few arrays. A call of the fast path (`hot_functions.py`) appends up to 1,024 events of one kind in one project at one
time. So it writes one row of `event_block`: an array per column (`ITEMS`), and once the values equal for all of them
(`OF_ALL`, the epoch). Events of the ordinary path are rows of `event`, as on every store.

Sequences. A block has all sequences from `first` to `last`, and no other event has one in between. So blocks and single
events are two sorted lists, and a reader merges them. A call draws its sequences at once, and again where another
writer drew in between; after 100 attempts it is left to the ordinary path. They are dense on purpose: readers see by
them how many events they are behind.

Forms. A block names the form it was written in, and a form is read the same for ever: `tests/stores/blocks.json`
has what each of them gives.
- Form 1 has every value in its arrays. No block is written in it any more.
- Form 2 names tasks by their number: id, key and track, which never change, are those of the task. Where it has no
  generations, its events are of first claims: of generation 1, and with work that began with the claim. Ids are not
  kept but made: `seed` is what the caller's maker of ids began with, and with the block's time it gives the ids of the
  events, then of their commands, then of their results.

Restated rules. A block stores facts, not text: `said` is the result's data, `facts` are numbers of the row that was
written. Details and patch of each event are built when it is read, by `_claimed` and `_completed` below. They restate
what the engine's `UnitOfWork.record` would have written for the same move. No other kind of event is ever in a block.

Invariants.
- The entries of a block are in the order of the commands.
- A claim keeps the sequences of its grant and of its result (`grant_event`, `result_event`). By these the events of one
  task or session are found without reading blocks one by one (`_OF_CLAIMS`).
- An event that is dropped with its archived task leaves an empty entry: it names no task. A block with only empty
  entries is deleted. Sequences of the other entries do not move.
- A column that no event of the block's kind shows carries no meaning: nothing reads it, no seal covers it. In form 2
  these are `id` and `causation_id`, which are made from the seed; of claims `previous_state`, `said` and `summary`; of
  results `epoch` and `request_hash`. `tests/reliability/tamper.py` has the list, and edits every other column.
- The writer that drops events holds the project's write lock, so two of them never rewrite one block.

Why it is safe. Rows and block are written by one call, so there is no event without its change and no change without
its event. The block has no separate state: if a function here built other values than the engine, replay would not
give the tables back, and `engine/verify` would report it.

Which tests prove it.
- `testing/engine/both_ways.py`: the events of every history are equal with and without the fast path, patches included.
- `tests/stores/test_postgres_blocks.py`: a page may begin and end inside of a block; events are found by every filter;
  dropped events leave their neighbours; each form gives what it gave when it was new.

What a new field must do.
- A field of Event becomes a column: an item in `ITEMS` if it differs per event, else in `OF_ALL`; both need a
  migration, and NULL must mean the default, since older blocks do not have it. The migration also replaces the function
  `drop_events`, which names every item.
- A field that a grant or a completion changes goes into the patch in `_claimed` or `_completed`, with a new form.
- Defaults are left out of patches (`_set_fields`), as the engine does.
"""
# ruff: noqa: S608 - constants alone

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.ids import IdMaker
from tenure.core.records import Claim
from tenure.stores.postgres.narrow_rows import space_of
from tenure.stores.sql.codec import Codec, builder, columns_of
from tenure.stores.sql.nul import shown
from tenure.stores.sql.statements import Dialect, Statement, conditions, joined

CLAIMED, COMPLETED = "task.claimed", "task.completed"
# One item per event. `said` is the caller's JSON, `facts` are numbers of the row that was written.
ITEMS = (
    "id", "task", "key", "version", "track", "generation", "agent", "session", "user", "address", "previous_state",
    "trace_id", "causation_id", "claimer", "request_id", "request_hash", "said", "facts", "numbers", "summary",
)  # fmt: skip
OF_ALL = ("time", "kind", "project", "new_state")  # equal for all events of a block, as its epoch is
# for details and patch, and for the ids of a block that has but a seed
_BESIDE = (
    "claimer",
    "request_id",
    "request_hash",
    "said",
    "facts",
    "epoch",
    "summary",
    "form",
    "seed",
    "place",
    "size",
)
_FIELDS = tuple(column.name for column in columns_of(Event) if column.name not in ("details", "patch"))
FORMS = frozenset({1, 2})  # that can be read
_CONSTANTS = {"level": "'info'", "message": "''"}
_OF_TASK = {"task": "t.id", "key": "t.key", "track": "t.track", "generation": "CASE WHEN b.form = 2 THEN 1 END"}


def _columns(item: str, sequence: str) -> str:
    """The fields of one event and the values beside them; `item` is the text of an array's item."""
    spelt = {name: item.format(name) for name in ITEMS}
    spelt |= {name: f"coalesce({spelt[name]}, {of_task})" for name, of_task in _OF_TASK.items()}
    spelt |= {name: f'b."{name}"' for name in (*OF_ALL, "epoch", "form", "seed")} | _CONSTANTS
    spelt |= {"sequence": sequence, "place": f"{sequence} - b.first + 1", "size": "b.last - b.first + 1"}
    return ", ".join(f'{spelt[name]} AS "{name}"' for name in (*_FIELDS, *_BESIDE))


_NAMES = ", ".join(f'"{name}"' for name in (*_FIELDS, *_BESIDE))
_ARRAYS = ", ".join(f'b."{name}"' for name in ITEMS)
_ITEMS = ", ".join(f'"{name}"' for name in ITEMS)
# In order, since the blocks are in order and a function returns rows in the order of its arrays.
_ALL = f"""
SELECT {_NAMES} FROM (
    SELECT fields.* FROM (SELECT * FROM {{s}}event_block WHERE {{blocks}} ORDER BY {{order}}{{most}}) AS b, LATERAL (
        SELECT {_columns('e."{}"', "b.first + e.n - 1")}
        FROM unnest({_ARRAYS}) WITH ORDINALITY AS e ({_ITEMS}, n)
            LEFT JOIN {{s}}space AS p ON p.tenant = b.tenant AND p.project = b.project
            LEFT JOIN {{s}}task_base AS t ON t.space = p.number AND t.number = e.numbers
        WHERE e.version IS NOT NULL ORDER BY e.n {{way}}
    ) AS fields
) AS event WHERE {{events}} LIMIT ?
"""
# By the sequences that claims keep: each leads to one block and one item in it.
_OF_CLAIMS = f"""
SELECT {_NAMES} FROM (
    SELECT {_columns('b."{}"[c.at - b.first + 1]', "c.at")}
    FROM (
        SELECT unnest(ARRAY[grant_event, result_event]) AS at FROM {{s}}claim_row WHERE {{claims}}
        UNION ALL SELECT unnest(ARRAY[grant_event, result_event]) FROM {{s}}claim_narrow WHERE {{claims}} AND {{space}}
    ) AS c CROSS JOIN LATERAL (
        SELECT * FROM {{s}}event_block WHERE (tenant, last) >= (?, c.at) AND (tenant, last) <= (?, 9223372036854775807)
        ORDER BY tenant, last LIMIT 1
    ) AS b LEFT JOIN {{s}}space AS p ON p.tenant = b.tenant AND p.project = b.project
    LEFT JOIN {{s}}task_base AS t ON t.space = p.number AND t.number = b.numbers[c.at - b.first + 1]
    WHERE b.first <= c.at AND b.tenant = ?
) AS event WHERE "version" IS NOT NULL AND {{events}} ORDER BY "sequence" {{way}} LIMIT ?
"""
OF_TASKS = """
SELECT task, at FROM (
    SELECT task, unnest(ARRAY[grant_event, result_event]) AS at FROM {s}claim
    WHERE tenant = $1 AND project = $2 AND task = ANY($3)) AS kept WHERE at IS NOT NULL
"""
# Filters by ids: those of form 2 are made when they are read, so the caller compares.
MADE = frozenset({"id", "causation_id"})
EVERY = 1 << 40

_CODEC: Codec[Event] = Codec(Event)
_CLAIMS: Codec[Claim] = Codec(Claim)


def finding(tenant: str, where: Where, after: int, limit: int, last: bool, dialect: Dialect) -> Statement:
    """As `log_statements.finding`, for events in blocks."""
    stored = {name: wanted for name, wanted in where.items() if name not in MADE}
    clauses, values = conditions(_CODEC, stored, dialect)
    events = " AND ".join(['"sequence" > ?', *clauses])
    if stored != where:
        limit = EVERY
    project, way = where.get("project"), "DESC" if last else ""
    by_claims = _claims_of(where)
    if by_claims:
        claims, of_claims = conditions(_CLAIMS, by_claims, dialect)
        text = _OF_CLAIMS.format(
            s=dialect.schema, claims=joined(claims), space=f"space = {space_of(dialect.schema, '?', '?')}",
            events=events, way=way,
        )  # fmt: skip
        asked = [tenant, *of_claims]
        return text, [*asked, *asked, tenant, project, tenant, tenant, tenant, after, *values, limit]
    if isinstance(project, str):
        place = "(project, tenant, last)"
        blocks, order = f"{place} > (?, ?, ?) AND {place} <= (?, ?, ?)", [f"project {way}", f"tenant {way}"]
        bounds: list[Any] = [project, tenant, after, project, tenant, (1 << 63) - 1]
    else:
        blocks, order = "(tenant, last) > (?, ?) AND (tenant, last) <= (?, ?)", [f"tenant {way}"]
        bounds = [tenant, after, tenant, (1 << 63) - 1]
    # Without another filter each block has an event to return, except perhaps the one that `after` lies in. A cursor
    # that is far behind must not make the server sort the rest of the log.
    most = [limit + 1] if where.keys() <= {"project"} and (not where or isinstance(project, str)) else []
    text = _ALL.format(
        s=dialect.schema, blocks=blocks, order=", ".join([*order, f"last {way}"]), most=" LIMIT ?" if most else "",
        way=way, events=events,
    )  # fmt: skip
    return text, [*bounds, *most, after, *values, limit]


def _claims_of(where: Where) -> Where:
    """The filter of claims, where the events are found by the claims that keep their sequences."""
    if not isinstance(where.get("project"), str):
        return {}
    asked = {name: where[name] for name in ("task", "session") if name in where}
    return {"project": where["project"], **asked} if asked else {}


# --- details and patches ---


@cache
def reader() -> Callable[[Sequence[Any]], Event]:
    """Makes an event from a row of `finding`. The sealer reads every event, so each microsecond here counts."""
    texts = {"str", "json"}
    plain = [name for name in _FIELDS if _CODEC.by_name[name].type not in texts]
    place = {name: n for n, name in enumerate((*_FIELDS, *_BESIDE))}
    numbers = {place[name] for name in (*plain, "form", "seed", "place", "size")}
    texts_at = [n for n in range(len(place)) if n not in numbers]
    texts_of = itemgetter(*texts_at)
    beside, build, kind, form = len(_FIELDS), builder(Event, columns_of(Event)), place["kind"], place["form"]
    at = Event.__struct_fields__.index("details")  # the patch is next to it

    def read(row: Sequence[Any]) -> Event:
        if "\x01" in "".join(filter(None, texts_of(row))):
            row = [shown(v) if n not in numbers and v is not None else v for n, v in enumerate(row)]
        if row[form] not in FORMS:
            raise ValueError(f"its block has the form {row[form]}, which this version does not know")
        values = list(row[:beside])
        values[at:at] = _BUILD[row[kind]](values, _Beside._make(row[beside:]))
        return build(values)

    return read


@lru_cache(maxsize=16)
def _ids(time: int, seed: bytes) -> IdMaker:
    """The ids of one block: its events are read one after another. `nth` changes nothing."""
    return IdMaker(time, seed)


class _Beside(NamedTuple):
    """The values of `_BESIDE`."""

    user: str | None
    request_id: str | None
    request_hash: str | None
    said: str | None
    facts: str
    epoch: str | None
    summary: str | None
    form: int
    seed: bytes | None
    place: int
    size: int

    def ids(self, time: int) -> IdMaker:
        """The caller's maker of ids: as many of events as the block has, then of commands, then of results."""
        if self.seed is None:
            raise ValueError("its block has no seed to make its id with")
        return _ids(time, self.seed)


_Built = tuple[dict[str, Any], tuple[tuple[str, str, dict[str, Any]], ...]]
_ID, _KEY, _PREVIOUS, _CAUSE = map(_FIELDS.index, ("id", "key", "previous_state", "causation_id"))
_of_claim = itemgetter(*map(_FIELDS.index, ("time", "project", "task", "version", "generation", "agent", "session")))


def _claimed(fields: list[Any], beside: _Beside) -> _Built:
    now, project, task, version, generation, agent, session = _of_claim(fields)
    attempt, run, lease, *first = map(int, beside.facts.split(","))
    if beside.form > 1:
        ids = beside.ids(now)
        fields[_ID] = ids.nth("evt", beside.place)
        fields[_CAUSE] = ids.nth("cmd", beside.size + first[0])  # one that was granted several tasks
        fields[_PREVIOUS] = "ready"
    epoch = beside.epoch
    moved = {
        "state": "claimed", "generation": generation, "attempts": attempt, "agent": agent, "session": session,
        "claimed_at": now, "claim_epoch": epoch, "updated_at": now, "version": version,
    }  # fmt: skip
    claim = {
        "id": f"{task}@{generation}", "task": task, "generation": generation, "run": run, "attempt": attempt,
        "epoch": epoch, "agent": agent, "session": session, "acquired_at": now, "project": project, "lease": lease,
    }  # fmt: skip
    for name in ("user", "request_id", "request_hash"):
        if (given := getattr(beside, name)) is not None:
            claim[name] = given
    details = {"lease_until": now + lease, "attempt": attempt, "previous_generation": generation - 1}
    return details, (("task", task, moved), ("claim", claim["id"], claim))


def _completed(fields: list[Any], beside: _Beside) -> _Built:
    now, project, task, version, generation, agent, session = _of_claim(fields)
    facts = beside.facts
    *counted, product_tail = facts.split(",") if facts.count(",") > 3 else [*facts.split(","), ""]
    run, acquired_at, renewals, starts = map(int, counted)
    if beside.form > 1:
        ids = beside.ids(now)
        fields[_ID] = ids.nth("evt", beside.place)
        fields[_CAUSE] = ids.nth("cmd", beside.size + beside.place)
        fields[_PREVIOUS] = fields[_PREVIOUS] or ("claimed" if starts else "running")
        given = _result(beside, project, ids.nth("result", 2 * beside.size + beside.place))
    else:
        given = msgspec.json.decode(beside.said or "")
    # Older results have six digits of the submitted data's digest, not of their id.
    product = f"wp-{fields[_KEY]}-gen{generation}-{product_tail or given['digest'][:6]}"
    moved = {
        "state": "completed", "agent": None, "session": None, "claimed_at": None, "claim_epoch": None, "percent": 100,
        "work_product": product, "completed_at": now, "updated_at": now, "version": version,
    }  # fmt: skip
    if starts:
        moved["started_at"] = now
    result = {
        "task": task, "run": run, "generation": generation, "submitted_at": now, "processing": now - acquired_at,
        "accepted": True, "reason": "ACCEPTED", "work_product": product, "session": session,
        "agent": agent, "user": beside.user,
    }  # fmt: skip
    claim = {"state": "released", "reason": "COMPLETED", "released_at": now, "renewals": renewals or None,
             "result_accepted": True, "work_product": product}  # fmt: skip
    details = {
        "result": given["id"], "work_product": product, "late": False, "duration_ms": (now - acquired_at) // 1000,
    }  # fmt: skip
    return details, (
        ("task", task, moved),
        ("result", given["id"], _set_fields(result) | given),
        ("claim", f"{task}@{generation}", _set_fields(claim)),
    )


def _result(beside: _Beside, project: str, id: str) -> dict[str, Any]:
    """The fields of a result that its submit has given."""
    encoded = b"null" if beside.said is None else beside.said.encode()
    given = {"id": id, "project": project, "size": len(encoded), "digest": hashlib.sha256(encoded).hexdigest()[:32]}
    if beside.said is not None:
        given["data"] = msgspec.json.decode(encoded)
    return given | _set_fields({"summary": beside.summary or None, "request_id": beside.request_id})


def _set_fields(row: dict[str, Any]) -> dict[str, Any]:
    """Without None: a patch leaves defaults out."""
    return {name: value for name, value in row.items() if value is not None}


_BUILD: dict[str, Callable[[list[Any], _Beside], _Built]] = {CLAIMED: _claimed, COMPLETED: _completed}
