"""The engine: a batch of commands in, one outcome each, one transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tenure.core import commands, inputs, limits
from tenure.core.commands import OWNER, Command, Principal
from tenure.core.errors import ClockJump, Conflict, InvalidInput, TenureError, TooLarge
from tenure.core.ids import FREEZES
from tenure.core.outcomes import Outcome
from tenure.core.records import Project, Request, Row, Track, replace
from tenure.core.roles import check_tenant
from tenure.engine.checks.evidence import NOTHING, Evidence, Finding, NeedsEvidence, collect
from tenure.engine.runtime.batch_reads import queries_of, read_ahead, rows_of
from tenure.engine.runtime.context import DEFAULT, Context, Random
from tenure.engine.runtime.decision import decided, is_known, remembered_row
from tenure.engine.runtime.effects import PAGE, Report, settle_due, settle_overdue
from tenure.engine.runtime.rows import BY_ID, Wanted
from tenure.engine.runtime.unit_of_work import Answer, Deferred, NeedsMoreLocks, Reply, RunAgain, UnitOfWork
from tenure.stores.port import FAST_PATH, HOLDERS, SCHEMAS, SNAPSHOTS, TENANTS, Asked, Store, Transaction

if TYPE_CHECKING:
    from tenure.engine.runtime.clock_repair import Accepted
    from tenure.engine.runtime.epoch import Begun
    from tenure.engine.runtime.fast_path import FastRunner

T = TypeVar("T")
TRIES = 10  # attempts of a transaction whose rows changed meanwhile
TRIES_OF_A_PART = 2  # for each part, after the whole batch has failed
MOST_TURNS = limits.RESTARTS
MOST_RUNS = 4  # of like commands in a batch that keeps its order: each is a call
MOST_APART = 8  # odd commands of a batch that others do not wait for
ROUNDS_APART = 3  # attempts without those that were odd in the one before
ROUNDS = 5  # of collecting evidence: each round may need something else


class CheckedCommand(msgspec.Struct, frozen=True):
    """A checked command and its principal."""

    item: inputs.Checked
    principal: Principal
    evidence: Evidence = NOTHING  # collected so far


def checked_command(command: Command, principal: Principal = OWNER) -> CheckedCommand:
    """Check the command and prepare it for `Engine.run_checked`; raises on invalid input. Touches no store."""
    if not is_known(type(command)):
        raise InvalidInput(f"{type(command).__name__} is not a command")
    return CheckedCommand(inputs.validated(command), principal)


class Engine:
    """Runs commands on a store. Synchronous, safe to share between threads."""

    def __init__(self, store: Store, random: Random, context: Context = DEFAULT) -> None:
        self.store, self.random = store, random
        self.context = replace(
            context, keeps_tenants=TENANTS in store.features, keeps_schemas=SCHEMAS in store.features
        )
        self.tenant = context.tenant
        self._by_receipt = HOLDERS in store.features
        self._default_tracks: dict[str, str] = {}  # as last read: a hint
        # The fast path knows the limits of projects, not those of tenants.
        is_fast = context.fast_path and context.limits is None and FAST_PATH in store.features
        self._fast = _fast_runner(self) if is_fast else None
        self._with_store_lock: set[str] = set()  # projects whose transactions also write rows of the store
        self._of_copies = threading.Lock()  # held while beginning a copy's epoch
        self._enter_copy()

    # --- commands ---

    def do(self, command: Command, principal: Principal = OWNER) -> Outcome:
        """Return the outcome of one command, or raise its error."""
        (answer,) = self.run((command,), principal)
        if isinstance(answer, TenureError):
            raise answer
        return answer

    def run(self, batch: Sequence[Command], principal: Principal = OWNER) -> list[Answer]:
        """One outcome or error for each command, as if run one by one, in one transaction or a few.

        An error of one command leaves no trace of it and does not touch the others.
        """
        if len(batch) > inputs.MOST_COMMANDS:
            raise TooLarge(f"a batch may have at most {inputs.MOST_COMMANDS} commands (got {len(batch)})")
        checked = [_checked_or_error(command, principal) for command in batch]
        answers = iter(self.run_checked([c for c in checked if isinstance(c, CheckedCommand)]))
        return [next(answers) if isinstance(c, CheckedCommand) else c for c in checked]

    def run_checked(self, batch: Sequence[CheckedCommand]) -> list[Answer]:
        """As `run`, for commands that were checked before, each with its own principal."""
        self._check_batch(batch)
        return final_answers(self._run_in_order(batch)) if batch else []

    def commit_checked(self, batch: Sequence[CheckedCommand], callers: Sequence[Hashable]) -> list[Reply]:
        """As `run_checked`, but some answers are built later: the store is free for the next batch meanwhile.

        A command that needs evidence does not delay other callers: it is left out together with the later commands of
        its caller, and RunAgain takes the place of its answer. `callers` has one entry for each command.
        """
        self._check_batch(batch)
        replies: dict[int, Reply] = {}
        if self._fast is not None and not self.store.is_copy:
            replies = self._run_apart(batch, callers)
        rest = [n for n in range(len(batch)) if n not in replies]
        if rest:
            if self._fast is not None:
                # Callers have no order among each other. Those who only send results go first: these are written
                # together.
                mixed = {callers[n] for n in rest if not isinstance(batch[n].item.command, commands.Submit)}
                rest.sort(key=lambda n: callers[n] in mixed)
            others = self._commit_ordinary([batch[n] for n in rest], [callers[n] for n in rest])
            replies |= zip(rest, others, strict=True)
        return [replies[n] for n in range(len(batch))]

    def _commit_ordinary(self, batch: Sequence[CheckedCommand], callers: Sequence[Hashable]) -> list[Reply]:
        def check(replies: Sequence[Reply]) -> None:
            lacking = {n: r for n, r in enumerate(replies) if isinstance(r, RunAgain) and r.questions}
            first = {callers[n]: n for n in reversed(lacking)}
            if any(caller in first and n > first[caller] and n not in lacking for n, caller in enumerate(callers)):
                raise _OutOfOrder(first, lacking)

        try:
            return self._run_part(batch, TRIES, check)
        except _OutOfOrder as error:  # nothing was written
            first, lacking = error.first, error.lacking
        kept = [n for n, caller in enumerate(callers) if n < first.get(caller, len(batch))]
        done = iter(self._commit_ordinary([batch[n] for n in kept], [callers[n] for n in kept]) if kept else ())
        return [next(done) if n in kept else lacking.get(n, RunAgain()) for n in range(len(batch))]

    def _check_batch(self, batch: Sequence[CheckedCommand]) -> None:
        if len(batch) > inputs.MOST_COMMANDS:
            raise TooLarge(f"a batch may have at most {inputs.MOST_COMMANDS} commands (got {len(batch)})")
        if sum(len(a.item.encoded) for a in batch) > inputs.LARGEST_BATCH:
            raise TooLarge(f"a batch may have at most {inputs.LARGEST_BATCH} bytes")
        for asked in batch:
            check_tenant(asked.principal, self.tenant)
        self.check_open()

    # --- the fast path ---

    def _run_in_order(self, batch: Sequence[CheckedCommand], *, again: bool = True) -> list[Reply]:
        """By the fast path as far as it goes, in the order of the commands; `again`: also around odd ones."""
        groups = None if self._fast is None or self.store.is_copy else _runs(batch)
        if self._fast is None or groups is None:
            return self._run_part(batch, TRIES)
        from tenure.engine.runtime.fast_path import kind_of
        from tenure.stores.fast_path import Unusual  # as below

        if not all(self._fast.tries(kind_of(group[0].item.command)) for group in groups):
            return self._run_part(batch, TRIES)
        try:
            done = self._fast.run(groups)
        except Unusual as unusual:
            first = sum(map(len, groups[: unusual.call]))
            odd = [first + n for n in unusual.which]
            # Several results go on together: what follows for other tasks is done in the transaction that writes them.
            is_of_results = isinstance(batch[0].item.command, commands.Submit) and len(groups) == 1
            if not again or not odd or len(odd) > (1 if is_of_results else MOST_APART):
                return self._run_part(batch, TRIES)
            replies: list[Reply] = []
            for n in odd:
                if len(replies) < n:
                    replies += self._run_in_order(batch[len(replies) : n], again=False)
                if unusual.why == "few":
                    break
                replies += self._run_part(batch[n : n + 1], TRIES)
            rest = batch[len(replies) :]
            if rest and unusual.why == "few":
                return replies + self._run_part(rest, TRIES)
            return replies + (self._run_in_order(rest, again=False) if rest else [])
        except TenureError as error:
            return [error] * len(batch)
        return [reply for group in done for reply in group]

    def _run_apart(self, batch: Sequence[CheckedCommand], callers: Sequence[Hashable]) -> dict[int, Reply]:
        """By the fast path, what may take it: commands of callers who sent no others with them have no order."""
        from tenure.engine.runtime.fast_path import kind_of
        from tenure.stores.fast_path import Unusual

        assert self._fast is not None
        kinds = [kind_of(asked.item.command) for asked in batch]
        of_caller: dict[Hashable, set[Any]] = {}
        for kind, caller in zip(kinds, callers, strict=True):
            of_caller.setdefault(caller, set()).add(kind)
        tried = {kind for kind in {*kinds} if kind is not None and self._fast.tries(kind)}
        odd = {caller for caller, sent in of_caller.items() if len(sent) > 1 or not sent <= tried}
        for _ in range(ROUNDS_APART):
            groups: dict[Any, list[int]] = {}
            for n, kind in enumerate(kinds):
                if callers[n] not in odd:
                    groups.setdefault(kind, []).append(n)
            if not groups:
                break
            numbers = list(groups.values())
            try:
                done = self._fast.run([[batch[n] for n in group] for group in numbers])
            except Unusual as unusual:
                group = numbers[unusual.call]
                which = range(unusual.which[0], len(group)) if unusual.why == "few" else unusual.which
                odd |= {callers[group[n]] for n in which or range(len(group))}
                continue
            except TenureError as error:
                return dict.fromkeys((n for group in numbers for n in group), error)
            return {n: r for group, found in zip(numbers, done, strict=True) for n, r in zip(group, found, strict=True)}
        return {}

    # --- the ordinary path ---

    def _run_part(
        self, batch: Sequence[CheckedCommand], tries: int, check: Callable[[Sequence[Reply]], None] | None = None
    ) -> list[Reply]:
        """`check` gets the replies before they are committed, and may raise; without it all evidence is collected."""
        projects = sorted({a.item.command.project for a in batch})
        has_begun = False

        def decide(work: UnitOfWork) -> list[Reply]:
            nonlocal has_begun
            has_begun = True
            replies = self._decide(work, batch, stamps)
            found = [row for name in projects if (row := work.peek(Project, name, name)) is not None]
            self._default_tracks.update({row.id: row.default_track for row in found})
            (check or _raise_needs)(replies)
            return replies

        stamps = 0 if self._fast is None else self._fast.leading(batch)
        known = {key: found for a in batch for key, found in a.evidence.items()}
        ahead = self._queries(batch[stamps:]) if self._by_receipt else ()
        try:
            replies = self.transact(projects, decide, claiming=_claims(batch), tries=tries, ahead=ahead, evidence=known)
        except TenureError as error:
            # A failure before the first command was examined concerns none of them.
            if len(batch) == 1 or not error.definite or not has_begun or isinstance(error, ClockJump):
                return [error] * len(batch)
            # The store refused the whole batch: find the failing command, so that the others succeed.
            half = len(batch) // 2
            return self._run_part(batch[:half], TRIES_OF_A_PART) + self._run_part(batch[half:], TRIES_OF_A_PART)
        return [self._finished(*pair) for pair in zip(batch, replies, strict=True)]

    def _finished(self, asked: CheckedCommand, reply: Reply) -> Reply:
        """The reply to a command that one transaction could not finish: run it again until it is done."""
        if not isinstance(reply, RunAgain) or reply.so_far is None:
            return reply
        answer: Reply = reply.so_far
        try:
            for _ in range(MOST_TURNS):
                (reply,) = self.transact(
                    (asked.item.command.project,), lambda work: self._decide(work, (asked,)), claiming=_claims((asked,))
                )
                if not isinstance(reply, RunAgain) or reply.so_far is None:
                    return reply
                answer = reply.so_far
        except TenureError as error:
            return error
        return answer

    def _queries(self, batch: Sequence[CheckedCommand]) -> list[Asked]:
        """The queries that a transaction of these commands begins with."""
        given = [a.item.command for a in batch]
        return queries_of(given, self._rows(batch), by_receipt=self._by_receipt)

    def _rows(self, batch: Sequence[CheckedCommand]) -> list[Wanted]:
        """The rows that the batch is sure to read."""
        requests: dict[str, dict[str, None]] = {}
        tracks: dict[str, dict[str, None]] = {}
        for asked in batch:
            command = asked.item.command
            if (row := remembered_row(asked.item, asked.principal)) is not None:
                requests.setdefault(command.project, {})[row] = None
            if isinstance(command, commands.Add) and (
                track := command.task.track or self._default_tracks.get(command.project)
            ):
                tracks.setdefault(command.project, {})[track] = None
        own: list[tuple[type[Row], dict[str, dict[str, None]]]] = [(Request, requests), (Track, tracks)]
        return [
            *rows_of(a.item.command for a in batch),
            *(Wanted(BY_ID, kind, project, "id", tuple(ids)) for kind, of in own for project, ids in of.items()),
        ]

    def _decide(self, work: UnitOfWork, batch: Sequence[CheckedCommand], stamps: int = 0) -> list[Reply]:
        """`stamps`: how many of the first are results that the store may write by one call."""
        work.expected_claims = sum(isinstance(a.item.command, commands.ClaimNext) for a in batch)
        stamped = {}
        if self._fast is not None and stamps and work.is_untouched:
            stamped = self._fast.stamp(work, batch[:stamps])
        left = [a for n, a in enumerate(batch) if n not in stamped]
        if stamps and left:  # their reads were not announced
            work.tx.expect(self._queries(left))
        if self._by_receipt or len(left) > 1:
            read_ahead(work, [a.item.command for a in left], self._rows(left), by_receipt=self._by_receipt)
        replies: list[Reply] = []
        for n, asked in enumerate(batch):
            if work.overdue:
                settle_overdue(work)
            turn = stamped.get(n)
            replies.append(decided(work, asked.item, asked.principal) if turn is None else turn())
        return replies

    def preview(self, batch: Sequence[Command], principal: Principal = OWNER) -> list[Answer]:
        """What `run` would answer now: decided on rows that are never saved."""
        check_tenant(principal, self.tenant)
        self.check_open()
        checked = [_checked_or_error(command, principal) for command in batch]
        good = [c for c in checked if isinstance(c, CheckedCommand)]
        answers = iter([_without_secrets(answer) for answer in final_answers(self._previewed(good))])
        return [next(answers) if isinstance(c, CheckedCommand) else c for c in checked]

    def _previewed(self, batch: Sequence[CheckedCommand]) -> list[Reply]:
        known: dict[str, Finding] = {}

        def decide(work: UnitOfWork) -> list[Reply]:
            work.evidence = known
            work.context = replace(work.context, open_store=None)  # opening one creates its tables
            return self._decide(work, batch)

        for _ in range(ROUNDS):
            replies = self.read_settled(sorted({a.item.command.project for a in batch}), decide)
            try:
                _raise_needs(replies)
                return replies
            except NeedsEvidence as lacking:
                known |= collect(lacking.questions)
        raise Conflict("the rows kept changing while the command ran; nothing was done")

    # --- transactions ---

    def transact(
        self,
        projects: Sequence[str],
        decide: Callable[[UnitOfWork], T],
        *,
        claiming: Sequence[str] = (),
        settled: bool = True,
        tries: int = TRIES,
        ahead: Sequence[Asked] = (),
        evidence: Evidence | None = None,
        begins_epoch: bool = False,
    ) -> T:
        """Run `decide` in one write transaction, after settling due rows; run it again where rows changed.

        `ahead`: the queries that it begins with, for stores that can use them. Evidence that `decide` needs is
        collected after the transaction has ended with nothing written; then it runs again. Only with `begins_epoch` may
        it write to a copy without its own epoch: a store may prove to be a copy whenever it is opened again.
        """
        tried = rounds = 0
        self._refresh_limits()
        known = dict(evidence or ())
        locked = list(projects) if self._with_store_lock.isdisjoint(projects) else sorted({"", *projects})
        while True:
            try:
                with self.store.begin(self.tenant, write=True) as tx:
                    if self.store.is_copy and not begins_epoch:
                        raise _Copied
                    tx.lock("write", locked)  # before `now` is read, so that times follow locks
                    tx.lock("claim", claiming)
                    if ahead:
                        tx.expect(ahead)
                    work = self._begin(tx)
                    self._check_writable(work, begins_epoch=begins_epoch)
                    work.evidence, work.locked = known, frozenset(locked)
                    report = Report()
                    if settled:
                        settle_due(work, projects, report, limit=PAGE)
                    if report.more and report.settled:
                        work.save()  # many due rows are settled in separate transactions before the batch
                        continue
                    answer = decide(work)
                    work.save(last=True)
                return answer
            except _Copied:
                self._enter_copy()
            except NeedsMoreLocks as more:
                locked = sorted({*locked, *more.projects})
                if more.is_lasting:
                    self._with_store_lock.update(projects)
            except NeedsEvidence as lacking:
                rounds += 1
                if rounds > ROUNDS:
                    raise Conflict("the rows kept changing while the command ran; nothing was done") from None
                known |= collect(lacking.questions)
            except Conflict:
                tried += 1
                if tried == tries:
                    raise
                self.context.pause(0.001 * 2**tried * (0.5 + self.random.fraction()))

    def check_open(self) -> None:
        """NotFound where the engine's tenant is closed: also for processes that were in it before."""
        if self.context.limits is not None:
            self.context.limits.check_open()

    def _refresh_limits(self) -> None:
        """Outside of a transaction: the tenant's row is in another tenant."""
        if self.context.limits is not None:
            self.context.limits.refresh()

    def _begin(self, tx: Transaction) -> UnitOfWork:
        """Runs first in a write transaction, before settling; a leader proves its term here: see `LeaderEngine`."""
        return UnitOfWork(tx, self.random, self.context)

    def _check_writable(self, work: UnitOfWork, *, begins_epoch: bool) -> None:
        """Raises NotHome where the tenant's home is elsewhere, TenantMoving where it is frozen in this store.

        A new epoch of a frozen tenant is frozen too: see `engine/tenant_move.py`.
        """
        if self.context.elsewhere is not None:
            raise self.context.elsewhere()
        if FREEZES in work.epoch and not begins_epoch:
            from tenure.core.tenant_moves import check_writable  # few tenants move; keeps startup fast

            check_writable(work.epoch)

    def mark(self) -> int:
        """The last event of this engine's tenant, for `wait`."""
        return self.store.mark(self.tenant)

    def wait(self, mark: int, timeout: float) -> bool:
        """True as soon as this tenant has an event beyond `mark`, False after `timeout` seconds."""
        return bool(self.store.wait({self.tenant: mark}, timeout))

    def sweep(self, project: str | None = None) -> Report:
        """Settle due rows, in one project or all. Makes events prompt; no answer depends on it."""
        from tenure.engine.duties.sweep import projects, sweep  # here and below: a single command does not need it

        total = Report()
        for name in [project] if project is not None else projects(self):
            total.add(sweep(self, name))
        return total

    def new_epoch(self, why: str, *, alone: bool = False) -> Begun:
        """End every live claim and void all receipts so far, in all tenants of the store; `alone`: in its own."""
        from tenure.engine.runtime.epoch import Begun, begin_epoch, begin_epochs

        return Begun(begin_epoch(self, why), (self.tenant,)) if alone else begin_epochs(self, why)

    def accept_clock(self) -> Accepted:
        """Accept the host's clock, and correct rows written while it was ahead."""
        from tenure.engine.runtime.clock_repair import accept_clock

        return accept_clock(self)

    def _enter_copy(self) -> None:
        if self.store.is_copy:
            with self._of_copies:
                if self.store.is_copy:  # unless another thread was first
                    self.new_epoch(
                        "the store is a copy: another file than at its last opening, or an older state of it",
                        alone=True,  # the other tenants get theirs by `settled_here`
                    )

    def verify(self, *, with_replay: bool = True) -> list[str]:
        """The faults of the whole store; empty when every invariant holds. Reads everything."""
        from tenure.engine.verify import verify

        return verify(self, with_replay=with_replay)

    def read(self, ask: Callable[[Transaction], T], *, follows: bool = False) -> T:
        """The answer of `ask`, from rows of one moment; nothing is written. `follows`: it follows the log.

        A store without snapshots raises Conflict where rows changed during the read: then `ask` runs again.
        """
        tried = 0
        while True:
            try:
                with self.store.begin(self.tenant, write=False) as tx:
                    if follows:
                        tx.lock("log", ())
                    return ask(tx)
            except Conflict:
                tried += 1
                if tried == TRIES or SNAPSHOTS in self.store.features:
                    raise
                self.context.pause(0.001 * 2**tried * (0.5 + self.random.fraction()))

    def read_settled(self, projects: Sequence[str], ask: Callable[[UnitOfWork], T], *, follows: bool = False) -> T:
        """As `read`, from the rows of these projects brought up to `now`."""
        self._enter_copy()
        self._refresh_limits()

        def settled(tx: Transaction) -> T:
            work = UnitOfWork(tx, self.random, self.context)
            settle_due(work, projects, Report())
            return ask(work)

        return self.read(settled, follows=follows)


