"""The engine: a batch of commands in, one outcome each, one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from tenure.core import commands, inputs, roles
from tenure.core.commands import OWNER, Command, Principal
from tenure.core.errors import Bug, Conflict, InvalidInput, StoreError, TenureError, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.records import Project
from tenure.engine import requests
from tenure.engine.handlers import handler_of, is_known
from tenure.engine.settling import PAGE, Report, settle_due, settle_overdue
from tenure.engine.work import OUR_FAULTS, Chance, Refused, Work
from tenure.stores.port import Store

Answer = Outcome | TenureError
T = TypeVar("T")
TRIES = 10  # of a whole transaction whose rows changed under it


class Engine:
    """Runs commands on a store. Synchronous, safe to share between threads."""

    def __init__(
        self, store: Store, chance: Chance, *, tenant: str = "local", pause: Callable[[float], None] = lambda _: None
    ) -> None:
        """`pause` waits between tries of a transaction; the clock is the store's."""
        self.store = store
        self.chance = chance
        self.tenant = tenant
        self._pause = pause
        if store.is_copy:
            self.new_epoch("the store was found at another place than at its last opening")

    # --- commands ---

    def do(self, command: Command, principal: Principal = OWNER) -> Outcome:
        """The outcome of one command; its error is raised."""
        (answer,) = self.run((command,), principal)
        if isinstance(answer, TenureError):
            raise answer
        return answer

    def run(self, batch: Sequence[Command], principal: Principal = OWNER) -> list[Answer]:
        """One outcome or error for each command, as if run one by one at one `now`, in one transaction.

        An error of one command leaves no trace of it and does not touch the others.
        """
        if len(batch) > inputs.MOST_COMMANDS:
            raise TooLarge(f"a batch of {len(batch)} commands; at most {inputs.MOST_COMMANDS}")
        checked = [_checked(command) for command in batch]
        if sum(len(c.encoded) for c in checked if isinstance(c, inputs.Checked)) > inputs.LARGEST_BATCH:
            raise TooLarge(f"a batch of more than {inputs.LARGEST_BATCH} bytes")
        good = [c for c in checked if isinstance(c, inputs.Checked)]
        answers = iter(self._run_checked(good, principal) if good else ())
        return [next(answers) if isinstance(c, inputs.Checked) else c for c in checked]

    def _run_checked(self, batch: Sequence[inputs.Checked], principal: Principal) -> list[Answer]:
        projects = sorted({c.command.project for c in batch})
        try:
            return self.transact(projects, lambda work: self._decide(work, batch, principal), claiming=_claims(batch))
        except StoreError as error:
            # The store refused the whole: find the command it stumbles over, so that its neighbours are served.
            if len(batch) == 1 or not error.definite or isinstance(error, Conflict):
                return [error] * len(batch)
            half = len(batch) // 2
            return self._run_checked(batch[:half], principal) + self._run_checked(batch[half:], principal)

    def _decide(self, work: Work, batch: Sequence[inputs.Checked], principal: Principal) -> list[Answer]:
        work.expected_claims = sum(isinstance(c.command, commands.ClaimNext) for c in batch)
        answers = []
        for item in batch:
            settle_overdue(work)
            answers.append(self._decide_one(work, item, principal))
        return answers

    def _decide_one(self, work: Work, item: inputs.Checked, principal: Principal) -> Answer:
        command = item.command
        work.begin_command(principal, command.trace_id)
        bookmark = work.bookmark()
        try:
            project = work.get(Project, command.project, command.project)
            roles.check_role(principal, command, agents_may_operate=project is not None and project.agents_may_operate)
            remembered = requests.remembered(work, item, principal)
            if remembered is not None:
                return remembered
            outcome = handler_of(type(command))(work, command)
            requests.remember(work, item, principal, outcome)
            return outcome
        except StoreError:
            raise
        except Refused as refusal:
            work.undo_to(bookmark)
            return refusal.outcome
        except TenureError as error:
            work.undo_to(bookmark)
            return error
        except OUR_FAULTS as error:
            work.undo_to(bookmark)
            bug = Bug(
                f"{type(command).__name__}: {type(error).__name__}: {error}", "nothing was done; please report this"
            )
            bug.__cause__ = error
            return bug

    def preview(self, batch: Sequence[Command], principal: Principal = OWNER) -> list[Answer]:
        """What `run` would answer now: decided on rows that are never saved."""
        checked = [_checked(command) for command in batch]
        good = [c for c in checked if isinstance(c, inputs.Checked)]
        with self.reading(sorted({c.command.project for c in good})) as work:
            answers = iter(self._decide(work, good, principal))
        return [next(answers) if isinstance(c, inputs.Checked) else c for c in checked]

    # --- transactions ---

    def transact(
        self,
        projects: Sequence[str],
        decide: Callable[[Work], T],
        *,
        claiming: Sequence[str] = (),
        settled: bool = True,
    ) -> T:
        """Run `decide` in one write transaction, after settling what is due; run it again where rows changed."""
        tries = 0
        while True:
            try:
                with self.store.begin(self.tenant, write=True) as tx:
                    if claiming:
                        tx.lock("claim", claiming)
                    work = Work(tx, self.chance)
                    report = Report()
                    if settled:
                        settle_due(work, projects, report, limit=PAGE)
                    if report.more and report.settled:
                        work.save()  # a crowd of due rows is settled in transactions of its own, before the batch
                        continue
                    answer = decide(work)
                    work.save()
                return answer
            except Conflict:
                tries += 1
                if tries == TRIES:
                    raise
                self._pause(0.001 * 2**tries * (0.5 + self.chance.fraction()))

    def sweep(self, project: str | None = None) -> Report:
        """Settle what is due, in one project or all. Makes events prompt; no answer depends on it."""
        from tenure.engine import upkeep  # here and below: what a single command does not need

        total = Report()
        for name in [project] if project is not None else upkeep.projects(self):
            report = upkeep.sweep(self, name)
            total.settled += report.settled
            total.failed |= report.failed
        return total

    def new_epoch(self, why: str) -> str:
        """End every live claim and void all receipts handed out so far."""
        from tenure.engine.epochs import begin_epoch

        return begin_epoch(self, why)

    def verify(self, *, with_replay: bool = True) -> list[str]:
        """What is wrong with the store as a whole; empty when every promise holds. Reads everything."""
        from tenure.engine.verifying import verify

        return verify(self, with_replay=with_replay)

    @contextmanager
    def reading(self, projects: Sequence[str] = ()) -> Iterator[Work]:
        """Rows brought up to `now` for a look; nothing is written."""
        with self.store.begin(self.tenant, write=False) as tx:
            work = Work(tx, self.chance)
            settle_due(work, projects, Report())
            yield work


def _checked(command: Command) -> inputs.Checked | TenureError:
    try:
        if not is_known(type(command)):
            raise InvalidInput(f"{type(command).__name__} is no command")
        return inputs.validated(command)
    except TenureError as error:
        return error


def _claims(batch: Sequence[inputs.Checked]) -> Sequence[str]:
    return sorted({c.command.project for c in batch if isinstance(c.command, (commands.Claim, commands.ClaimNext))})
