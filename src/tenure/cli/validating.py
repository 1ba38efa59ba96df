"""Checking results: the verdict that `done` waits for; `approve`, `reject`; and `trust`, which lets commands be run."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tenure.cli.frame import Answer, Run, Usage, answered, arg, options
from tenure.cli.kinds import contents
from tenure.core.outcomes import Outcome

if TYPE_CHECKING:
    from tenure.agents.validating import Validating

TASK = arg("task", help="which one: id, key, short key or an unambiguous beginning")


def verdict_here(run: Run, submitted: Outcome) -> Outcome:
    """The verdict on what was just handed in, if it can be found here; else what it waits for."""
    from tenure.agents.examining import Examiner, tools_for, verdict_outcome
    from tenure.core.records import replace

    assert submitted.validation is not None
    examiner = Examiner(run.client, tools_for(run.folder, run.environ))
    examined = examiner.examine_task(submitted.validation["key"])
    if isinstance(examined, str):
        return replace(submitted, hint=examined)
    return verdict_outcome(submitted, examined)


def validating_of(run: Run, say: Callable[[str], object]) -> Validating:
    """A thread that checks what waits in the store's projects; the folder here is that of this run's own."""
    from tenure.agents.examining import tools_for
    from tenure.agents.validating import Validating

    client = run.client
    return Validating(client, lambda: tools_for(run.folder, run.environ), client.projects, say=say)


@options(TASK, arg("-m", "--note", type=contents, default="", metavar="TEXT", help="what you think of it"))
def approve(run: Run, given: Namespace) -> Answer:
    """The result that waits for a verdict is good: the task is completed.

    A person's word stands for any validator's; an agent may review what another one made, where a review is asked for.
    """
    return answered(run.client.approve(given.task, given.note))


@options(TASK, arg("-m", "--reason", type=contents, required=True, metavar="TEXT", help="what to mend"))
def reject(run: Run, given: Namespace) -> Answer:
    """The result is not good: the attempt has failed, and the reason is there for whoever tries again."""
    return answered(run.client.reject(given.task, given.reason))


@options(
    arg("--show", action="store_true", help="only say what there is, and whether it is allowed"),
    arg("--revoke", action="store_true", help="allow nothing of it any more"),
    arg("--list", action="store_true", help="every file whose commands you have allowed"),
)
def trust(run: Run, given: Namespace) -> Answer:
    """Allow the commands of this repository's tenure.toml, exactly as they are now, for you alone.

    Until then a cloned repository runs nothing, and a change is not run before you have allowed it. Read them first:
    --show prints them.
    """
    from tenure.validators.trust import Trusted, changes, read_section, user_folder

    if given.show + given.revoke + given.list > 1:
        raise Usage("trust: --show, --revoke and --list are three questions", "give one of them")
    trusted = Trusted(user_folder(run.environ))
    if given.list:
        known = trusted.listed()
        return Answer({"trusted": sorted(known)}, "\n".join(sorted(known)) or "you have allowed nothing")
    path = _file(run)
    if given.show:
        return _shown(trusted, path)
    _check_owner(run)
    if given.revoke:
        was = trusted.forget(path)
        said = "nothing of it is allowed any more" if was else "nothing of it was allowed"
        return Answer({"file": path, "trusted": False, "changed": was}, f"{path}: {said}")
    section = read_section(path)
    before = trusted.listed().get(path, {})
    trusted.trust(path, section)
    lines = changes(before, section)
    value = {"file": path, "trusted": True, "changes": list(lines), "starts": section}
    if not section:
        return Answer(value, f"{path} starts nothing")
    return Answer(value, "\n".join([f"{path}: allowed as it is now", *(f"  {line}" for line in lines)]))


def _file(run: Run) -> str:
    import os

    from tenure.config import shared_file
    from tenure.core.errors import NotFound

    path = shared_file(run.folder)
    if path is None:
        raise NotFound(f"there is no tenure.toml in {run.folder} or above", "commands for validators stand there")
    return os.path.realpath(path)


def _shown(trusted: Any, path: str) -> Answer:
    from tenure.validators.trust import Untrusted, changes, read_section

    section = read_section(path)
    try:
        trusted.checked(path)
        is_trusted, why = True, "allowed as it is now" if section else "starts nothing"
    except Untrusted as error:
        is_trusted, why = False, error.message.removeprefix(f"{path}: ")
    lines = changes({}, section)
    value = {"file": path, "trusted": is_trusted, "why": why, "starts": section}
    return Answer(value, "\n".join([f"{path}: {why}", *(f"  {line[2:]}" for line in lines)]))


def _check_owner(run: Run) -> None:
    if run.who.role != "owner":
        from tenure.core.errors import NotAllowed

        raise NotAllowed("trust: is for the person whose machine it is", "ask a person to do it")
