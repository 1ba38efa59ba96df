"""`approve`, `reject`, `trust`; and the verdict that `done` waits for."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tenure.cli.answers import asked
from tenure.cli.main import Answer, Run, Usage, arg, options, verb_of
from tenure.cli.option_kinds import contents
from tenure.cli.task_reads import TASK
from tenure.core import commands as c
from tenure.core.outcomes import Outcome

if TYPE_CHECKING:
    from tenure.agents.result_checker import ValidationThread


def verdict_here(run: Run, submitted: Outcome) -> Outcome:
    """The verdict on the submission, if its check can run here; else what it waits for."""
    from tenure.agents.result_checker import ResultChecker, tools_for, verdict_outcome
    from tenure.core.records import replace

    assert submitted.validation is not None
    checker = ResultChecker(run.client, tools_for(run.folder, run.environ))
    checked = checker.check_task(submitted.validation["key"])
    if isinstance(checked, str):
        return replace(submitted, hint=checked)
    return verdict_outcome(submitted, checked)


def validating_of(run: Run, say: Callable[[str], object], *, lands: bool = False) -> ValidationThread:
    """A thread that checks waiting results of the store's projects; this folder is for this run's project.

    `lands`: it lands in this folder's repository, too.
    """
    from tenure.agents.landings import Lander
    from tenure.agents.result_checker import ValidationThread, tools_for

    client = run.client
    lander = Lander(client, run.folder, lambda: tools_for(run.folder, run.environ), say=say) if lands else None
    return ValidationThread(client, lambda: tools_for(run.folder, run.environ), client.projects, say=say, lander=lander)


approve = verb_of(
    c.Approve,
    """Pass a result that waits for a verdict: the task is completed, or its commit waits to be landed.

    A person's verdict counts for any validator. An agent's own session gives no verdict; through a server, an agent
    with its own key may review results of others, where the task asks for a review.
    """,
    TASK,
    arg("-m", "--note", type=contents, default="", metavar="TEXT", help="your note"),
)
reject = verb_of(
    c.Reject,
    "Reject a result that is not accepted yet: the attempt failed, and the next holder gets the reason.",
    TASK,
    arg("-m", "--reason", type=contents, required=True, metavar="TEXT", help="what to fix"),
)


@options(
    arg("--show", action="store_true", help="only show the risky settings, and whether they are allowed"),
    arg("--revoke", action="store_true", help="withdraw what you allowed"),
    arg("--list", action="store_true", help="list the files in which you allowed something"),
    arg("-y", "--yes", action="store_true", help="do not ask; without a terminal nothing is asked either"),
)
def trust(run: Run, given: Namespace) -> Answer:
    """Allow the risky settings of this repository, exactly as they are now, for you alone.

    That is: commands, hooks, agents to start and spawners, a server to talk to, sinks, channels for notices, settings
    of `serve`, of the gateway and of webhooks, in tenure.toml and in a .tenure/config.toml that is not yours; and a
    store that git tracks. Until then they are ignored, and a change is ignored until you allow it too. They are shown
    before you are asked; --show only shows them.
    """
    from tenure.trust.grants import Trusted
    from tenure.user_state import user_state

    if given.show + given.revoke + given.list > 1:
        raise Usage("trust: --show, --revoke and --list exclude each other", "give one of them")
    trusted = Trusted(user_state(run.environ))
    if given.list:
        known = trusted.listed()
        return Answer({"trusted": sorted(known)}, "\n".join(sorted(known)) or "you have allowed nothing")
    files = _risky(run)
    if given.show:
        return _shown(trusted, files)
    _check_owner(run)
    if given.revoke:
        was = [path for path in files if trusted.forget(path)]
        lines = [f"{path}: nothing of it {'is allowed any more' if path in was else 'was allowed'}" for path in files]
        return Answer({"files": list(files), "trusted": False, "changed": bool(was)}, "\n".join(lines))
    return _allowed(run, trusted, files, asks=not given.yes)


def _allowed(run: Run, trusted: Any, files: Mapping[str, dict[str, Any]], *, asks: bool) -> Answer:
    from tenure.trust.grants import changes, without_secrets

    for path, section in files.items():
        _check_valid(path, section)
    known = trusted.listed()
    lines = {path: changes(known.get(path, {}), section) for path, section in files.items()}
    text = "\n".join(line for path, section in files.items() for line in _lines(path, section, lines[path]))
    listed = [{"file": path, "changes": list(lines[path]), "has": without_secrets(files[path])} for path in files]
    value = {"trusted": True, "files": listed}
    if not any(files.values()):
        return Answer(value, text)
    if asks and run.is_terminal and not run.is_json and sys.stdin.isatty() and not asked(f"{text}\nAllow this?"):
        return Answer({**value, "trusted": False}, "nothing was allowed")
    for path, section in files.items():
        trusted.trust(path, section)
    return Answer(value, f"{text}\nallowed as it is now, for you alone")


def _check_valid(path: str, section: Mapping[str, Any]) -> None:
    """Refuse commands and judges that could never run, such as a judge without its kind."""
    from tenure.core.errors import InvalidInput
    from tenure.validators.commands import read_commands
    from tenure.validators.judges.judge_config import read_judges

    try:
        read_commands(section.get("commands", {}))
        read_judges(section.get("judges", {}))
    except InvalidInput as error:
        raise InvalidInput(
            f"{path}: {error.message}", error.hint or "fix it, then allow it; nothing was allowed"
        ) from None


def _lines(path: str, section: dict[str, Any], lines: Iterable[str]) -> list[str]:
    if not section:
        return [f"{path}: has nothing that needs it"]
    return [f"{path}:", *(f"  {line}" for line in lines or ("no change",))]


def _risky(run: Run) -> dict[str, dict[str, Any]]:
    """The files here that the user must allow: each real path, and its risky part."""
    import os

    from tenure.core.errors import NotFound
    from tenure.locations import DATABASE, find_folder, local_files, shared_file
    from tenure.trust.grants import read_section
    from tenure.trust.ownership import STORE_SECTION, why_store_foreign

    shared, folder = shared_file(run.folder), find_folder(run.folder)
    found = {os.path.realpath(shared): read_section(shared)} if shared else {}
    found |= {local: section for local in local_files(run.folder) if (section := read_section(local))}
    if folder is not None:
        store = os.path.join(folder, DATABASE)
        if why_store_foreign(store) is not None:
            found[store] = dict(STORE_SECTION)
    if not found:
        raise NotFound(
            f"nothing in {run.folder} or above needs to be allowed",
            "`tenure trust` is for risky settings in tenure.toml",
        )
    return found


def _shown(trusted: Any, files: Mapping[str, dict[str, Any]]) -> Answer:
    from tenure.trust.grants import Untrusted, changes, without_secrets

    listed, text = [], []
    for path, section in files.items():
        try:
            trusted.check(path, section)
            is_trusted, why = True, "allowed as it is now" if section else "has nothing that needs it"
        except Untrusted as error:
            is_trusted, why = False, error.message.removeprefix(f"{path}: ").partition("; it has")[0]
        listed.append({"file": path, "trusted": is_trusted, "why": why, "has": without_secrets(section)})
        text += [f"{path}: {why}", *(f"  {line[2:]}" for line in changes({}, section))]
    return Answer({"trusted": all(one["trusted"] for one in listed), "files": listed}, "\n".join(text))


def _check_owner(run: Run) -> None:
    if run.who.role != "owner":
        from tenure.core.errors import NotAllowed

        raise NotAllowed("trust: only the person who owns this machine may allow settings", "ask a person to do it")
