"""A slice of `./x reliability run`, which has more of it."""

from __future__ import annotations

from pathlib import Path

from tests.reliability.run import Proof


def test_every_task_is_completed_once_while_agents_supervisors_and_runners_are_killed(tmp_path: Path) -> None:
    proof = Proof(tmp_path, tasks=15, agents=3, every=0.3, work=0.4, seed=7)
    assert proof.run() == []
    assert set(proof.kills) == {"agent", "supervisor", "watcher", "runner"}
