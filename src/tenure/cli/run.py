"""`run`: start CLI agents on claimed tasks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ParamSpec

from tenure.cli.claim import FILTERS, filters_of
from tenure.cli.main import Answer, Run, Usage, arg, options
from tenure.cli.option_kinds import contents, lease, seconds
from tenure.core import limits
from tenure.core.child_environments import ChildKind, for_child
from tenure.core.errors import TenureError, close_all
from tenure.core.ids import fitted_name

if TYPE_CHECKING:
    from tenure.agents.leader_process import LeaderProcess
    from tenure.agents.runner.neighbours import RunnerHere
    from tenure.agents.runner.remains import Remains
    from tenure.agents.runner.shared import Options, Shared
    from tenure.cli.live_lines import LiveLines
    from tenure.client import Client

P = ParamSpec("P")
AT_MOST = limits.RUN_AGENTS


@options(
    arg("-n", type=int, default=1, metavar="N", help="how many agents at once"),
    arg("--agent", metavar="AGENT",
        help="claude, codex, gemini, opencode, copilot (words behind it are passed on), or any command"),
    arg("--name", metavar="NAME", help="the agents' names: NAME-1, NAME-2, … (else from the program)"),
    arg("--model", metavar="NAME", help="the model to use (else the task's or the agent's)"),
    arg("--unpriced", action="store_true", help="run also where a budget in dollars cannot see what the model costs"),
    arg("--route", action="store_true", help="use the model that each claim recommends (run.route)"),
    arg("--once", action="store_true", help="one task each, if there is one; then end"),
    arg("--spawn", metavar="ID", help="the spawn of a pool that this process is for (with --once)"),
    arg("--task", metavar="KEY", help="claim this task and no other (with --once)"),
    arg("--key-stdin", action="store_true", help="read the API key from the first line of stdin"),
    arg("--until-empty", action="store_true", help="end when no task can become ready any more"),
    arg("--max-tasks", type=int, metavar="N", help="end after N tasks in all"),
    arg("--timeout", type=seconds, metavar="SECONDS", help="end an agent after this time (run.timeout; 90, 15m, 2h)"),
    arg("--lease", type=lease, default=limits.LEASE, metavar="SECONDS", help="the lease of a claim (300, 30m, auto)"),
    arg("--grace", type=seconds, default=5.0, metavar="SECONDS", help="time between SIGTERM and SIGKILL (5)"),
    arg("--worktree", action="store_true", help="run each claim in its own git worktree and branch"),
    arg("--land", action="store_true",
        help="merge the work into its branch, then accept it (implies --worktree; default of -n 2 and more in git)"),
    arg("--shared", action="store_true", help="let several agents work in this one checkout"),
    arg("--onto", metavar="BRANCH", help="begin from and land on this branch (else the one that is checked out)"),
    arg("--sign", action="store_true", help="sign results with your key on this machine (run.sign)"),
    arg("--bwrap", action="store_true", help="run in a process namespace: nothing an agent starts outlives it"),
    arg("--prompt", type=contents, default="", metavar="TEXT", help="added to every prompt: text, or @FILE"),
    *FILTERS,
)  # fmt: skip
def run(run: Run, given: Namespace) -> Answer | int:
    """Claim tasks, start an agent on each without a terminal, keep its lease, submit its result.

    Runs until Ctrl-C: once lets running agents finish, twice ends them and gives their tasks back. An agent gets its
    task as a prompt on stdin; its last message is the result. A command submits what it prints and fails by its exit
    code. A run that ends by itself exits with 8 where a task of it is a dead letter, its result was refused or has not
    landed, and with 3 where nothing was claimed (--once) or only tasks that wait for a person are left (--until-empty).
    """
    from tenure.agents.runner.neighbours import joining
    from tenure.agents.runner.runner import Runner
    from tenure.cli.answers import kept_crash
    from tenure.processes.thread_errors import reported

    began = time.monotonic()
    if given.key_stdin:
        _read_key()
    agent = _agent(run, given)  # first: a cloned file may name one, which is refused
    client = run.client_at(run.home.url)
    with joining(run.own_home.folder) as others:
        chosen, beside = _options(run, given, client, agent, others)
        record = _recorded(run, chosen)
    live = _live(run)
    say = _printer(run.is_json, live)
    where = f"a git worktree for each task{f', landed on {chosen.onto}' if chosen.land else ''}"
    if beside is not None:
        does = f"gets {where}" if chosen.worktree else "works there too, as you wish"
        say(f"{beside.sentence}: {chosen.agent(1)} {does}")
    elif chosen.slots > 1:
        say(f"{chosen.slots} agents, {where if chosen.worktree else f'all in {run.folder}'}")
    runner = Runner(client, chosen, say, _quietly(live.show) if live else None)
    # A process of a pool works for the leader that started it, and does not become one.
    leader = None if client.is_remote or chosen.spawn else _leader(run, client, say)
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, runner.interrupt),
        signal.SIGTERM: signal.signal(signal.SIGTERM, runner.terminate),
        signal.SIGHUP: signal.signal(signal.SIGHUP, runner.terminate),
    }
    try:
        with reported(lambda text, error: say(f"{text} ({kept_crash(error, ['run']).hint})")):
            if leader is not None:
                leader.start()
            shared = runner.run()
        remains = _remains(shared, client)
    finally:
        first = [] if live is None else [_quietly(live.close)]
        if leader is not None:
            first.append(leader.stop)
        handlers = (partial(signal.signal, number, handler) for number, handler in before.items())
        records = () if record is None else (_quietly(partial(os.unlink, record)),)
        close_all(*first, *handlers, *records, runner.client.close)
    return _answer(shared, chosen, remains, time.monotonic() - began)


def _remains(shared: Shared, client: Client) -> Remains:
    from tenure.agents.runner.remains import Remains, remains_of

    try:
        return remains_of(shared, client)
    except TenureError as error:  # the work is done; its rest cannot be read
        shared.say(error.message)
        return Remains()


def _read_key() -> None:
    """The key from stdin: a command line is readable by every user, and ssh forwards no environment."""
    key = sys.stdin.readline(1000).strip()
    if not key:
        raise Usage("--key-stdin: the first line of stdin is empty", "send the API key and a newline")
    os.environ["TENURE_KEY"] = key


def _leader(run: Run, client: Client, say: Callable[[str], None]) -> LeaderProcess:
    from tenure.cli.leading import leader_of

    return leader_of(run, client.engine, say)


def _recorded(run: Run, chosen: Options) -> str | None:
    """The file by which other runners see this one; None where its process cannot be named."""
    from tenure.agents.runner.neighbours import RunnerHere, record
    from tenure.process_table import described

    process = described(os.getpid())
    if process is None:
        return None
    here = RunnerHere(
        process=process, checkout=_checkout(run), name=chosen.name, first=chosen.first, slots=chosen.slots,
        is_inside=not chosen.worktree,
    )  # fmt: skip
    return record(chosen.home.folder, here)


def _checkout(run: Run) -> str:
    from tenure.agents import git

    return os.path.realpath(git.find(run.folder).top if _in_repository(run.folder) else run.folder)


def _options(
    run: Run, given: Namespace, client: Client, agent: str, others: Sequence[RunnerHere]
) -> tuple[Options, RunnerHere | None]:
    """The options, and the runner that works in this checkout already."""
    from tenure.agents.runner.clis import cli_for
    from tenure.agents.runner.clis.cli import GENERIC
    from tenure.agents.runner.neighbours import first_free
    from tenure.agents.runner.shared import FOREVER, ONCE, UNTIL_EMPTY, Options
    from tenure.config import file_of

    if not 1 <= given.n <= AT_MOST:
        raise Usage(f"-n must be from 1 to {AT_MOST} (got {given.n})")
    if given.once and given.until_empty:
        raise Usage("--once and --until-empty exclude each other", "give one of them")
    if (given.spawn or given.task) and not (given.once and given.n == 1):
        raise Usage("--spawn and --task are for one agent and one task", "give --once, and no -n")
    if given.max_tasks is not None and given.max_tasks < 1:
        raise Usage(f"--max-tasks must be at least 1 (got {given.max_tasks})")
    cli, extra = cli_for(agent)
    _record_type(run, cli.type)
    program = cli.found(run.environ)
    timeout = given.timeout if given.timeout is not None else run.setting("run.timeout")
    if timeout <= 0 or given.grace < 0:
        raise Usage("--timeout and --grace must be greater than zero")
    checkout = _checkout(run)
    beside = next((other for other in others if other.is_inside and other.checkout == checkout), None)
    worktree, land, onto = _checkouts(run, given, beside)
    name = given.name or _name(program if cli.type == GENERIC else cli.type)
    may_move = not (worktree or given.shared or given.spawn) and _has_commit(run.folder)
    most = given.max_tasks if not given.once else min(given.n, given.max_tasks or given.n)
    slots = min(given.n, most or given.n)
    options = Options(
        cli=cli, program=program, name=name, first=0 if given.spawn else first_free(client, name, slots, others),
        checkout=checkout if may_move else None, home=run.own_home, project=run.project, folder=run.folder,
        environ=run.environ,
        slots=slots, extra=extra, model=given.model,
        route=given.route or bool(run.setting("run.route")),
        filters=filters_of(given),
        mode=ONCE if given.once else UNTIL_EMPTY if given.until_empty else FOREVER, most_tasks=most, timeout=timeout,
        lease=given.lease, heartbeat=run.setting("agents.heartbeat"), grace=given.grace,
        bwrap=_bwrap(run) if given.bwrap else None, prompt=given.prompt,
        worktree=worktree, land=land, onto=onto, spawn=given.spawn, task=given.task,
        sign=given.sign or bool(run.setting("run.sign")), unpriced=given.unpriced,
        prices=file_of(run.settings, "prices"),
    )  # fmt: skip
    _check_priced(client, options)
    return options, beside


def _check_priced(client: Client, options: Options) -> None:
    """Before anything is claimed: a budget in dollars that would not see what the agent costs."""
    from tenure.agents.runner.clis.cli import Start
    from tenure.agents.runner.prices import check_priced
    from tenure.engine.models.tables import price_table

    cli = options.cli
    start = Start("", options.folder, "", model=options.model, extra=options.extra, environ=options.environ)
    model = cli.own_model(start)
    if options.unpriced or options.route or cli.tells_cost or (model is None and cli.tells_model):
        return  # the model of a claim is known with the claim: see attempt.py
    headroom = client.headroom(options.task)
    check_priced(cli, model, headroom, price_table(options.prices), client.now(), command="tenure run")


def _checkouts(run: Run, given: Namespace, beside: RunnerHere | None) -> tuple[bool, bool, str | None]:
    """Whether each claim gets a worktree, whether it is landed, and onto which branch.

    Two agents in one checkout overwrite each other's files. So in a repository several agents, those of a pool, and
    those of a runner beside another (`beside`) get a worktree for each claim, landed onto the branch that is checked
    out now, unless the user says otherwise.
    """
    from tenure.agents import git
    from tenure.agents.runner.claim_worktree import check

    if given.shared and (given.worktree or given.land or given.onto):
        raise Usage("--shared excludes --worktree, --land and --onto", "give one of them")
    if given.worktree or given.land:
        check(run.folder)
        return True, given.land, given.onto
    several = given.n > 1 or given.spawn is not None or beside is not None  # each agent of a pool is a separate process
    if given.shared or not several or not _in_repository(run.folder):
        if given.onto:
            raise Usage("--onto needs a worktree", "give --worktree or --land with it")
        return False, False, None
    if git.commit_id(run.folder, "HEAD") is None:
        raise Usage(
            "several agents get a git worktree each, and this repository has no commit yet",
            "create the first commit, or give --shared to let them work in this one checkout",
        )
    onto = given.onto or git.branch_here(run.folder)
    if onto is None:
        raise Usage("no branch is checked out here to land on", "name one with --onto, or give --shared")
    return True, True, onto


def _has_commit(folder: str) -> bool:
    from tenure.agents import git

    return _in_repository(folder) and git.commit_id(folder, "HEAD") is not None


def _in_repository(folder: str) -> bool:
    from tenure.agents import git

    try:
        git.find(folder)
    except git.NoRepository:
        return False
    return True


def _record_type(run: Run, name: str) -> None:
    """Let the commands of a plug-in's agent be recognised."""
    from tenure.agents.agent_types import plugged_in
    from tenure.agents.identity import KNOWN, record_types
    from tenure.agents.runner.clis.cli import GENERIC

    made = None if name in KNOWN or name == GENERIC else plugged_in(name)
    if made is not None:
        record_types(run.environ, made.known)


