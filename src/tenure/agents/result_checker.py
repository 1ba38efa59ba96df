"""Validates results: takes a validation, runs its validator, submits the verdict, and renews the lease meanwhile.

`tenure done` does it for its own result; `run`, `daemon` and `serve` for every waiting one, by `ValidationThread`.
Commands and judges come from configuration that this user trusts: a cloned repository runs nothing. A check whose lease
is lost, or whose verdict is not needed any more, is ended; after a crash another process takes the check over when its
lease has expired.
"""

from __future__ import annotations

import copy
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.client import Client
from tenure.core import limits
from tenure.core.errors import InvalidInput, NotAllowed, StoreError, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.core.validation import BEFORE, NONE, REVIEW
from tenure.locations import shared_file

if TYPE_CHECKING:
    from tenure.agents.landings import Lander
    from tenure.validators.commands import Command
    from tenure.validators.judges.judge_config import Judge
    from tenure.validators.port import Validator, Verdict

LEASE = limits.VALIDATION_LEASE
RENEW_AT = 0.4  # of the lease
GIVE_UP_AT = 2 / 3  # of the lease without a renewal: another process may soon take the check
SUBMITTING = 60.0  # seconds of retries while the store is unavailable
PAUSE = 0.5
# Validators that depend on the machine: on a folder, a program, a model's key.
LOCAL = ("test-pass", "llm-judge")


def checks_files(validator: str) -> bool:
    """Whether its verdict is about the files of the work: before a landing, of the merge."""
    return validator not in (NONE, *BEFORE, REVIEW, "llm-judge")


class Tools(NamedTuple):
    """Commands and judges that may run here. `root`: the folder of the configuration, and of work without worktree."""

    commands: Mapping[str, Command] = {}
    judges: Mapping[str, Judge] = {}
    root: str | None = None
    trouble: str | None = None  # why there are none


def tools_for(folder: str, environ: Mapping[str, str]) -> Tools:
    """The commands and judges of the repository around `folder`, if this user has allowed their current text.

    In a linked worktree those of the main one: an agent may change files in its own.
    """
    path = shared_file(folder)
    if path is None:
        return Tools(trouble="there is no tenure.toml that names commands or judges")
    from tenure.trust.grants import Trusted, Untrusted
    from tenure.user_state import user_state
    from tenure.validators.commands import read_commands
    from tenure.validators.judges.judge_config import read_judges

    try:
        section = Trusted(user_state(environ)).checked(path)
    except Untrusted as error:
        return Tools(trouble=f"{error.message}; {error.hint}")
    except InvalidInput as error:
        return Tools(trouble=f"{path}: {error.message}")
    commands, judges, trouble = {}, {}, None
    try:
        commands = read_commands(section.get("commands", {}))
    except InvalidInput as error:
        trouble = f"{path}: {error.message}"
    try:  # apart: a judge that is not valid stops no test
        judges = read_judges(section.get("judges", {}))
    except InvalidInput as error:
        trouble = trouble or f"{path}: {error.message}"
    return Tools(commands, judges, os.path.dirname(path), trouble)


class CheckedResult(NamedTuple):
    """The store's answer to a check, and the verdict if there was one."""

    outcome: Outcome
    verdict: Verdict | None = None


