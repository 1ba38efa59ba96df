"""What a run that ends by itself leaves behind: by it a script knows whether its work is done."""

from __future__ import annotations

from typing import NamedTuple

from tenure.agents.runner.shared import FOREVER, UNTIL_EMPTY, Options, Shared
from tenure.agents.unlanded import unlanded
from tenure.client import Client
from tenure.core.lifecycle import COMPLETED, DEAD_LETTERED
from tenure.core.safe_text import shell_word


class Remains(NamedTuple):
    """Keys of the run's own tasks: those that failed for good, whose result was refused, whose commits have not landed.

    `waits`: tasks wait for a person, and nothing else is left to do.
    """

    dead: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    unlanded: tuple[str, ...] = ()
    waits: bool = False

    @property
    def has_failed(self) -> bool:
        return bool(self.dead or self.refused or self.unlanded)

    @property
    def lines(self) -> list[str]:
        named = {
            "a dead letter": self.dead, "its result was refused": self.refused,
            "accepted, and its commits have not landed": self.unlanded,
        }  # fmt: skip
        lines = [f"{key}: {what}; see `tenure why {shell_word(key)}`" for what, keys in named.items() for key in keys]
        return [*lines, *(["only tasks that wait for a person are left; see `tenure todo`"] if self.waits else [])]


def remains_of(shared: Shared, client: Client) -> Remains:
    """Nothing for a run that goes on until it is stopped, and for a pool's process: its pool looks after the tasks."""
    options = shared.options
    if options.spawn is not None or (options.mode == FOREVER and options.most_tasks is None):
        return Remains()
    ends = dict.fromkeys(done.key for done in shared.done)
    refused = {done.key for done in shared.done if done.what == "refused"}
    states = {line["name"]: line.get("state") for line in client.states(ends)} if ends else {}
    dead = tuple(key for key in ends if states.get(key) == DEAD_LETTERED)
    return Remains(
        dead=dead,
        refused=tuple(key for key in ends if key in refused and key not in dead and states.get(key) != COMPLETED),
        unlanded=_unlanded(options, client, set(ends)),
        waits=options.mode == UNTIL_EMPTY and not shared.draining.is_set() and bool(client.todo(1)),
    )


def _unlanded(options: Options, client: Client, keys: set[str]) -> tuple[str, ...]:
    found = unlanded(options.folder, client) if options.land or options.checkout is not None else []
    return tuple(one.key for one in found if one.state == COMPLETED and one.key in keys)
