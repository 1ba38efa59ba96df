"""The command line: find the verb, parse its arguments, run it, print one answer, return the exit code.

A verb is a function `(run, given) → Answer` in a module of this package, with its options declared above it; the
table in `verbs.py` says where. Only the module of the verb that was asked for is imported, and only its parser is
made: agents call `tenure` hundreds of times, and pay for the start each time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from tenure.cli import text_format
from tenure.cli.answers import (
    OF_ERROR,
    Interrupted,
    Unfinished,
    exit_of,
    in_a_line,
    open_streams,
    outcome_text,
    print_answer,
    print_error,
)
from tenure.cli.verbs import ALIASES, GROUPS, VERBS
from tenure.core import limits
from tenure.core.errors import NoStore, NotAllowed, TenureError
from tenure.process_table import call

if TYPE_CHECKING:
    from tenure.agents.identity import Who
    from tenure.agents.receipts import Receipts
    from tenure.cli.noted_client import NotingClient
    from tenure.config import Home, Settings
    from tenure.core.commands import Command
    from tenure.core.outcomes import Outcome
    from tenure.core.task_defaults import TaskDefaults


class Usage(TenureError):
    code = "USAGE"


class Answer(msgspec.Struct, frozen=True):
    """A verb's answer: `value` for --json; for people `text`, or what makes it, and what a list has `left_out`."""

    value: Any
    text: str | Callable[[], str] = ""
    code: int = 0
    left_out: str = ""


Option = tuple[tuple[Any, ...], dict[str, Any]]
Verb = Callable[["Run", Namespace], "Answer | int"]


def arg(*names: str, **settings: Any) -> Option:
    """One argument, as argparse's add_argument takes it."""
    return names, settings


def options(*declared: Option) -> Callable[[Verb], Verb]:
    """Declare a verb's own arguments."""

    def declare(function: Verb) -> Verb:
        function.declared = declared  # type: ignore[attr-defined]
        return function

    return declare


# Every verb has these; they may also stand before it.
SHARED: tuple[Option, ...] = (
    arg("-C", "--dir", metavar="DIR", help="run as if started in DIR"),
    arg("--tenant", metavar="NAME", help="which tenant of the store or server"),
    arg("--project", metavar="NAME", help="which project of the store"),
    arg("--agent", metavar="NAME", help="act as this agent (else detected)"),
    arg("--session", metavar="ID", help="act in this session (else detected)"),
    arg("--json", action="store_true", help="print exactly one JSON value"),
)
_WITH_VALUE = {name for names, settings in SHARED if "action" not in settings for name in names}
_WITHOUT_VALUE = {name for names, settings in SHARED if "action" in settings for name in names}


LONG_LIVED = ("daemon", "gateway", "run", "serve")  # they hold keys, and start or serve what must not read them
STARTS_AGENTS = ("run", "pool set")  # their --agent names a program, not the caller