class _Copied(Exception):
    """The store is a copy without its own epoch."""


class _OutOfOrder(Exception):
    """A command was decided although an earlier one of its caller needs evidence: `lacking`, each caller's `first`."""

    def __init__(self, first: dict[Hashable, int], lacking: dict[int, RunAgain]) -> None:
        super().__init__()
        self.first, self.lacking = first, lacking


def _fast_runner(engine: Engine) -> FastRunner:
    from tenure.engine.runtime.fast_path import FastRunner  # only a store with a fast path needs it

    return FastRunner(engine.store, engine.random, engine.context)


def _runs(batch: Sequence[CheckedCommand]) -> list[list[CheckedCommand]] | None:
    """Runs of like commands in their order; None where they are too many, or one is not hot."""
    from tenure.engine.runtime.fast_path import kind_of

    runs: list[list[CheckedCommand]] = []
    last: Any = None
    for asked in batch:
        kind = kind_of(asked.item.command)
        if kind is None:
            return None
        if kind != last:
            runs.append([])
            last = kind
        runs[-1].append(asked)
    return runs if len(runs) <= MOST_RUNS else None


def _checked_or_error(command: Command, principal: Principal) -> CheckedCommand | TenureError:
    try:
        return checked_command(command, principal)
    except TenureError as error:
        return error