class ResultChecker:
    """Checks results of one project. Safe to use from several threads."""

    def __init__(
        self,
        client: Client,
        tools: Tools,
        *,
        lease: float = LEASE,
        is_wanted: Callable[[], bool] = lambda: True,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`is_wanted` is asked during a check; False ends it, and another process may take it."""
        self.client, self.tools, self._lease, self._is_wanted, self._say = client, tools, lease, is_wanted, say

    def obstacle(self, waiting: Mapping[str, Any]) -> str | None:
        """Why this result cannot be checked here; None where it can. `waiting` is an entry of `validations`."""
        name, settings = waiting["validator"], waiting.get("settings") or {}
        if name == "review":
            return "waiting for review: approve or reject it"
        if name == "test-pass" and settings.get("command") not in self.tools.commands:
            return self.tools.trouble or f"no command {settings.get('command')!r} is configured here"
        if name == "llm-judge" and settings.get("judge", "default") not in self.tools.judges:
            return self.tools.trouble or f"no judge {settings.get('judge', 'default')!r} is configured here"
        land = waiting.get("land")
        if land and checks_files(name) and not self._has(land):
            return f"commit {land['commit'][:12]} or branch {land['onto']} is not in this repository"
        try:
            self._validator(name, lambda: True)
        except TenureError as error:
            return error.message
        return None

    def check_next(self) -> CheckedResult | None:
        """Check the first waiting result that can be checked here; None where there is none."""
        waiting = [one for one in self.client.validations(limits.LISTED) if one["state"] == "waiting"]  # for a verdict
        now = self.client.now() if any(one["retry_at"] for one in waiting) else 0
        for one in waiting:
            if (one["retry_at"] or 0) > now or self.obstacle(one):
                continue
            taken = self.client.take_validation(one["task"], lease=self._lease, checker=self._checker())
            if taken.outcome == "GRANTED":
                return self.check(taken)
        return None

    def check_task(self, task: str) -> CheckedResult | str:
        """Check the result of this task; a sentence where it cannot be checked here, or is being checked already."""
        listed = self.client.validations(limits.LISTED)
        waiting: Mapping[str, Any] | None = next((one for one in listed if task in (one["task"], one["key"])), None)
        if waiting is None:
            output = self.client.show(task).get("output") or {}
            waiting = {"validator": output.get("validation", "none"), "settings": output.get("settings")}
        obstacle = self.obstacle(waiting)
        if obstacle is not None:
            return obstacle
        try:
            taken = self.client.take_validation(task, lease=self._lease, checker=self._checker())
        except NotAllowed:  # the author of a result does not check it
            return "`tenure run`, `daemon` or `serve` runs the check, or a person approves it; you hold it no longer"
        return self.check(taken) if taken.outcome == "GRANTED" else taken.message

    def _checker(self) -> str:
        return f"{self.client.agent} ({os.uname().nodename}, pid {os.getpid()})"[:200]

    def _validator(self, name: str, is_wanted: Callable[[], bool]) -> Validator:
        from tenure.validators.known import validator

        return validator(name, commands=self.tools.commands, judges=self.tools.judges, is_wanted=is_wanted)

    def _has(self, land: Mapping[str, Any]) -> bool:
        from tenure.agents import git, merged_trees

        try:
            return self.tools.root is not None and merged_trees.is_here(self.tools.root, land)
        except (git.NoRepository, git.GitFailed):
            return False

    # --- one check ---

    def check(self, taken: Outcome) -> CheckedResult:
        """Run the validator while a thread renews the lease, and submit the verdict."""
        from tenure.validators.port import Undecided

        assert taken.receipt is not None
        assert taken.validation is not None
        assert taken.task is not None
        check, task = taken.validation, taken.task
        self._say(f"{task['key']}: {check['validator']} checks the result of generation {check['generation']}")
        with RenewedLease(self.client, taken.receipt, self._lease, self._is_wanted) as lease:
            try:
                with self._place(task, check) as (folder, about):
                    verdict = self.verdict(task, check, folder, lease.is_wanted)
            except Undecided as error:
                return self._undecided(taken, error.message, error.retry_after)
            except TenureError as error:
                return self._undecided(taken, error.message)
            except KeyboardInterrupt:
                self._undecided(taken, "it was interrupted", 0.0)
                raise
            details = {**verdict.details, **about}
            outcome = submitted(
                lambda: self.client.judge(taken.receipt or "", verdict.ok, verdict.reasons, details), lease
            )
        word = "passed" if verdict.ok else f"refused: {'; '.join(verdict.reasons)[:300]}"
        self._say(f"{task['key']}: {word}" if outcome.ok else f"{task['key']}: {outcome.message}")
        return CheckedResult(outcome, verdict)

    def verdict(
        self, task: Mapping[str, Any], check: Mapping[str, Any], folder: str | None, is_wanted: Callable[[], bool]
    ) -> Verdict:
        """The verdict on the work in this folder; raises Undecided where there is none."""
        from tenure.validators.port import About, Output, Undecided

        about = About(task["key"], task["title"], task.get("description", ""), check["generation"])
        output = Output(check.get("data"), check.get("summary", ""), about=about, folder=folder)
        try:
            return self._validator(check["validator"], is_wanted).judge(check.get("settings") or {}, output)
        except (TenureError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 an error of a plug-in is not a verdict on the output
            raise Undecided(f"{check['validator']} failed: {type(error).__name__}: {error}") from None

    def _undecided(self, taken: Outcome, why: str, retry_after: float | None = None) -> CheckedResult:
        assert taken.task is not None
        self._say(f"{taken.task['key']}: undecided: {why}")
        return CheckedResult(self.client.undecided(taken.receipt or "", why, retry_after))

    @contextmanager
    def _place(
        self, task: Mapping[str, Any], check: Mapping[str, Any]
    ) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
        """The folder of the check, and the fields of the verdict that name the merge in it."""
        land = check.get("land")
        if not land or self.tools.root is None or not checks_files(check["validator"]):
            yield self.folder_of(task, check), {}
            return
        from tenure.agents.merged_trees import merged

        with merged(self.tools.root, land) as found:
            yield found.tree, found.about

    def folder_of(self, task: Mapping[str, Any], check: Mapping[str, Any]) -> str | None:
        """The folder of the work: the worktree of its claim if it is here, else the repository."""
        root = self.tools.root
        if root is None or check["validator"] not in LOCAL:
            return root
        from tenure.agents import git, worktrees

        try:
            for found in worktrees.ours(root):
                record = found.record
                if (
                    record
                    and (record.project, record.task, record.generation)
                    == (self.client.project, task["id"], check["generation"])
                    and not found.tree.is_missing
                ):
                    return found.tree.path
        except (TenureError, git.GitFailed, OSError):
            pass  # not a repository: the folder itself has the work
        return root


def verdict_outcome(submitted: Outcome, checked: CheckedResult) -> Outcome:
    """The outcome of the check as an outcome of the submit."""
    outcome, verdict = checked
    if verdict is None or not outcome.ok:
        return replace(submitted, state=outcome.state or submitted.state, hint=outcome.message or submitted.hint)
    if verdict.ok:
        return outcome
    hint = "the attempt failed; the task is retried, or waits for a person"
    return replace(
        outcome,
        outcome="INVALID_OUTPUT",
        message=f"{outcome.message}: {'; '.join(verdict.reasons)}",
        hint=hint,
        work_lost=False,
    )


class RenewedLease:
    """A lease that a thread renews until the check has ended: the checking thread may hang."""

    def __init__(self, client: Client, receipt: str, lease: float, is_wanted: Callable[[], bool]) -> None:
        self._client, self._receipt, self._lease, self._still = client, receipt, lease, is_wanted
        self._over = threading.Event()
        self._lost = threading.Event()
        self._renewed = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="validation lease", daemon=True)

    def __enter__(self) -> RenewedLease:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def is_wanted(self) -> bool:
        return not self._lost.is_set() and self._still()

    def _run(self) -> None:
        wait = self._lease * RENEW_AT
        while not self._over.wait(wait):
            began = time.monotonic()
            wait = self._lease * RENEW_AT
            try:
                outcome = self._client.renew_validation(self._receipt, self._lease)
                if outcome.outcome != "RENEWED":
                    self._lost.set()
                    return
                self._renewed = began
            except TenureError:
                if time.monotonic() - self._renewed > self._lease * GIVE_UP_AT:
                    self._lost.set()
                    return
                wait = min(wait, PAUSE)


def submitted(submit: Callable[[], Outcome], lease: RenewedLease) -> Outcome:
    """The store's answer to a verdict. Retries, so that a restart of the server does not lose an hour of tests."""
    until = time.monotonic() + SUBMITTING
    while True:
        try:
            return submit()
        except StoreError:
            if time.monotonic() > until or not lease.is_wanted():
                raise
            time.sleep(PAUSE)


LOOK = 2.0  # seconds between two checks for waiting results, at least
SLOWEST = 30.0  # seconds between tries while the store is unavailable


class ValidationThread:
    """Validates for the projects that `projects` names. Only judges are used for projects without a folder here."""

    def __init__(
        self,
        client: Client,
        tools: Callable[[], Tools],
        projects: Callable[[], Iterable[str]] | None = None,
        *,
        say: Callable[[str], object] = lambda _: None,
        lander: Lander | None = None,
    ) -> None:
        """`tools` is called before each round: trust may change while this runs. `lander` lands what has passed."""
        self._lander = lander
        self._client, self._tools, self._projects = client, tools, projects or (lambda: [client.project])
        self._say = say
        self._stopping = threading.Event()
        self._wrong: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name="validating", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the running check and the thread; another process takes the check over."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def round(self) -> int:
        """Check every waiting result that can be checked here; returns how many."""
        count = 0
        tools = self._tools()
        for project in self._projects():
            here = tools if project == self._client.project else Tools(judges=tools.judges, trouble="it is not here")
            checker = ResultChecker(self._speaker(project), here, is_wanted=self._is_wanted, say=self._say)
            while self._is_wanted() and checker.check_next() is not None:
                count += 1
        return count

    def land(self) -> None:
        """Land each result that has passed and may be tried now."""
        if self._lander is not None:
            self._lander.round(self._is_wanted)

    def _is_wanted(self) -> bool:
        return not self._stopping.is_set()

    def _speaker(self, project: str) -> Client:
        other = copy.copy(self._client)
        other.project = project
        return other

    def _run(self) -> None:
        wait = LOOK if self._lander is None else 0.0  # what an earlier run has left is landed first
        while not self._stopping.wait(wait):
            wait = LOOK
            for act in (self.land, self.round):  # apart: a repository in trouble stops no check
                wait = max(wait, self._wait_after(act))

    def _wait_after(self, act: Callable[[], object]) -> float:
        """Seconds until the next round. What went wrong is said once; waiting does not change a refusal."""
        try:
            act()
        except TenureError as error:
            if self._wrong.get(act.__name__) != error.message:
                with suppress(Exception):
                    self._say(f"results cannot be {'landed' if act == self.land else 'validated'}: {error.message}")
            self._wrong[act.__name__] = error.message
            return SLOWEST if isinstance(error, NotAllowed) else SLOWEST / 10
        self._wrong.pop(act.__name__, None)
        return LOOK
