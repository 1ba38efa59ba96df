"""`init`, `setup`, `prime`, `hook`: create a store, and set up agents for it."""

from __future__ import annotations

import os
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tenure.cli.main import Answer, Run, Usage, arg, options
from tenure.core import limits
from tenure.core.errors import NoStore, NotFound, StoreUnavailable
from tenure.core.safe_text import one_line, shell_word

if TYPE_CHECKING:
    from tenure.agents.recipes.installation import Change, Standing
    from tenure.agents.recipes.recipe import SetupTarget
    from tenure.client import Client
    from tenure.store_folder import LostStore

LOG = "hook.log"
LARGEST_LOG = limits.HOOK_LOG_BYTES


# --- init ---------------------------------------------------------------------------------------------------


@options(
    arg("--agents", metavar="NAMES", help="also set these up: claude,codex,gemini,opencode,copilot, or all, or none"),
    arg("--force", action="store_true", help="in this very folder, even inside of a repository or another store's"),
)
def init(run: Run, given: Namespace) -> Answer:
    """Create a store in `.tenure`: in a git repository at its root, shared by all worktrees.

    A second run reports what exists and changes nothing. Without --agents only `.tenure` is written.
    """
    from tenure.agents import new_store
    from tenure.agents.recipes import found_agents
    from tenure.config import home_at, without_password
    from tenure.locations import DATABASE, FOLDER, find_folder
    from tenure.store_folder import lost_at
    from tenure.stores.open_store import path_of

    asked = _named(run, given.agents) if given.agents is not None else None
    url = run.setting("url")
    folder = lost = renamed_from = None
    if url is None:
        place = os.path.realpath(run.folder) if given.force else new_store.place_for(run.folder)
        lost = lost_at(os.path.join(place, FOLDER, DATABASE), run.environ)
        folder = new_store.make_folder(place)
        url = os.path.join(folder, DATABASE)
    elif (path := path_of(url)) is not None:
        lost = lost_at(os.path.realpath(path), run.environ)
    run.home = home_at(url, folder or find_folder(run.folder), run.settings)  # also where nothing is found yet
    is_new = not _is_there(run, url)
    if is_new and folder is not None:
        if run.settings["project"].origin in ("default", *_other_projects(run, folder)):
            place = os.path.dirname(folder)
            run.name_project(new_store.named_after(place))
            if run.project != new_store.folder_name(place):
                renamed_from = new_store.folder_name(place)
        new_store.keep_project(folder, run.project)
    # The creator of a store owns it; in an existing one an agent stays an agent.
    with run.client_at(url, role="owner" if is_new else None, create=is_new) as client:
        is_new_project = _lacks_project(client) and client.init().outcome == "CREATED"
        if is_new and path_of(url) is not None:
            new_store.note_store(client.engine, run.project, run.environ)
    value: dict[str, Any] = {
        "store": without_password(url), "project": run.project, "made_store": is_new, "made_project": is_new_project,
        "named_after": renamed_from,
    }  # fmt: skip
    if lost is not None:
        value["lost_store"] = {"last_event": lost.sequence, "copy": lost.copy.path if lost.copy else None}
        run.warn(f"a store was here until event {lost.sequence}; the one made now is new and empty. {_instead(lost)}")
    if asked is None:
        value["found_agents"] = found_agents(_root(run), run.environ)
        value["set_up_agents"] = _set_up_here(run) if value["found_agents"] else []
        return Answer(value, lambda: _welcome(value))
    done = _set_up(run, asked) if asked else Answer({"agents": []})
    value["setup"] = done.value
    return Answer(value, lambda: _welcome(value, _set_up_lines(done.value)), done.code)


def _instead(lost: LostStore) -> str:
    if lost.copy is None:
        return "There is no copy of the former one: `tenure db restore FILE` puts a backup in its place."
    return (
        f"`tenure db restore {shlex.quote(lost.copy.path)}` puts the former one in its place, "
        f"as it was at event {lost.copy.sequence}."
    )


def _set_up_here(run: Run) -> list[str]:
    """The agents that `setup` has set up in this repository."""
    from tenure.agents.recipes import installation, setup_record

    place = _place(run, is_global=False)
    return list(installation.set_up(place, setup_record.load(_memory_file(run, is_global=False), place.root)))


