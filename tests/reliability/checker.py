"""Decides whether a concurrent history can be explained by a sequential one: Wing and Gong's search, with a memo.

A history is linearizable when its operations can be put into one order that respects real time (what was answered
before another was asked comes first) and in which a sequential specification gives exactly the answers that were
seen. Trying all orders is exponential; what makes it cheap is remembering which (set of operations done, state) pairs
led nowhere, since many orders meet in the same pair.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

State = TypeVar("State", bound=Hashable)


class Operation(NamedTuple):
    """What somebody asked and was answered, and when; both times are of one clock that never goes back."""

    player: int
    verb: str
    given: dict[str, Any]
    answer: dict[str, Any]
    invoked: int
    answered: int


# The states that an operation may leave; none where it cannot have had that answer in that state.
Step = Callable[[State, Operation], Iterable[State]]


def explanation(history: Sequence[Operation], start: State, step: Step[State]) -> list[Operation] | None:
    """An order that explains every answer, or None: then no order does."""
    operations = sorted(history, key=lambda operation: operation.invoked)
    everything = (1 << len(operations)) - 1
    dead_ends: set[tuple[int, State]] = set()
    order: list[Operation] = []

    def search(done: int, state: State) -> bool:
        if done == everything:
            return True
        if (done, state) in dead_ends:
            return False
        waiting = [(i, operation) for i, operation in enumerate(operations) if not done >> i & 1]
        first_answer = min(operation.answered for _, operation in waiting)
        for i, operation in waiting:
            if operation.invoked > first_answer:
                break  # it, and all that were asked later, must come after the one that was answered first
            for after in step(state, operation):
                order.append(operation)
                if search(done | 1 << i, after):
                    return True
                order.pop()
        dead_ends.add((done, state))
        return False

    return order if search(0, start) else None


def told(history: Sequence[Operation]) -> str:
    """The history as a person reads it, in the order of asking; times are microseconds since the first."""
    first = min(operation.invoked for operation in history)
    return "\n".join(
        f"  {(o.invoked - first) // 1000:>8} – {(o.answered - first) // 1000:<8} player {o.player}  {o.verb} "
        f"{_fields(o.given)} → {_fields(o.answer)}"
        for o in sorted(history, key=lambda operation: operation.invoked)
    )


def _fields(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
