"""State that the slots of one runner share: options, whether new work may start, and how attempts ended."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.agents.runner.clis.cli import Cli
from tenure.agents.runner.outbox import Outbox
from tenure.config import Home
from tenure.core import limits
from tenure.core.commands import Totals
from tenure.core.outcomes import Outcome
from tenure.core.retry import TROUBLES_IN_A_ROW
from tenure.core.task_secrets import Hidden
from tenure.process_table import described

if TYPE_CHECKING:
    from tenure.agents.landings import Lander
    from tenure.client import Client

FOREVER, UNTIL_EMPTY, ONCE = "forever", "until empty", "once"
MOST_REMEMBERED = limits.RUN_SUMMARY


class Options(NamedTuple):
    cli: Cli
    program: str  # path of the agent's program
    name: str  # agents are named NAME-1, NAME-2, …, or from a later number on
    home: Home
    project: str
    folder: str  # where agents work
    environ: Mapping[str, str]
    slots: int = 1
    first: int = 0  # other runners have the numbers up to this one
    checkout: str | None = None  # whose worktrees attempts get as soon as somebody else works in it
    extra: tuple[str, ...] = ()
    model: str | None = None
    route: bool = False  # use the model that a claim recommends
    filters: Mapping[str, Any] = {}
    mode: str = FOREVER
    most_tasks: int | None = None
    timeout: float = limits.RUN_TIMEOUT
    lease: float | str = limits.LEASE  # seconds, or `auto`
    heartbeat: float = limits.AGENT_HEARTBEAT
    grace: float = 5.0
    worktree: bool = False
    land: bool = False
    onto: str | None = None
    bwrap: str | None = None  # its path, where each agent runs in its own pid namespace
    prompt: str = ""  # added to every prompt
    spawn: str | None = None  # the id that a pool gave this process; it goes with every claim
    task: str | None = None  # the one task to claim
    sign: bool = False  # sign results with the user's key
    unpriced: bool = False  # work also where a budget in dollars cannot see the cost
    prices: str | None = None  # path of the user's price table

    def agent(self, number: int) -> str:
        """The name of an agent; a pool has named its one agent in full."""
        return self.name if self.spawn is not None else f"{self.name}-{self.first + number}"

    @property
    def names_model(self) -> bool:
        """Has the user named a model, by an option of the agent or by its environment variable?"""
        in_words = any(word.partition("=")[0] in ("--model", "-m") for word in self.extra)
        return in_words or bool(self.environ.get(self.cli.model_variable))


class AttemptEnd(NamedTuple):
    agent: str
    key: str
    generation: int
    what: str  # completed, failed, released, waiting, validating, stopped, refused, or kept (in the outbox)
    message: str = ""
    error_class: str | None = None
    retry_after: float | None = None
    transcript: str = ""
    seconds: float = 0.0
    usage: tuple[Totals, ...] = ()
    unknown_model: str | None = None  # the model of the claim, where the agent failed because it does not know it


class Shared:
    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self.options = options
        self.outbox = Outbox(options.home.folder, options.home.url, options.environ)
        self.process = described(os.getpid())
        self.draining = threading.Event()  # no new claims
        self.stopping = threading.Event()  # agents are ended too
        self.counts: Counter[str] = Counter()
        self.done: list[AttemptEnd] = []
        self.fatal: AttemptEnd | None = None  # the failure that keeps every agent of this kind from working here
        self.terminated: list[str] = []  # agents that an operator terminated
        self.denied: Outcome | None = None  # the pool's spawn of this process is over
        self.is_watched = False  # somebody sees what the agents do
        self.keeps_transcripts = True  # as artifacts; False where there is no artifact store
        self.unknown: set[str] = set()  # models of claims that the agent does not know; not used again
        self._given: dict[str, None] = {}  # secrets of the tasks of its agents, the latest last
        self._say = say
        self._lander: Lander | None = None
        self._mutex = threading.Lock()
        self._tickets = options.most_tasks
        self._troubled: str | None = None
        self._troubles = 0  # in a row, of all agents
        self._cool_until = 0.0
        self._limits = 0  # rate limits in a row

    def lander(self, client: Client) -> Lander:
        """Lands what waits in this repository, one result at a time; for the user who started the runner."""
        from tenure.agents.landings import Lander
        from tenure.agents.result_checker import tools_for

        with self._mutex:
            if self._lander is None:
                folder, environ = self.options.folder, self.options.environ
                self._lander = Lander(
                    client, folder, lambda: tools_for(folder, environ), mutex=threading.Lock(), say=self.say
                )
            return self._lander

    def say(self, text: str) -> None:
        with self._mutex:
            self._say(text)

    def hidden(self, secrets: Iterable[str]) -> Hidden:
        """Finds these in what an agent prints, and those that agents of this runner were given before."""
        with self._mutex:
            for secret in secrets:
                self._given.pop(secret, None)
                self._given[secret] = None
            for oldest in list(self._given)[: -limits.KNOWN_SECRETS]:
                del self._given[oldest]
            return Hidden(self._given)

    def take_ticket(self) -> bool:
        with self._mutex:
            if self._tickets is None:
                return True
            self._tickets -= 1
            return self._tickets >= 0

    # --- failures ---
    # The slots of a runner share its account and its machine. After a failure of those only one agent tries again:
    # the store would otherwise count the failures against one task after another.

    def may_claim(self, agent: str) -> bool:
        with self._mutex:
            return self._troubled in (None, agent) and time.monotonic() >= self._cool_until

    def ended(self, done: AttemptEnd) -> None:
        with self._mutex:
            self.counts[done.what] += 1
            if len(self.done) < MOST_REMEMBERED:
                self.done.append(done)
            if done.what == "completed":
                self._troubled, self._troubles, self._limits = None, 0, 0
            elif done.unknown_model is not None:
                self.unknown.add(done.unknown_model)  # the next attempts use the agent's default
            elif done.error_class == "rate_limit":
                self._limits += 1
                wait = 60.0 * 2 ** min(self._limits - 1, 5) if done.retry_after is None else done.retry_after
                self._cool_until = max(self._cool_until, time.monotonic() + wait)
            elif done.error_class == "auth_failure":
                self._give_up(done)
            elif done.error_class in ("environment", "upstream_timeout"):
                self._troubled = self._troubled or done.agent
                self._troubles += 1
                if self.options.mode != FOREVER and self._troubles >= TROUBLES_IN_A_ROW:
                    self._give_up(done)

    def _give_up(self, done: AttemptEnd) -> None:
        self.fatal = done
        self.draining.set()