def _set_up_lines(value: dict[str, Any]) -> list[str]:
    """The setup of agents in a few lines: `setup --check` lists every piece."""
    if not value["agents"]:
        return []
    files = [file for file in value["files"] if file["what"] in ("made", "changed")]
    lines = [f"Set up {', '.join(value['agents'])}: {len(files)} files written; `tenure setup --check` lists them."]
    lines += [
        f"  {file['path']}: {file.get('problem') or 'edited by hand, kept'}"
        for file in value["files"]
        if file.get("problem") or file.get("kept")
    ]
    needs = [f"  {gate['agent']}: {gate['text']}" for gate in value["gates"] if not gate["is_open"]]
    return lines + (["Still needs you:", *needs] if needs else [])


def _other_projects(run: Run, folder: str) -> list[str]:
    """The name that `init` gave to the store of a folder above: not this one's."""
    from tenure.config import PROJECT
    from tenure.locations import find_folder

    above = find_folder(os.path.dirname(os.path.dirname(folder)))
    return [os.path.join(above, PROJECT)] if above else []


def _is_there(run: Run, url: str) -> bool:
    path = url.removeprefix("sqlite://")
    if "://" not in path:
        return os.path.isfile(path)
    try:
        run.client_at(url).close()
    except StoreUnavailable:  # if it cannot be reached at all, creating it reports that
        return False
    return True


def _lacks_project(client: Client) -> bool:
    try:
        client.tracks()
    except NotFound:
        return True
    return False


def _welcome(value: dict[str, Any], more: Sequence[str] = ()) -> str:
    if value["made_store"]:
        lines = [f"Created {value['store']}, project {value['project']}."]
    elif value["made_project"]:
        lines = [f"Created project {value['project']} in {value['store']}."]
    else:
        lines = [f"Already here: {value['store']}, project {value['project']}."]
    if value["named_after"] is not None:
        folder = shell_word(one_line(value["named_after"]))
        lines.append(f"Its folder is {folder}: names of projects have ASCII letters, digits, '.', '_' and '-' alone.")
    is_set_up = value.get("set_up_agents", ())
    found = {name: why for name, why in value.get("found_agents", {}).items() if name not in is_set_up}
    if found:
        names = ", ".join(f"{name} ({why})" for name, why in found.items())
        way = f"tenure setup {' '.join(map(shell_word, found))}"
        lines += [f"Agents found: {names}.", f"  {way}   shows them how to use it"]
    lines += [*more, 'Next:\n  tenure add "a first task"', "  tenure claim", '  tenure done -s "what you did"']
    return "\n".join(lines)


# --- setup --------------------------------------------------------------------------------------------------


@options(
    arg("agents", nargs="*", metavar="AGENT", help="claude, codex, gemini, opencode, copilot (else those found here)"),
    arg("--check", action="store_true", help="only report pieces that are active, missing, or need a confirmation"),
    arg("--print", dest="shows", action="store_true", help="show what would be written, without writing"),
    arg("--remove", action="store_true", help="remove exactly what setup wrote"),
    arg("--global", dest="is_global", action="store_true", help="for all your projects, in your home folder"),
    arg("--force", action="store_true", help="also replace pieces that were edited by hand"),
)
def setup(run: Run, given: Namespace) -> Answer:
    """Install instructions, a skill, an MCP entry and hooks in files that agents read.

    Other content of those files stays byte for byte. Files outside the repository are written only with --global.
    """
    if given.check + given.shows + given.remove > 1 and not (given.shows and given.remove):
        raise Usage("setup: one of --check, --print and --remove", "--print --remove shows what would be removed")
    asked = _named(run, ",".join(given.agents)) if given.agents else None
    if given.check:
        return _check(run, asked, given.is_global)
    return _set_up(
        run, asked, is_global=given.is_global, remove=given.remove, shows=given.shows, force=given.force
    )  # fmt: skip


def _named(run: Run, names: str) -> list[str]:
    """The agents that are meant by `claude,codex`, `all` or `none`."""
    from tenure.agents.recipes import NAMES
    from tenure.agents.recipes import names as all_names
    from tenure.core.inputs import suggestion

    words = [word for word in names.replace(",", " ").split() if word != "none"]
    known = NAMES if all(word in (*NAMES, "all") for word in words) and "all" not in words else all_names()
    for word in words:
        if word not in (*known, "all"):
            raise Usage(f"{run.verb}: no agent {word!r}{suggestion(word, known)}", f"there are: {', '.join(known)}")
    return list(known) if "all" in words else [name for name in known if name in words]


def _root(run: Run) -> str:
    """The worktree that is set up; the store may be that of another."""
    from tenure.agents.new_store import worktree_of
    from tenure.locations import find_folder

    return worktree_of(run.folder) or os.path.dirname(find_folder(run.folder) or "") or os.path.realpath(run.folder)


