"""Crowds on plain tasks, in which much goes wrong: the same seed gives the same commands."""

from __future__ import annotations

from random import Random
from typing import Any

from tenure.core import commands as c
from tenure.core.commands import Command, NewTask, Principal
from tenure.testing.factories import OWNER, PROJECT, Scene, comparable

_PEOPLE = (
    OWNER, Principal(role="agent", user="u", address="10.0.0.1"), Principal(role="member", user='"q\\', key="key_1")
)  # fmt: skip
_TEXT = {"text": 'a "quoted" \\ line\n\t\x07é😀'}
_DATA: tuple[Any, ...] = (None, "done", {"ok": True}, _TEXT, "x" * 5000, {"$body": "no"})


def crowd(scene: Scene, seed: int) -> list[Any]:
    """Many claims, renewals and results in batches, among them late, foreign, doubled and impossible ones."""
    dice = Random(seed)  # noqa: S311 - a history, not a secret
    receipts: list[str] = []
    answers: list[Any] = []

    def send(*batch: Command) -> None:
        by = dice.choice(_PEOPLE)
        twice = batch[:1] if dice.random() < 0.3 else ()  # an answer was lost: it comes again, in the same batch
        for answer in scene.run(*batch, *twice, by=by):
            answers.append(comparable(answer))
            if not isinstance(answer, Exception) and not answer.again:
                receipts.extend(r for a in (answer, *(answer.claims or ())) if (r := a.receipt) is not None)

    for _ in range(12):
        scene.run(*[c.Add(project=PROJECT, task=_new_task(dice)) for _ in range(dice.randint(2, 9))])
        send(*[_claim(dice) for _ in range(dice.randint(1, 8))])
        if receipts:
            send(*[c.Start(project=PROJECT, receipt=dice.choice(receipts[-9:])) for _ in range(dice.randint(0, 4))])
            send(*[_renewal(dice, receipts) for _ in range(dice.randint(0, 6))])
            send(*[_submit(dice, receipts) for _ in range(dice.randint(1, 7))])
        scene.clock.advance(seconds=dice.choice((0, 0, 1, 20, 400)))
    return answers


def _new_task(dice: Random) -> NewTask:
    """Most are plain; some are not, each for another reason."""
    less: dict[str, Any] = dice.choice(
        [{}] * 8
        + [
            {"touches": ("src/**",)},
            {"constraints": {"model_preferences": ["opus"]}},
            {"constraints": {"max_duration": 90}},
            {"constraints": {"required_capabilities": ["python"]}},
            {"priority": "critical"},
            {"description": "d", "metadata": {"a": [1]}, "tags": ("x", "y")},
            {"description": "d" * 5000},
            {"spec": {"context_refs": ["task:A-001:output"]}},
        ]
    )
    return NewTask(title=f"task \x01{dice.randint(0, 99)}", **less)


def _claim(dice: Random) -> c.ClaimNext:
    agent = dice.choice(("ann", "bo", "cy", "dee"))
    return c.ClaimNext(
        project=PROJECT, agent=agent, session=f"s-{agent}", n=dice.choice((1, 1, 1, 3)),
        request_id=dice.choice((None, "again", f"r{dice.randint(0, 10**9)}")), user=dice.choice((None, "al", 'q"\\')),
        lease=dice.choice((None, 30.0)), trace_id=dice.choice((None, "trace")),
        capabilities=dice.choice((None, ("python",))),
    )  # fmt: skip


def _renewal(dice: Random, receipts: list[str]) -> c.Renew:
    return c.Renew(
        project=PROJECT, receipt=_forgotten(dice, receipts), lease=dice.choice((None, 60.0)),
        background=dice.random() < 0.1,
    )  # fmt: skip


def _submit(dice: Random, receipts: list[str]) -> c.Submit:
    return c.Submit(
        project=PROJECT, receipt=_forgotten(dice, receipts), data=dice.choice(_DATA),
        summary=dice.choice(("", 'said "so"\n')), request_id=dice.choice((None, f"w{dice.randint(0, 10**9)}")),
        trace_id=dice.choice((None, "trace")),
    )  # fmt: skip


def _forgotten(dice: Random, receipts: list[str]) -> str:
    """Mostly one of the last; sometimes an old one, another's, or none at all."""
    receipt = dice.choice(receipts[-8:] if dice.random() < 0.85 else receipts)
    turn = dice.random()
    if turn < 0.05:
        return receipt[:-1] + ("0" if receipt[-1] != "0" else "1")
    if turn < 0.08:
        return "Z-999@1:" + receipt.rpartition(":")[2]
    return "no receipt" if turn < 0.1 else receipt