class Run:
    """One run of the command line: folder, identity, project; each is found on first use."""

    def __init__(self, given: Namespace, verb: str) -> None:
        self.given = given
        self.verb = verb
        self.environ = os.environ
        self.is_json: bool = given.json
        self.is_terminal = sys.stdout.isatty()
        self.done: list[Outcome] = []  # outcomes so far: a later error must mention them
        self.warnings: list[str] = []  # what went wrong after that
        self.is_holder = False  # it presents a receipt, or asks for one
        self.unwritten: list[Callable[[], None]] = []  # called if the answer cannot be written
        self.folder = os.path.abspath(given.dir or ".")

    @cached_property
    def settings(self) -> Settings:
        from tenure.config import read_settings

        named = {"project": self.given.project, "tenant": self.given.tenant}
        return read_settings(self.folder, self.environ, named)

    def give_sign_of_life(self) -> None:
        """A heartbeat of a known agent that has given no sign for a while; no answer depends on it."""
        if "client" not in self.__dict__ or not (self.who.role == "agent" or self.who.has_joined):
            return
        with suppress(TenureError):
            agent = self.client.agent_details(self.who.agent)
            if self.who.role != "agent" and agent["status"] == "offline" and agent["type"] != "human":
                return  # it left: who looks afterwards does not join again
            if self.client.now() - agent["last_seen"] >= limits.PRESENCE_OF_READERS:
                self.client.heartbeat()

    def must_own(self, option: str = "") -> None:
        """Refuse an agent, for what no command judges."""
        if self.who.role != "owner":
            raise NotAllowed(f"{self.verb}{option}: needs the role owner", "ask a person to do it")

    def name_project(self, name: str) -> None:
        """Use this project from now on, as if --project had been given."""
        self.given.project = name
        del self.settings

    def setting(self, key: str) -> Any:
        return self.settings[key].value

    def display(self, key: str) -> Any:
        """A setting of `display`; None where the settings cannot be read: the command says why."""
        try:
            return self.setting(f"display.{key}")
        except TenureError:
            return None

    @cached_property
    def home(self) -> Home:
        from tenure.config import find_home

        if not os.path.isdir(self.folder):
            raise Usage(f"there is no folder {self.folder}")
        return find_home(self.folder, self.settings)

    @property
    def own_home(self) -> Home:
        """As `home`, for servers and runners: Untrusted where a clone brought the store."""
        from tenure.trust.ownership import check_store

        check_store(self.home, self.environ)
        return self.home

    @property
    def project(self) -> str:
        """The project that was named; else the only one of a store in which several could be."""
        name = self.settings["project"]
        if name.origin == "default" and "_only_project" not in vars(self):
            self._only_project = None  # the client asks for the project too
            self._only_project = self._find_only_project()
        return self._only_project or str(name.value)

    _only_project: str | None = None

    def _find_only_project(self) -> str | None:
        if self.verb == "init":
            return None
        try:
            with self.client_at(self.home.url) as client:
                names = client.projects()
        except NoStore:
            return None
        return names[0] if len(names) == 1 else None

    @cached_property
    def who(self) -> Who:
        """The caller; `join` assigns another."""
        from tenure.agents.identity import recognise

        agent = None if self.verb in STARTS_AGENTS else self.given.agent
        who = recognise(self.environ, agent, self.given.session)
        default = self.settings.seen("agents.type").value
        return msgspec.structs.replace(who, type=default) if default and who.type == "generic" else who

    def check_named(self) -> None:
        """Refuse an agent that has not named itself, where the project wants names."""
        from tenure.agents.identity import JOINED

        who = self.who
        if self.setting("agents.auto_name") or who.role != "agent":
            return
        if not who.agent_source.startswith(("--agent", "TENURE_AGENT", JOINED)):
            raise Usage(
                f"{self.verb}: this project wants agents that name themselves (agents.auto_name is false)",
                "`tenure join -n NAME` once, or --agent NAME, or TENURE_AGENT",
            )

    @cached_property
    def client(self) -> NotingClient:
        """The store's client, acting as `who`."""
        return self.client_at(self.home.url)

    def client_at(
        self, url: str, *, role: str | None = None, create: bool = False, tenant: str | None = None
    ) -> NotingClient:
        from tenure.cli.noted_client import NotingClient, Patience
        from tenure.config import homes_of, leader_lease_of, without_password

        who, tables = self.who, None
        if self.setting("prices") or self.setting("tiers"):
            from tenure.config import file_of
            from tenure.engine.runtime.context import UserTables

            tables = UserTables(file_of(self.settings, "prices"), file_of(self.settings, "tiers"))
        return NotingClient(
            url, self.project, key=self.setting("key"), tenant=tenant or self.setting("tenant"),
            homes=homes_of(self.settings), agent=who.agent,
            session=who.session, role=role or who.role,
            user=who.user, create=create, artifacts=self.artifacts, tables=tables, done=self.done,
            task_defaults=self._task_defaults, leader_lease=leader_lease_of(self.settings),
            allow_http=bool(self._trusted("webhooks.allow_http")), networks=self._networks,
            pause=Patience(without_password(url)),
        )  # fmt: skip

    @property
    def _task_defaults(self) -> TaskDefaults:
        from tenure.config import task_defaults_of

        return task_defaults_of(self.settings)

    @property
    def _networks(self) -> tuple[str, ...]:
        return tuple(filter(None, (part.strip() for part in (self._trusted("webhooks.networks") or "").split(","))))

    def _trusted(self, name: str) -> Any:
        """The value of a setting, if the file that sets it is trusted: no command fails because of it."""
        if not self.settings.seen(name).value:
            return None
        from tenure.trust.grants import Untrusted

        try:
            return self.setting(name)
        except Untrusted:
            return None

    @property
    def artifacts(self) -> str | None:
        from tenure.config import artifacts_of

        return artifacts_of(self.settings, self.home) if self.setting("artifacts") else None

    @property
    def receipts(self) -> Receipts:
        from tenure.agents.receipts import Receipts

        return Receipts(self.home, self.project, self.who.session, self.who.agent, self.environ)

    def named_task(self, task: str | None) -> str | None:
        """The task that was named, or the one that TENURE_TASK names."""
        return task or self.environ.get("TENURE_TASK") or None

    def receipt(self, given: Namespace) -> str:
        """The receipt to present: --receipt, or the one that this agent keeps; never one of the folder or worktree."""
        self.is_holder = True
        if given.receipt:
            return str(given.receipt)
        return self.receipts.find(self.named_task(given.task), self.client.own_claims).receipt

    def present(self, given: Namespace, call: Callable[[str], Outcome], *, ends: bool = False) -> Outcome:
        """The outcome of a holder's command, called with the receipt. `ends`: it releases the claim if it succeeds."""
        receipt = self.receipt(given)
        if self.who.role == "agent" and self.verb in ENDING:
            from tenure.agents.own_usage import book_before_end

            book_before_end(self.client, self.receipts)
        return self.receipts.settle(receipt, call(receipt), ends=ends)

    def task_held(self, task: str | None) -> str:
        """The task that was named, by TENURE_TASK too; else the one that this agent holds."""
        from tenure.agents.receipts import named

        task = self.named_task(task)
        return named(task).task if task else self.receipts.find(None, self.client.own_claims).task

    def warn(self, text: str) -> None:
        """A problem after the effect: printed on stderr, and added to the JSON answer."""
        self.warnings.append(text)

    def close(self) -> None:
        if "client" not in vars(self):
            return
        try:
            self.client.close()
        except Exception as error:
            if not self.done:
                raise
            from tenure.cli.answers import say

            say(f"tenure: it was done; closing the store failed: {error}", sys.stderr)