def _place(run: Run, is_global: bool) -> SetupTarget:
    from tenure.agents.recipes import start_command
    from tenure.agents.recipes.recipe import SetupTarget

    home = run.environ.get("HOME") or os.path.expanduser("~")
    start = start_command(run.environ, is_global=is_global)
    return SetupTarget(home if is_global else _root(run), home, is_global, start, run.environ)


def _memory_file(run: Run, is_global: bool) -> str:
    """Beside the store; for the user's own settings, and where there is no store, in the user's state folder."""
    from tenure.agents.recipes.setup_record import NAME
    from tenure.locations import find_folder
    from tenure.user_state import user_state

    folder = None if is_global else find_folder(run.folder)
    return os.path.join(folder or user_state(run.environ), NAME)


def _check(run: Run, asked: list[str] | None, is_global: bool) -> Answer:
    from tenure.agents.recipes import installation, setup_record
    from tenure.agents.recipes.pieces import ACTIVE

    place = _place(run, is_global)
    there = installation.set_up(place, setup_record.load(_memory_file(run, is_global), place.root))
    names = asked or there
    standings = installation.standings(place, names, among={*there, *names})
    gates = _gates(place, names)
    value = {"agents": names, "pieces": [s._asdict() for s in standings], "gates": gates}
    code = 0 if names and all(s.state == ACTIVE for s in standings) else 7
    return Answer(value, lambda: _standing_text(standings, gates, place.root), code)


def _gates(place: SetupTarget, names: list[str]) -> list[dict[str, Any]]:
    """The confirmations that these agents need from a person."""
    from tenure.agents.recipes import by_name, is_on_path

    gates = [{"agent": name, **gate._asdict()} for name in names for gate in by_name(name).gates(place)]
    if names and not place.is_global and not is_on_path(place.environ):
        text = "put `tenure` on the PATH, as `uv tool install .` in a checkout does: the files name it"
        gates.append({"agent": "all", "text": text, "is_open": False})
    return gates


def _standing_text(standings: list[Standing], gates: list[dict[str, Any]], root: str) -> str:
    from tenure.cli.text_format import table

    if not standings:
        return "No agent is set up here.\n  tenure setup   sets up the agents it finds"
    rows = [(s.agent, s.what, _short(s.path, root), f"{s.state} {s.why}".strip()) for s in standings]
    text = table(rows, ("agent", "what", "where", "state"))
    closed = [f"\n  {gate['agent']}: {gate['text']}" for gate in gates if not gate["is_open"]]
    return text + "\n\nStill needs you:" + "".join(closed) if closed else text


def _short(path: str, root: str) -> str:
    return os.path.relpath(path, root) if path.startswith(root + os.sep) else path


def _set_up(
    run: Run,
    asked: list[str] | None,
    *,
    is_global: bool = False,
    remove: bool = False,
    shows: bool = False,
    force: bool = False,
) -> Answer:
    from tenure.agents.recipes import found_agents, installation, setup_record
    from tenure.agents.recipes import names as all_names

    place = _place(run, is_global)
    file = _memory_file(run, is_global)
    memory = setup_record.load(file, place.root)
    there = installation.set_up(place, memory)
    if not (remove or shows or is_global):
        _ = run.home  # NoStore: the agents' instructions would be about a store that does not exist
    if asked is None:
        asked = there if remove else list(found_agents(place.root, run.environ))
    if not asked:
        if remove:
            return Answer({"agents": [], "files": []}, "No agent is set up here; nothing to remove.")
        raise Usage("setup: no agent found here", f"name one: {', '.join(all_names())}")
    agents = [name for name in all_names() if (name in there or name in asked) and not (remove and name in asked)]
    changes = installation.prepare(place, asked, agents, memory, force=force)
    if shows:
        return _shown(changes, place.root)
    remembered = installation.carry_out(place, changes, agents, memory)
    _record_types(run, agents)
    setup_record.save(file, place.root, remembered)
    gates = [] if remove else _gates(place, asked)
    standings = [] if remove else installation.standings(place, asked, among=agents)
    files = [_file_value(c, place.root) for c in changes]
    value = {"agents": agents, "command": place.command, "files": files, "gates": gates}
    text = [*(_file_line(c, place.root) for c in changes if c.is_needed or c.kept or c.problem)]
    if not text:
        text = ["Nothing to remove." if remove else "Everything is set up already."]
    if standings:
        text += ["", _standing_text(standings, gates, place.root)]
        if len(place.command) > 1:
            text += ["", f"`tenure` is not on your PATH: the files name {place.command[0]}."]
    return Answer(value, "\n".join(text), 8 if any(c.problem for c in changes) else 0)


