"""One attempt: the prompt, the agent, the lease. `conclusion.py` reports its end."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import structs

from tenure.agents import briefing
from tenure.agents.identity import KNOWN
from tenure.agents.receipts import Receipts
from tenure.agents.runner.activity import Activity
from tenure.agents.runner.agent_output import TAIL, AgentOutput, ClaimUsage, Exit, Reader
from tenure.agents.runner.attempt_files import InputFiles, Transcript, keep_transcript
from tenure.agents.runner.clis.cli import Start
from tenure.agents.runner.conclusion import conclude
from tenure.agents.runner.held_claim import HeldClaim, OwnEnding, Stop
from tenure.agents.runner.prices import check_priced
from tenure.agents.runner.prompt import prompt_for
from tenure.agents.runner.shared import AttemptEnd, Options, Shared
from tenure.agents.transcript_text import of_output
from tenure.client import Client
from tenure.client.signed_submits import own_key_file
from tenure.core import runners
from tenure.core.child_environments import ChildKind, for_child
from tenure.core.commands import ReportUsage, Totals
from tenure.core.errors import InvalidInput, TenureError, close_all
from tenure.core.outcomes import Outcome
from tenure.core.task_secrets import variable_of
from tenure.process_table import described
from tenure.processes.output import Lines
from tenure.processes.supervisor import Ended, Supervisor

if TYPE_CHECKING:
    from tenure.agents.runner.claim_worktree import ClaimWorktree

EARLIER = 3  # transcripts of earlier attempts that the prompt lists
LEFTOVERS = 2.0  # seconds for processes that the agent left behind
LINGER = 60.0  # seconds that an agent may run on after it has ended its claim itself
# All files as outside, but a pid namespace: when bwrap ends, the kernel kills every process in it.
BWRAP = ("--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--die-with-parent")

# Variables that agents set for their children; an agent below must not take itself for the one above.
_THEIRS = {name for agent in KNOWN.values() for name in (*agent.markers, agent.session or "")} | {
    "AI_AGENT",
    "CLAUDE_PID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_CI",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "OPENCODE_PID",
    "COPILOT_CLI",
    "GEMINI_CLI_NO_RELAUNCH",
}


class Attempt:
    def __init__(
        self,
        shared: Shared,
        client: Client,
        granted: Outcome,
        supervisor: Supervisor,
        checker: Client,
        word: str,
        options: Options | None = None,
    ) -> None:
        """`checker` acts for the user who started the runner: an agent gives no verdicts. `options`: of this
        attempt, else those of the runner. `word`: see core/runners."""
        assert granted.task is not None
        self.shared, self.options = shared, options or shared.options
        self.client, self.checker, self.word = client, checker, word
        self.granted = granted
        self.task: Mapping[str, Any] = granted.task
        self.supervisor = supervisor
        self.agent = client.agent
        self.key: str = self.task["key"]
        self.began = time.monotonic()
        self.reader: Reader | None = None
        self.errors: deque[bytes] = deque(maxlen=100)
        self.claim_usage = ClaimUsage()
        self.folder = self.options.folder
        self.tree: ClaimWorktree | None = None
        self.last_line = ""  # of the agent's output, kept while somebody watches
        self.chosen: str | None = None  # the model of the claim, where the user named none
        self.hidden = shared.hidden((granted.secrets or {}).values())
        self.transcript = Transcript(self.options.home.folder, client.project, self.key, granted.generation or 0)
        self._is_transcript_kept = False
        self.files = InputFiles(self.transcript.beside + "inputs")
        self.receipts = Receipts(
            self.options.home, client.project, client.session, client.agent, shared.options.environ
        )
        self.claim = HeldClaim(
            client,
            granted,
            lease=self.options.lease,
            spawn=self.options.spawn,
            metadata=runners.mark(word, submits=bool(self.options.land)),
            process=lambda: described(supervisor.pid),
            receipts=self.receipts,
            stopped=self._stopped,
            settled=self._settled,
            moved=self._moved,
            renewed=self.report_usage,
            say=self.say,
        )

    def say(self, text: str) -> None:
        text = self.hidden.text(text)
        self.shared.say(f"{self.agent}: {text}")
        self.transcript.write("runner", text.encode())

    def run(self) -> AttemptEnd:
        """Run the agent and submit its result. Does not raise for errors of the agent or the store."""
        self.say(f"{self.key}, generation {self.granted.generation}: {self.task['title']}")
        self.claim.start()
        try:
            try:
                ended, output = self._run_agent(self._prepare())
            except (OSError, TenureError) as error:
                ended = Ended(None, failed=f"could not be started: {error}")
                output = AgentOutput()
            return conclude(self, ended, output)
        except Exception as error:  # a bug of ours, which the runner raises: the task must not wait for its lease
            what = f"the runner failed: {type(error).__name__}: {error}"
            with suppress(TenureError):
                self.client.fail(self.claim.receipt, what, "environment")
            raise
        finally:
            close_all(
                self.claim.close,
                self.receipts.forget,
                self.supervisor.close,
                self._leave_tree,
                self.transcript.close,
                self.files.remove,
            )

    def _leave_tree(self) -> None:
        if self.tree is not None and (left := self.tree.release()):
            self.say(f"{self.key}: {self.tree.made.path} stays: {'; '.join(left)}")

    # --- preparation ---

    def _prepare(self) -> Start:
        options = self.options
        if options.worktree:
            self._make_tree()
        mail = self.client.inbox()
        granted = self.files.fetch(self.client, self.granted, lambda text: self.say(f"{self.key}: {text}"))
        text = prompt_for(
            briefing.of_claim(self.client, granted),
            generation=granted.generation,
            attempt=granted.attempt,
            mail=mail,
            folder=self.folder,
            tree=self.tree,
            extra=options.prompt,
            transcripts=self.transcript.earlier()[:EARLIER],
            secrets=[variable_of(name) for name in self.granted.secrets or ()],
        )
        prompt = self.transcript.keep_prompt(text)
        start = Start(
            prompt=prompt,
            folder=self.folder,
            beside=self.transcript.beside,
            model=self._model(),
            extra=options.extra,
            budget=self._budget(),
            writable=(options.home.folder,),
            environ=options.environ,
        )
        self._check_priced(start)
        self.reader = options.cli.reader(start)
        where = os.path.relpath(self.transcript.path, options.home.root)
        step = f"{options.name} works; transcript: {where}"
        self.try_to(lambda: self.client.progress(self.claim.receipt, step=step))
        if mail:
            self.try_to(lambda: self.client.read([m["id"] for m in mail]))
        return start

    def _make_tree(self) -> None:
        from tenure.agents.runner.claim_worktree import ClaimWorktree

        options, claim = self.options, self.claim
        with claim.mutex:
            self.tree = ClaimWorktree(
                options.folder,
                options.home.folder,
                self.key,
                claim.generation,
                client=self.client,
                receipt=claim.receipt,
                onto=options.onto,
            )
        self.folder = self.tree.folder
        if self.tree.made.note:
            self.say(f"{self.key}: {self.tree.made.note}")

    def _model(self) -> str | None:
        """The model that the user named, else one of the task that this agent knows; None: the agent's own setting.

        The model that the claim recommends counts only where the user asked for routing.
        """
        options = self.options
        if options.model is not None or options.names_model:
            return options.model
        recommended = (self.granted.model,) if options.route else ()
        wanted = (*recommended, *(self.granted.models or ()))
        known = (model for model in wanted if model and model not in self.shared.unknown)
        self.chosen = next(filter(options.cli.may_take, known), None)
        if self.chosen is not None and self.chosen == self.granted.model:
            self.say(f"{self.key}: model {self.chosen} ({self.granted.why})")
        return self.chosen

    def _budget(self) -> str | None:
        most = (self.task.get("constraints") or {}).get("max_cost_usd")
        return None if most is None else str(most)

    def _check_priced(self, start: Start) -> None:
        """Before it spends: also in a budget of the task or its dag, and with the model of the claim."""
        options = self.options
        model = options.cli.own_model(start)
        if options.unpriced or options.cli.tells_cost or (model is None and options.cli.tells_model):
            return
        from tenure.engine.models.tables import price_table  # large; the model mostly has its price from its agent

        prices, headroom = price_table(options.prices), self.client.headroom(self.key)
        check_priced(options.cli, model, headroom, prices, self.client.now(), command="tenure run")

    def _environment(self, start: Start) -> dict[str, str]:
        options = self.options
        kept = for_child(ChildKind.AGENT, options.environ)
        env = {name: value for name, value in kept.items() if name not in _THEIRS}
        env |= options.cli.environment(start)
        env |= {
            "TENURE_SESSION": self.client.session,
            "TENURE_AGENT": self.agent,
            "TENURE_ROLE": "agent",
            "TENURE_TASK": self.key,
            "TENURE_GENERATION": str(self.granted.generation),
            "TENURE_PROJECT": options.project,
            "TENURE_PROMPT_FILE": start.prompt,
        }
        if start.model or self.granted.model:
            env["TENURE_MODEL"] = start.model or self.granted.model or ""
        if self.granted.tier:
            env["TENURE_TIER"] = self.granted.tier
        if options.home.tenant:
            env["TENURE_TENANT"] = options.home.tenant
        if options.sign:
            env["TENURE_SIGNING_KEY"] = own_key_file(options.environ)  # its own `tenure done` is signed too
        env |= {variable_of(name): value for name, value in (self.granted.secrets or {}).items()}
        url = options.home.url
        if os.path.dirname(url) != options.home.folder:
            env["TENURE_URL"] = url if "://" in url else os.path.abspath(url)
        return env

    def _timeout(self) -> float:
        longest = (self.task.get("constraints") or {}).get("max_duration")
        return min(self.options.timeout, float(longest)) if longest else self.options.timeout

    # --- the run ---

    def _run_agent(self, start: Start) -> tuple[Ended, AgentOutput]:
        options = self.options
        assert self.reader is not None
        argv = options.cli.command(options.program, start)
        if options.bwrap:
            argv = [options.bwrap, *BWRAP, "--", *argv]
        self.supervisor.start(
            argv,
            cwd=self.folder,
            env=self._environment(start),
            stdin=start.prompt,
            grace=options.grace,
            leftover_grace=LEFTOVERS,
        )
        self.supervisor.end("timeout", options.grace, after=self._timeout())
        if self.shared.stopping.is_set() or not self.claim.is_live:
            self.supervisor.end("stopped", options.grace)
        lines = {"stdout": Lines(), "stderr": Lines()}

        def received(stream: str, chunk: bytes) -> None:
            for line in lines[stream].add(chunk):
                self._take_line(stream, line)

        ended = self.supervisor.follow(received)
        for stream, cut in lines.items():
            for line in cut.rest():
                self._take_line(stream, line)
        errors = b"\n".join(self.errors).decode(errors="replace")[-TAIL:]
        return ended, self.reader.finish(Exit(ended.code or 0, errors))

    def activity(self) -> Activity:
        """What its agent does now."""
        ref, title, seconds = self.task.get("ref", self.key), self.task["title"], time.monotonic() - self.began
        return Activity(self.agent, ref, title, seconds, self.last_line, self.usage())

    def _take_line(self, stream: str, line: bytes) -> None:
        if self.hidden:  # the agent knows the secrets of its task; and of those before; its output is kept without them
            line = self.hidden.text(line.decode(errors="replace")).encode()
        self.transcript.write(stream, line)
        if self.shared.is_watched and stream == "stdout" and (text := of_output(line.decode(errors="replace"))):
            self.last_line = text.strip().rpartition("\n")[2]
        if stream == "stdout" and self.reader is not None:
            self.reader.feed(line.decode(errors="replace"))
        else:
            self.errors.append(line[:TAIL])

    def _stopped(self, stop: Stop) -> None:
        self.say(f"{self.key}: {stop.directive}: {stop.why}")
        self.supervisor.end(stop.directive, self.options.grace)

    def _settled(self, how: OwnEnding) -> None:
        self.say(f"{self.key}: {how.sentence}")
        self.supervisor.end("settled", self.options.grace, after=LINGER)

    def _moved(self, generation: int) -> None:
        self.claim_usage.moved()
        self.transcript.goes_on_as(generation)

    def interrupt(self) -> None:
        """The runner stops: end the agent, release the task."""
        self.supervisor.end("interrupted", self.options.grace)

    def keep_transcript(self) -> None:
        """Store the transcript as an artifact of the generation, once; the file stays."""
        if self._is_transcript_kept or not self.shared.keeps_transcripts:
            return
        self._is_transcript_kept = True
        self.transcript.flush()
        try:
            with self.claim.mutex:
                keep_transcript(self.client, self.claim.receipt, self.transcript.path, self.word)
        except InvalidInput as error:  # no artifact store: the next transcript would fail too
            self.shared.keeps_transcripts = False
            self.say(f"transcripts are kept as files only: {error.message}; {error.hint}")
        except TenureError as error:
            self.say(f"{self.key}: the transcript is kept as a file only: {error.message}")

    def report_usage(self) -> None:
        """Report usage so far, so that budgets see it while the agent works. The caller has the claim's mutex."""
        totals = self.usage()
        for due in self.claim_usage.due(totals):
            self.client.do(ReportUsage(project=self.client.project, receipt=self.claim.receipt, **structs.asdict(due)))
        self.claim_usage.reported(totals)

    def usage(self) -> tuple[Totals, ...]:
        return self.reader.usage() if self.reader is not None else ()

    def try_to(self, what: Callable[[], object]) -> None:
        """Run a command that the work does not depend on; an error is only logged."""
        try:
            with self.claim.mutex:
                what()
        except TenureError as error:
            self.say(f"{self.key}: {error.message}")