def _agent(run: Run, given: Namespace) -> str:
    from tenure.agents.runner.clis import KNOWN

    if given.agent:
        return str(given.agent)
    value = run.setting("run.agent")
    if value is None:
        raise Usage("run: which agent?", f"--agent takes one of {', '.join(KNOWN)}, or a command in quotes")
    return str(value)


def _name(program: str) -> str:
    base = os.path.splitext(os.path.basename(program))[0]
    return fitted_name(base, "agent")[:60]


def _bwrap(run: Run) -> str:
    """The path of bwrap, after a trial run: many containers forbid what it needs."""
    from tenure.agents.runner.attempt import BWRAP
    from tenure.agents.runner.clis.cli import NoProgram

    path = shutil.which("bwrap", path=run.environ.get("PATH"))
    if path is None:
        raise NoProgram("--bwrap: bwrap is not installed", "install bubblewrap, or run without --bwrap")
    env = for_child(ChildKind.PROGRAM, run.environ)
    tried = subprocess.run([path, *BWRAP, "--", "true"], capture_output=True, text=True, check=False, env=env)
    if tried.returncode != 0:
        raise NoProgram(f"--bwrap: bwrap does not work here: {tried.stderr.strip()}", "run without --bwrap")
    return path


def _live(run: Run) -> LiveLines | None:
    """Lines that are redrawn, where a person sees them."""
    from tenure.cli.live_lines import LiveLines, is_possible

    return None if run.is_json or not is_possible() else LiveLines()