def _record_types(run: Run, names: list[str]) -> None:
    """Let later commands recognise agents of plug-ins without looking for entry points."""
    from tenure.agents.agent_types import plugged_in
    from tenure.agents.identity import record_types
    from tenure.agents.recipes import NAMES

    made = [plugged_in(name) for name in names if name not in NAMES]
    record_types(run.environ, *(one.known for one in made if one is not None))


def _what(change: Change) -> str:
    if change.problem:
        return "left alone"
    if change.before == change.after:
        return "unchanged"
    return "made" if change.before is None else "removed" if change.after is None else "changed"


def _file_value(change: Change, root: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "path": _short(change.shown, root), "what": _what(change), "problem": change.problem, "kept": change.kept,
    }  # fmt: skip
    if change.problem:
        fields["by_hand"] = change.by_hand
    return {key: value for key, value in fields.items() if value}


def _file_line(change: Change, root: str) -> str:
    line = f"{_what(change):<10}  {_short(change.shown, root)}"
    if change.kept:
        line += f"\n  its {', '.join(change.kept)}: edited by hand, kept as it is; --force replaces it"
    if change.problem:
        line += f"\n  it {change.problem}"
        if change.by_hand:
            line += "\n  to do it by hand, add:\n" + "".join(f"    {x}\n" for x in change.by_hand.splitlines())
    return line


def _shown(changes: list[Change], root: str) -> Answer:
    from difflib import unified_diff

    parts, values = [], []
    for change in changes:
        if not change.is_needed:
            if change.problem or change.kept:
                parts.append(_file_line(change, root))
                values.append(_file_value(change, root))
            continue
        name = _short(change.shown, root)
        before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
        old = "/dev/null" if change.before is None else f"a/{name}"
        new = "/dev/null" if change.after is None else f"b/{name}"
        lines = unified_diff(before, after, old, new)
        diff = "".join(x if x.endswith("\n") else x + "\n\\ No newline at end of file\n" for x in lines)
        parts.append(diff.rstrip("\n"))
        values.append({**_file_value(change, root), "diff": diff})
    return Answer(values, "\n".join(parts) or "Nothing would change.")


# --- prime and hook -----------------------------------------------------------------------------------------


@options()
def prime(run: Run, given: Namespace) -> Answer:
    """Print your identity, claims, mail and ready tasks, in at most 600 tokens."""
    from tenure.agents.own_usage import is_below_a_runner
    from tenure.agents.session_brief import prime as text_of
    from tenure.agents.tokens import estimate

    try:
        _ = run.home
    except NoStore:
        if run.is_terminal:
            raise
        return Answer({"text": "", "tokens": 0})  # in an agent's start-up script: nothing to say about this folder
    text = text_of(run.client, has_runner=is_below_a_runner(run.environ))
    return Answer({"text": text, "tokens": estimate(text)}, text)


@options(
    arg("event", nargs="?", metavar="EVENT", help="its name, where the payload does not say it"),
    arg("--from", dest="caller", metavar="AGENT", help="the calling agent (else detected)"),
)
def hook(run: Run, given: Namespace) -> int:
    """Answer an agent's hook: the event comes as JSON on stdin. `tenure setup` writes the hook's entry.

    It never fails: errors are written to `.tenure/hook.log`.
    """
    output: dict[str, Any] = {}
    try:
        source = getattr(sys.stdin, "buffer", sys.stdin)
        given_in = "" if sys.stdin.isatty() else source.read()
        payload = given_in.encode() if isinstance(given_in, str) else given_in
        from tenure.agents.hooks import HookOptions, answer

        folder = run.folder if given.dir else None
        chosen = HookOptions(given.event, given.caller, folder, given.project, given.agent, given.session, given.tenant)
        output = answer(payload, chosen, run.environ, run.folder, time.time)
    except Exception as error:  # noqa: BLE001 an agent must not fail because of its hook
        _note(run, given.event, error)
    if output or run.is_json:
        from tenure.cli.answers import say_json

        say_json(output)
    return 0


def _note(run: Run, event: str | None, error: Exception) -> None:
    with suppress(Exception):
        path = os.path.join(run.home.folder, LOG)
        with open(path, "a", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            file.write(f"{when} hook {event or ''}: {type(error).__name__}: {str(error)[:500]}\n")
            is_full = file.tell() > LARGEST_LOG
        if is_full:
            os.replace(path, path + ".old")
