"""A server that is busy, or limits the rate, ends no runner and loses no result; nor does an error of ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tenure.agents.runner import conclusion
from tenure.agents.runner.clis import cli_for
from tenure.agents.runner.runner import Runner
from tenure.agents.runner.shared import ONCE, UNTIL_EMPTY, Options
from tenure.client import Client
from tenure.client.outbox import Finished, Outbox
from tenure.config import Home
from tenure.core.commands import ClaimNext, Command, Heartbeat, Progress, Register, Renew, Submit
from tenure.core.errors import AuthUnavailable, Overloaded, RateLimited, TenureError
from tenure.core.queries import Query, Status
from tests.runner.conftest import AGENT, Stage

TROUBLES = [Overloaded("4,096 requests wait"), RateLimited("over 50 requests a second"), AuthUnavailable("no keys")]


class Busy:
    """A transport whose server refuses each kind of request `times` times, as `tenure serve` does under load."""

    def __init__(self, inner: Any, error: TenureError, times: int, kinds: tuple[type, ...]) -> None:
        self.inner, self.error, self.times, self.kinds = inner, error, times, kinds
        self.refused: dict[type, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def _refuse(self, asked: object) -> None:
        kind = type(asked)
        if isinstance(asked, self.kinds) and self.refused.get(kind, 0) < self.times:
            self.refused[kind] = self.refused.get(kind, 0) + 1
            raise self.error

    def do(self, command: Command, principal: Any) -> Any:
        self._refuse(command)
        return self.inner.do(command, principal)

    def query(self, query: Query, principal: Any) -> Any:
        self._refuse(query)
        return self.inner.query(query, principal)


def runner_of(stage: Stage, client: Client, said: Callable[[str], None], mode: str = ONCE) -> Runner:
    cli, extra = cli_for(f"{sys.executable} {AGENT} {stage.control}")
    home = Home(str(stage.home), str(stage.home / "tenure.db"))
    options = Options(
        cli=cli, program=cli.found(stage.environ), extra=extra, name="ann", home=home, project="default",
        folder=str(stage.folder), environ=stage.environ, mode=mode, most_tasks=1,
    )  # fmt: skip
    return Runner(client, options, said)


@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: error.code)
def test_a_busy_server_ends_no_runner_and_no_claim(stage: Stage, error: TenureError) -> None:
    key = stage.add("Work")
    stage.go()
    client = Client(str(stage.home / "tenure.db"), "default", user="ann")
    busy = Busy(client.transport, error, 2, (ClaimNext, Heartbeat, Renew, Progress, Submit))
    runner = runner_of(stage, client, lambda _: None)
    for one in (runner.client, *(slot.client for slot in runner.slots)):
        one.transport = busy  # type: ignore[assignment]
    shared = runner.run()

    assert dict(shared.counts) == {"completed": 1}
    assert {ClaimNext, Submit} <= set(busy.refused)
    assert stage.lineage(key) == [(1, "COMPLETED", True)]
    assert stage.outbox() == []


def test_the_checks_of_a_runner_go_on_after_any_refusal(stage: Stage) -> None:
    """Each second it asks for the state of its tasks: a refusal is no reason to leave its agents."""
    from tenure.core.errors import NotSignedIn
    from tenure.core.queries import States

    key = stage.add("Work")
    client = Client(str(stage.home / "tenure.db"), "default", user="ann")
    lines: list[str] = []
    runner = runner_of(stage, client, lines.append)
    runner.client.transport = Busy(client.transport, NotSignedIn("the key was revoked"), 3, (States,))  # type: ignore[assignment]
    pauses = iter(range(10_000))

    def pause(seconds: float) -> None:
        import time

        time.sleep(seconds)
        if next(pauses) == 30:
            stage.go()

    assert dict(runner.run(pause).counts) == {"completed": 1}
    assert stage.lineage(key) == [(1, "COMPLETED", True)]
    assert sum("the key was revoked" in line for line in lines) == 1  # not once a second


def test_an_error_of_ours_after_the_agent_has_ended_fails_the_claim(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = stage.add("Work")
    stage.go()

    def broken(*_: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(conclusion, "_submit", broken)
    client = Client(str(stage.home / "tenure.db"), "default", user="ann")
    with pytest.raises(ZeroDivisionError):
        runner_of(stage, client, lambda _: None).run()
    (entry,) = stage.client.history(key)
    assert (entry["release_reason"], entry["error_class"]) == ("FAILED", "environment")
    assert "ZeroDivisionError: of ours" in entry["error"]


@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: error.code)
def test_a_busy_server_leaves_the_outbox_as_it_is(stage: Stage, error: TenureError) -> None:
    key = stage.add("Work")
    granted = stage.client.claim(key)
    box = Outbox(str(stage.home / "tenure.db"), stage.environ)
    path = box.put(
        Finished(project="default", key=key, receipt=str(granted.receipt), request_id="r", what="submit", data=1)
    )

    def refused(*_: object) -> Any:
        raise error

    assert box.sent(stage.client, refused, lambda _: True) == []
    assert os.path.exists(path)  # noqa: PTH110
    assert [sent.outcome.outcome for sent in box.flush(stage.client) if sent.outcome] == ["ACCEPTED"]


def test_registering_is_tried_again_by_a_process_of_a_pool(stage: Stage) -> None:
    client = Client(str(stage.home / "tenure.db"), "default", user="ann")
    runner = runner_of(stage, client, lambda _: None)
    runner.shared.options = runner.shared.options._replace(spawn="spawn_1")
    busy = Busy(client.transport, Overloaded("4,096 requests wait"), 2, (Register,))
    for one in (runner.client, *(slot.client for slot in runner.slots)):
        one.transport = busy  # type: ignore[assignment]
    runner.run(lambda _: None)
    assert busy.refused == {Register: 2}


def test_a_task_that_becomes_ready_while_a_runner_looks_whether_all_is_done_is_not_left(stage: Stage) -> None:
    """What its claim passed over is done by another agent before it asks for the state of the project."""
    first = stage.add("For another type", constraints={"agent_type": "codex"})
    second = stage.add("After it", after=[first])
    stage.go()
    codex = Client(str(stage.home / "tenure.db"), "default", agent="codex-1", session="s-codex")
    codex.do(Register(project="default", agent="codex-1", type="codex", managed=True))
    client = Client(str(stage.home / "tenure.db"), "default", user="ann")

    class Meanwhile(Busy):
        def _refuse(self, asked: object) -> None:
            if isinstance(asked, Status) and not self.refused:
                self.refused[Status] = 1
                codex.submit(str(codex.claim(first).receipt), 1, "done")
                codex.leave()

    runner = runner_of(stage, client, lambda _: None, UNTIL_EMPTY)
    for slot in runner.slots:
        slot.client.transport = Meanwhile(client.transport, TROUBLES[0], 0, ())  # type: ignore[assignment]
    assert dict(runner.run().counts) == {"completed": 1}
    assert stage.lineage(second) == [(1, "COMPLETED", True)]
    codex.close()