def answered(outcome: Outcome, text: str | Callable[[], str] = "", **more: Any) -> Answer:
    """An outcome as an answer: its one shape for --json, its kind as the exit code."""
    from tenure.client.wire import outcome_value

    return Answer({**outcome_value(outcome), **more}, text or (lambda: outcome_text(outcome)), exit_of(outcome.outcome))


def shown(found: Any, text: Callable[[Any], str], further: str = "") -> Answer:
    """The answer to a query: `found` for --json, its text for people. `further`: what shows the next page."""
    from tenure.client.wire import plain

    return Answer(plain(found), lambda: text(found), left_out=text_format.left_out(found, further))


def argument_of(option: Option) -> str:
    """The name of an argument's value after parsing."""
    names, settings = option
    return str(settings.get("dest") or max(names, key=len).lstrip("-").replace("-", "_"))


def verb_of(command: Callable[..., Command], text: str, *declared: Option, **fields: str) -> Verb:
    """A verb that sends one command. Each argument is the field of its name; `fields` lists the exceptions."""
    arguments = {name: name for name in map(argument_of, declared) if name not in fields.values()} | fields

    @options(*declared)
    def verb(run: Run, given: Namespace) -> Answer:
        values = {field: getattr(given, argument) for field, argument in arguments.items()}
        return answered(run.client.do(command(project=run.project, **values)))

    verb.__doc__ = text
    return verb


# --- from words to an answer --------------------------------------------------------------------------------


# argparse looks for translations of its texts in the file system, and there are none.
argparse._ = str  # type: ignore[attr-defined]
_UNUSED = "unused"  # nothing prints the usage but a help text