def _raise_needs(replies: Sequence[Reply]) -> None:
    """Raise one NeedsEvidence for all questions among these replies, if there are any."""
    lacking = {q.key: q for reply in replies if isinstance(reply, RunAgain) for q in reply.questions}
    if lacking:
        raise NeedsEvidence(tuple(lacking.values()))


def _without_secrets(answer: Answer) -> Answer:
    """Of a preview: who has not claimed the task holds none of its secrets."""
    if isinstance(answer, TenureError) or (answer.secrets is None and answer.claims is None):
        return answer
    parts = None if answer.claims is None else tuple(replace(one, secrets=None) for one in answer.claims)
    return replace(answer, secrets=None, claims=parts)


def final_answers(replies: Sequence[Reply]) -> list[Answer]:
    return [_final(reply) for reply in replies]


def _final(reply: Reply) -> Answer:
    if isinstance(reply, Deferred):
        answer: Answer = reply.tell()
        return answer
    if isinstance(reply, RunAgain):  # a preview: it runs once
        assert reply.so_far is not None
        return reply.so_far
    return reply


def _claims(batch: Sequence[CheckedCommand]) -> Sequence[str]:
    claiming = (commands.ClaimTask, commands.ClaimNext)
    return sorted({a.item.command.project for a in batch if isinstance(a.item.command, claiming)})
