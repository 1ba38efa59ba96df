"""`tenant move`: move a tenant to another store or region."""

from __future__ import annotations

import sys
from argparse import Namespace

from tenure.cli.answers import say
from tenure.cli.db import must_own
from tenure.cli.main import Answer, Run, Usage, arg, options
from tenure.cli.text_format import plain

STEPS = ("begin", "freeze", "copy", "switch", "open", "end")


@options(
    arg("name", metavar="TENANT", help="the tenant"),
    arg("--to", metavar="REGION|URL", help="its new region, or the URL of its new store; home: the store of all"),
    arg("--store", metavar="URL", help="the store in that region; - reads the URL from stdin, home: the store of all"),
    arg("--promoted", action="store_true", help="that store is a promoted standby of the former one: copy nothing"),
    arg("--call-off", action="store_true", help="leave the tenant where it is, if the move has not switched yet"),
)
def move(run: Run, given: Namespace) -> Answer:
    """Move a tenant with all its projects, keys and members to another store, while its agents work.

    Its writes are refused meanwhile with TENANT_MOVING, and clients send them again. Live claims end, with their
    attempt given back; earlier receipts are void (STALE_EPOCH), and results submitted with them are kept.

    A move that was interrupted is finished by the same command without --to. Until the new store is the tenant's home,
    --call-off ends it instead.
    """
    must_own(run)
    from tenure.client.tenant_move import move_tenant, stay

    if given.call_off:
        if given.to or given.store or given.promoted:
            raise Usage("tenant move: --call-off has no other option")
        row = stay(run.home.url, given.name)
        return Answer({"tenant": row.id, "moves": row.moves, "moving": None}, f"{row.id} stays where it is")
    store = sys.stdin.readline().strip() if given.store == "-" else given.store

    def step(text: str) -> None:
        if not run.is_json:
            say(f"tenure: {text}: done" if text in STEPS else f"tenure: {text}", sys.stderr)

    done = move_tenant(run.home.url, given.name, to=given.to, store=store, promoted=given.promoted, step=step)
    value = {
        "tenant": done.tenant, "move": done.number, "region": done.region, "rows": done.rows, "events": done.events,
        "epoch": done.epoch,
    }  # fmt: skip
    where = f" to region {plain(done.region)}" if done.region else ""
    return Answer(value, f"{done.tenant} has moved{where}: {done.rows} rows and {done.events} events were copied")