class Parser(argparse.ArgumentParser):
    def parsed(self, words: list[str]) -> Namespace:
        """Options may stand among the arguments."""
        if not {"-h", "--help"}.intersection(words):
            self.usage = _UNUSED  # else argparse composes it first, for errors that ours do not show
        return self.parse_intermixed_args(words)

    def format_help(self) -> str:
        from tenure.cli.examples import examples_of

        self.epilog = examples_of(self.prog.removeprefix("tenure "))
        columns = text_format.terminal_width()
        if columns is not None and columns < text_format.SOURCE_WIDTH:
            self.description = text_format.refilled(self.description or "", columns - 2)
        return super().format_help()

    def _get_formatter(self) -> argparse.HelpFormatter:
        return _formatter(self.prog, min(text_format.terminal_width() or HELP_WIDTH, HELP_WIDTH))

    def error(self, message: str) -> NoReturn:
        from tenure.cli.examples import EXAMPLES
        from tenure.cli.usage_errors import in_our_words

        verb = self.prog.removeprefix("tenure ")
        example = f"as in `{EXAMPLES[verb][0]}`; " if verb in EXAMPLES else ""
        raise Usage(f"{verb}: {in_our_words(message, self._actions)}", f"{example}`{self.prog} -h` lists its options")


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code of one command."""
    words = list(sys.argv[1:] if argv is None else argv)
    open_streams()
    wants_json = "--json" in words
    try:
        return _run(words)
    except TenureError as error:
        return print_error(error, wants_json)
    except KeyboardInterrupt:
        return print_error(Interrupted("interrupted"), wants_json)
    except Exception as error:  # noqa: BLE001 a user never sees a traceback; it is kept for the report
        from tenure.cli.answers import kept_crash

        return print_error(kept_crash(error, words), wants_json)


def _run(words: list[str]) -> int:
    before, rest = _leading(words)
    is_json = "--json" in before
    if not rest and is_json:
        raise Usage("name a verb", "as in `tenure list --json`; `tenure help` lists them")
    if not rest or rest[0] in ("-h", "--help", "help", "-V", "--version", "version"):
        from tenure.cli.verbs import general

        return general(rest + ["--json"] * is_json)
    if rest[0] in GROUPS - VERBS.keys() and rest[1:2] in (["-h"], ["--help"]):
        from tenure.cli.verbs import help_of_group

        return help_of_group(rest[0])
    name, rest = _verb(rest)
    function = function_of(VERBS[name].where) if name in VERBS else plugged_in(name)
    parser = parser_of(name, function)
    given = parser.parsed([*before, *_joined(rest)])
    call(name)
    run = Run(given, name)
    from tenure.config import SECRET_VARIABLES

    if name in LONG_LIVED or any(run.environ.get(secret) for secret in SECRET_VARIABLES):
        from tenure.processes.private_memory import keep_private

        keep_private()
    text_format.display = run.display
    began, code = time.perf_counter(), 70  # measures the command, for the log
    try:
        answer = _answer(function, run, given)
        code = answer if isinstance(answer, int) else print_answer(_with_news(run, answer), run)
        if name in SIGNS_OF_LIFE:
            run.give_sign_of_life()
        return code
    except TenureError as error:
        code = OF_ERROR.get(error.code, 70)
        raise
    finally:
        run.close()
        if "settings" in vars(run) and run.settings.seen("log.file").value is not None:
            from tenure.cli.command_log import note_command

            note_command(run, code, time.perf_counter() - began)


# Reads that show that an agent is alive: it looks for work. Commands say so by themselves.
SIGNS_OF_LIFE = {"agents", "agent list", "history", "inbox", "list", "next", "prime", "ready", "show", "status", "why"}


def _answer(function: Verb, run: Run, given: Namespace) -> Answer | int:
    """The verb's answer. A failure after an effect does not hide the effect."""
    try:
        return function(run, given)
    except TenureError as error:
        if run.done:
            _after_effect(error, run)
        raise
    except Exception as error:
        if not run.done:
            raise
        raise _after_effect(_unfinished(error, run), run) from error


# Verbs that may end a claim: what it has used is booked before.
ENDING = frozenset({"done", "fail", "release", "ask", "land"})
# An agent that only reads hears its news all the same.
READ_BY_AGENTS = frozenset({"ready", "list", "show", "why", "next", "status"})


def _with_news(run: Run, answer: Answer) -> Answer:
    """The answer with mail and directives, for a holder, and for those who speak as an agent."""
    last = run.client.last if "client" in vars(run) else None
    if last is not None:
        for warning in last.warnings or ():
            run.warn(warning)
    if last is None and not ("client" in vars(run) and run.verb in READ_BY_AGENTS):
        return answer
    speaks_as = run.given.agent if last is None and run.verb != "list" else None  # `list --agent` is a filter
    if not (run.is_holder or run.who.role == "agent" or speaks_as):
        return answer
    from tenure.agents.briefing import news_lines, news_of

    news = news_of(run.client, last)
    value = {**answer.value, **news} if isinstance(answer.value, dict) else answer.value
    if not news_lines(news):
        return msgspec.structs.replace(answer, value=value)
    text = answer.text

    def with_lines() -> str:
        own = text if isinstance(text, str) else text()
        lines = news_lines(news, is_diff_shown=last is not None and bool(last.diff) and str(last.diff) in own)
        return "\n".join(part for part in (own, *lines) if part)

    return msgspec.structs.replace(answer, value=value, text=with_lines)


