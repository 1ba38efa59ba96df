"""Applies recipes: computes what each file would become, writes it, reports its state, removes it again.

Setup and removal are one operation: a file is restored to its content without tenure, and then gets the pieces of all
agents that remain set up.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from tenure.agents.recipes import by_name, settings_files, setup_record
from tenure.agents.recipes import names as all_names
from tenure.agents.recipes.pieces import ACTIVE, EDITED, HOOKS, MISSING, OUTDATED, UNREADABLE, CannotMerge, Piece
from tenure.agents.recipes.recipe import SetupTarget
from tenure.agents.recipes.setup_record import Insertions, SetupRecord


class Standing(NamedTuple):
    """One piece of one agent, and its state."""

    agent: str
    what: str
    path: str
    state: str
    why: str = ""


@dataclass
class Change:
    """One file: its current and its new text. `problem`: why nothing is written; `by_hand`: what to add manually."""

    path: str  # real
    shown: str  # as the recipes name it
    before: str | None = None
    after: str | None = None
    record: Insertions | None = None
    kept: list[str] = field(default_factory=list)  # pieces that a user has edited
    problem: str | None = None
    by_hand: str = ""

    @property
    def is_needed(self) -> bool:
        return self.problem is None and self.before != self.after


class Wanted(NamedTuple):
    agent: str
    piece: Piece


def pieces_of(target: SetupTarget, agents: Iterable[str], among: Collection[str] | None = None) -> list[Wanted]:
    """The pieces of these agents; `among`: all agents that are set up."""
    names = list(agents)
    chosen = frozenset(among if among is not None else names)
    return [Wanted(name, piece) for name in names for piece in by_name(name).pieces(target, chosen)]


# --- state ------------------------------------------------------------------------------------------------


def standings(target: SetupTarget, agents: Collection[str], among: Collection[str] | None = None) -> list[Standing]:
    """The state of every piece of these agents in the current files; `among`: all agents that are set up."""
    return [_standing(w) for w in pieces_of(target, agents, among) if w.piece.is_wanted]


def _standing(wanted: Wanted) -> Standing:
    agent, piece = wanted
    try:
        state, why = piece.state(settings_files.read(piece.path)), ""
    except CannotMerge as error:
        state, why = UNREADABLE, error.why
    return Standing(agent, piece.what, piece.path, state, why)


def set_up(target: SetupTarget, record: SetupRecord) -> list[str]:
    """The agents that are set up here: those of the record, and those whose hooks are installed."""
    found = set(record.agents)
    for wanted in pieces_of(target, all_names(), among=()):
        is_hook = wanted.piece.what == HOOKS and wanted.piece.is_wanted
        if is_hook and _standing(wanted).state in (ACTIVE, OUTDATED, EDITED):
            found.add(wanted.agent)
    return [name for name in all_names() if name in found]


# --- changes ----------------------------------------------------------------------------------------------


def prepare(
    target: SetupTarget, asked: Collection[str], agents: Collection[str], record: SetupRecord, *, force: bool = False
) -> list[Change]:
    """The changes to the files of the agents in `asked`, with exactly `agents` set up. Writes nothing."""
    within = os.sep if target.is_global else target.root
    mine = [w for name in asked for w in pieces_of(target, [name, *by_name(name).linked], among=agents)]
    changes: dict[str, Change] = {}
    known: dict[str, list[Piece]] = {}
    for _, piece in mine:
        try:
            path = settings_files.real_path(piece.path, within)
        except CannotMerge as error:
            if piece.is_wanted:
                changes[piece.path] = Change(piece.path, piece.path, problem=error.why, by_hand=_alone([piece]))
            continue
        changes.setdefault(path, Change(path, piece.path))
        known.setdefault(path, [])
    wanted: dict[str, list[Piece]] = {path: [] for path in known}
    for agent, piece in pieces_of(target, all_names(), among=agents):
        path = os.path.realpath(piece.path)
        if path not in known:
            continue
        for table in [known, wanted] if agent in agents and piece.is_wanted else [known]:
            if piece not in table[path]:
                table[path].append(piece)
    for path, pieces in known.items():
        _become(changes[path], pieces, wanted[path], record.files.get(path), force)
    return [c for c in changes.values() if c.problem or c.before is not None or c.after is not None]


def _alone(pieces: list[Piece]) -> str:
    """These pieces as a new file: the text that a user can add manually."""
    text: str | None = None
    for piece in pieces:
        text = piece.steps(text)[-1]
    return text or ""


def _is_there(piece: Piece, text: str | None) -> bool:
    """Is the piece there, added manually to a file that cannot be edited?"""
    try:
        return piece.state(text) == ACTIVE
    except CannotMerge:
        return False


def _become(change: Change, known: list[Piece], wanted: list[Piece], kept: Insertions | None, force: bool) -> None:
    try:
        change.before = change.after = settings_files.read(change.path)
        base = _without(change, known, kept, force)
        texts: list[str] = []
        for piece in wanted:
            if piece.what not in change.kept:
                texts += piece.steps(texts[-1] if texts else base)
        change.after = texts[-1] if texts else base
        change.record = setup_record.inserted(base, texts) if texts else None
    except CannotMerge as error:
        theirs = "tenure" not in (change.before or "")
        is_fine = all(_is_there(piece, change.before) for piece in wanted) if wanted else theirs
        if not is_fine:
            change.problem = error.why
            change.by_hand = _alone(wanted)


def _without(change: Change, known: list[Piece], kept: Insertions | None, force: bool) -> str | None:
    text = change.before
    if text is None:
        return None
    if kept is not None and kept.after == setup_record.fingerprint(text):
        return setup_record.undone(text, kept)
    for piece in reversed(known):
        state = piece.state(text)
        if state == EDITED and not force:
            change.kept.append(piece.what)
        elif state == UNREADABLE:
            raise CannotMerge("cannot be read by the rules of its format, so it cannot be edited safely")
        elif state != MISSING and text is not None:
            text = piece.take(text)
        if text is None:
            break
    return text


# --- writes ------------------------------------------------------------------------------------------------


def carry_out(
    target: SetupTarget, changes: Iterable[Change], agents: Collection[str], record: SetupRecord
) -> SetupRecord:
    """Write the changes and return the new record. A file that cannot be written gets its `problem`."""
    names = [name for name in all_names() if name in agents]
    new_record = SetupRecord(agents=names, files=dict(record.files), folders=list(record.folders))
    for change in changes:
        if change.problem is not None:
            continue
        try:
            if change.is_needed:
                new_record.folders = _write(change, new_record.folders, target.root)
        except CannotMerge as error:
            change.problem = error.why
            continue
        if change.record is not None:
            new_record.files[change.path] = change.record
        else:
            new_record.files.pop(change.path, None)
    if not new_record.files:
        new_record.folders = []
    return new_record


def _write(change: Change, folders: list[str], root: str) -> list[str]:
    if settings_files.read(change.path) != change.before:
        raise CannotMerge("was changed meanwhile; run it again")
    if change.after is not None:
        return [*settings_files.write(change.path, change.after), *folders]
    settings_files.remove(change.path)
    left = list(folders)
    folder = os.path.dirname(change.path)
    # Folders that were created for it, and those named tenure.
    while folder != os.path.realpath(root) and (folder in left or os.path.basename(folder) == "tenure"):
        with suppress(OSError):
            os.rmdir(folder)
        if os.path.isdir(folder):
            break
        if folder in left:
            left.remove(folder)
        folder = os.path.dirname(folder)
    return left
