"""`config`, `daemon`, `db upgrade|backup|check|clock|new-epoch`: the store and the settings themselves."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from tenure.cli.main import Answer, Run, Usage, arg, options
from tenure.cli.option_kinds import seconds
from tenure.cli.terminal_output import say
from tenure.cli.text_format import table
from tenure.config import SECRETS, SETTINGS, without_password


@options(arg("key", nargs="?", help="one setting (else all)"))
def config(run: Run, given: Namespace) -> Answer:
    """Show the settings, their values, and where each came from: default, a file, the environment, or a flag."""
    if given.key is not None and given.key not in SETTINGS:
        from tenure.core.inputs import suggestion

        raise Usage(f"config: unknown setting {given.key!r}{suggestion(given.key, SETTINGS)}")
    chosen = {key: run.settings.seen(key) for key in run.settings if given.key in (None, key)}
    if chosen.get("url") and chosen["url"].value:
        chosen["url"] = chosen["url"]._replace(value=without_password(chosen["url"].value))
    for key in SECRETS & chosen.keys():
        if chosen[key].value is not None:
            chosen[key] = chosen[key]._replace(value="…")
    value = {
        key: {"value": setting.value, "origin": setting.origin, "meaning": SETTINGS[key].meaning}
        for key, setting in chosen.items()
    }
    if given.key is not None:
        return Answer(value, str(chosen[given.key].value))
    return Answer(value, table([(key, _spelt(v.value), v.origin) for key, v in chosen.items()]))


def _spelt(value: object) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


@options()
def upgrade(run: Run, given: Namespace) -> Answer:
    """Upgrade the store to this version's schema, as opening it does; a backup is made first."""
    schema = getattr(run.client.store, "schema", None)
    return Answer({"store": run.home.shown, "schema": schema}, f"{run.home.shown} has schema {schema}")


@options(arg("--every", type=seconds, default=2.0, metavar="SECONDS", help="longest time between sweeps (2)"))
def daemon(run: Run, given: Namespace) -> int:
    """Coordinate the store's projects until stopped. Optional: it makes events prompt.

    Every command settles expired leases, retries, delays and offers first; with the daemon their events come
    promptly, for readers of the log and `wait`. It is the same coordinator as in `serve`: of any
    number of both on one store, one leads, and another takes over within 30 s if it dies.

    Results that wait for a verdict are checked too: by the tests of this folder, where `tenure trust` allows them.
    """
    import signal
    import threading

    from tenure.cli.validation_verbs import validating_of
    from tenure.server.coordinator import Note, coordinator_of

    def tell(note: Note) -> None:
        if note.level == "error":
            say(f"tenure: {note.message}; retrying", sys.stderr)

    ended = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())
    coordinator = coordinator_of(run.client.engine, looks=given.every, tell=tell)
    validating = validating_of(run, lambda text: say(text, sys.stderr))
    coordinator.start()
    validating.start()
    ended.wait()
    validating.stop()
    coordinator.stop()
    return 0


@options(arg("target", help="the file to write; it must not exist"))
def backup(run: Run, given: Namespace) -> Answer:
    """Back up the store while it is in use. A copy that is opened elsewhere begins a new epoch."""
    target = os.path.join(run.folder, given.target)
    run.client.backup(target)
    return Answer({"backup": target, "bytes": os.path.getsize(target)}, f"the store is copied to {target}")


@options()
def check(run: Run, given: Namespace) -> Answer:
    """Check the store's bytes and every invariant of its rows; `doctor` checks everything else."""
    wrong = run.client.verify()
    return Answer({"ok": not wrong, "findings": wrong}, "\n".join(wrong) or "no errors found", 10 if wrong else 0)


@options(arg("--accept", action="store_true", help="accept the host's clock as right"))
def clock(run: Run, given: Namespace) -> Answer:
    """Show the difference between this host's clock and the store's time, and repair it after a wrong clock.

    The store's time never goes back by itself: after a clock that was ahead it continues from the last event. With
    --accept it is the host's again: times that were set ahead move back by as much, and claims that were made ahead
    end without a lost attempt.
    """
    from tenure.cli.text_format import lasting

    if given.accept:
        _as_owner(run, "db clock --accept")
        back, ended = run.client.accept_clock()
        said = "the clock is accepted" + (f"; the store's time went back by {lasting(back / 1e6)}" if back else "")
        lines = [said, *(f"  {key}: its claim ended, no attempt is lost" for key in ended)]
        return Answer({"back": back / 1e6, "ended": ended}, "\n".join(lines))
    state = run.client.clock()
    value = {"now": state.now, "behind": state.behind / 1e6, "jump": state.jump / 1e6, "host": state.is_host}
    whose = "this host's clock" if state.is_host else "the server's clock"
    if state.jump:
        said = (
            f"{whose} jumped {lasting(state.jump / 1e6)} ahead: nothing is written. Set it right; "
            "if it is right now, `tenure db clock --accept`"
        )
    elif state.behind and state.is_host:
        said = (
            f"{whose} is {lasting(state.behind / 1e6)} behind the store's time, which goes on from the last event. "
            "If the clock is right, `tenure db clock --accept`"
        )
    elif state.behind:
        said = f"{whose} is {lasting(state.behind / 1e6)} behind the last event: the store's time waits for it"
    else:
        said = f"{whose} is the store's time"
    return Answer(value, said)


def _as_owner(run: Run, verb: str) -> None:
    if run.who.role != "owner":
        from tenure.core.errors import NotAllowed

        raise NotAllowed(f"{verb}: needs the role owner", "ask a person to do it")


@options(arg("-m", "--reason", required=True, metavar="TEXT", help="the reason, for the log"))
def new_epoch(run: Run, given: Namespace) -> Answer:
    """End every live claim and void all receipts, as after a restore."""
    _as_owner(run, "db new-epoch")
    epoch = run.client.new_epoch(given.reason)
    return Answer({"epoch": epoch}, f"epoch {epoch}: every earlier receipt is void; tasks can be claimed again")