def _printer(is_json: bool, live: LiveLines | None) -> Callable[[str], None]:
    from tenure.cli.answers import say as write
    from tenure.cli.text_format import plain

    stream = sys.stderr if is_json else sys.stdout

    def say(text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {plain(text)}"
        if live is not None:
            live.say(line)
        else:
            write(line, stream)

    return _quietly(say)


def _quietly(write: Callable[P, None]) -> Callable[P, None]:
    """Write; where the reader or the terminal is gone the work continues."""

    def written(*args: P.args, **named: P.kwargs) -> None:
        with suppress(OSError):
            write(*args, **named)

    return written


def _answer(shared: Shared, chosen: Options, remains: Remains, took: float) -> Answer:
    from tenure.agents.runner.runner import summary_of
    from tenure.agents.runner.shared import ONCE
    from tenure.cli.answers import OF_ERROR, exit_of
    from tenure.client.handles import TaskFailed

    value = summary_of(shared, took)
    counts = ", ".join(f"{count} {what}" for what, count in sorted(shared.counts.items())) or "no task"
    text = f"{counts} in {took:.1f} s"
    code = 0
    if shared.fatal is not None:
        is_auth = shared.fatal.error_class == "auth_failure"
        value["error"] = {"code": (shared.fatal.error_class or "").upper(), "message": shared.fatal.message}
        text += f"\n{chosen.cli.program} cannot {'sign in' if is_auth else 'run here'}: {shared.fatal.message}"
        text += "\n  sign it in, then start again" if is_auth else f"\n  see {shared.fatal.transcript}"
        code = 12 if is_auth else 11
    elif shared.terminated:
        value["terminated"] = list(shared.terminated)
        text += f"\nterminated by an operator: {', '.join(shared.terminated)}"
        code = 9
    elif shared.denied is not None:
        value["denied"] = shared.denied.outcome
        text += f"\n{shared.denied.message}"
        code = exit_of(shared.denied.outcome)
    elif shared.stopping.is_set():
        code = 130
    elif remains.has_failed:
        value["error"] = {"code": TaskFailed.code, "message": "; ".join(remains.lines)}
        code = OF_ERROR[TaskFailed.code]
    elif remains.waits or (chosen.mode == ONCE and not shared.counts):
        code = 3
    value["remains"] = remains._asdict()
    if not shared.counts and shared.fatal is None and not shared.terminated and not shared.stopping.is_set():
        value["message"] = "no task was ready: the queue is empty, or all of it waits; `tenure ready` says why"
        text = value["message"]
    text = "\n".join((text, *remains.lines))
    return Answer(value, text, code)