def _after_effect(error: TenureError, run: Run) -> TenureError:
    error.definite = False
    error.message += f"; before that it was done: {in_a_line(run.done[-1])}"
    return error


def _unfinished(error: Exception, run: Run) -> TenureError:
    if isinstance(error, OSError):
        return Unfinished(f"{run.verb}: {error}", "`tenure show` prints the task's state; a retry is safe")
    from tenure.cli.answers import kept_crash

    return kept_crash(error, [run.verb])


def _leading(words: list[str]) -> tuple[list[str], list[str]]:
    """Shared options that stand before the verb, and the rest."""
    at = 0
    while at < len(words):
        name = words[at].partition("=")[0]
        if name in _WITHOUT_VALUE or (name in _WITH_VALUE and "=" in words[at]):
            at += 1
        elif name in _WITH_VALUE:
            at += 2
        else:
            break
    return words[:at], words[at:]


def _joined(words: list[str]) -> list[str]:
    """`--order -priority` as `--order=-priority`: argparse would take the value for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--order" and word.startswith("-"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _verb(words: list[str]) -> tuple[str, list[str]]:
    """The verb's full name, and the words after it; `plan check` is one verb of two words."""
    first = ALIASES.get(words[0], words[0])
    if len(words) > 1 and f"{first} {words[1]}" in VERBS:
        return f"{first} {words[1]}", words[2:]
    if first in VERBS:
        return first, words[1:]
    from tenure.core.inputs import suggestion

    if first in GROUPS:
        under = [name.split()[1] for name in VERBS if name.startswith(first + " ")]
        if len(words) > 1 and not words[1].startswith("-"):
            near = suggestion(words[1], under)
            raise Usage(f"{first}: there is no {words[1]!r}{near}", f"there are: {', '.join(under)}")
        raise Usage(f"{first} wants one of: {', '.join(under)}", f"as in `tenure {first} {under[0]}`")
    if first in plug_ins():
        return first, words[1:]
    near = suggestion(" ".join(words[:2]), VERBS) if words[1:] and suggestion(first, GROUPS) else ""
    near = near or suggestion(first, [*VERBS, *ALIASES, *GROUPS, *plug_ins()])
    raise Usage(f"unknown verb {first!r}{near}", "`tenure help` lists them")


PLUG_INS = "tenure.commands"  # the group of entry points that bring verbs


def plug_ins() -> list[str]:
    """Verbs of installed packages. Only an unknown verb and `help --all` look for them: it takes 20 ms."""
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=PLUG_INS)} - VERBS.keys())


def plugged_in(name: str) -> Verb:
    """The verb of an installed package: a function `(run, given) → Answer`, with `@options`."""
    from importlib.metadata import entry_points

    entry = next(entry for entry in entry_points(group=PLUG_INS) if entry.name == name)
    try:
        function: Verb = entry.load()
    except Exception as error:
        raise Usage(f"{name}: its plug-in {entry.value} failed: {error}", "reinstall that package") from error
    return function


def function_of(where: str) -> Verb:
    module, _, name = where.partition(":")
    function: Verb = getattr(import_module(f"tenure.cli.{module}"), name)
    return function


def parser_of(name: str, function: Verb) -> Parser:
    """The parser of one verb: its own options, then the shared ones."""
    parser = Parser(
        prog=f"tenure {name}",
        description="\n".join(line.strip() for line in (function.__doc__ or name).strip().splitlines()),
        epilog="\n",  # `format_help` replaces it: few commands print their help
        allow_abbrev=False,
    )
    for names, settings in getattr(function, "declared", ()):
        parser.add_argument(*names, **settings)
    shared = parser.add_argument_group("everywhere")
    own = parser._option_string_actions  # `run --agent` names the agent to start, not the caller
    for names, settings in SHARED:
        if not any(name in own for name in names):
            shared.add_argument(*names, **settings)
    return parser


HELP_WIDTH = 100  # columns, where the terminal has as many


def _formatter(prog: str, width: int = HELP_WIDTH) -> argparse.HelpFormatter:
    # A fixed width: argparse makes a formatter for each option, and asks the terminal's width each time.
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=width)
