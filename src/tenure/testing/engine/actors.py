"""Every event names who acted, also where another agent holds the task: the log accuses nobody of what others did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import Dependency, NewTask, Principal, Process
from tenure.core.event_text import TEXTS, event_text
from tenure.core.events import Event
from tenure.engine.reads import tasks
from tenure.testing.engine.doubtful_costs import report
from tenure.testing.engine.spending import look
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import Scene

BO: dict[str, Any] = {"agent": "bo", "session": "s-bo"}
PEOPLE = (
    Principal(role="owner", user="mia"),
    Principal(role="owner", user="mia", agent="root", session="shell"),
)
PROCESS = Process(host="h", boot="b", pid=7, start=1)
Fields = dict[str, Any]


def held(scene: Scene, **fields: Any) -> tuple[str, str]:
    """A task of bo, and its receipt."""
    key = scene.add(**fields)
    return key, scene.take(key, "bo", process=PROCESS)


def _of_task(**more: Any) -> Callable[[Scene], Fields]:
    return lambda scene: {"task": held(scene)[0], **more}


def _after(step: Callable[[Scene], object], **fields: Any) -> Callable[[Scene], Fields]:
    def make(scene: Scene) -> Fields:
        step(scene)
        return fields

    return make


def _in_state(make: Callable[[Scene, str], object], **more: Any) -> Callable[[Scene], Fields]:
    def fields(scene: Scene) -> Fields:
        key = scene.add(max_attempts=1)
        make(scene, key)
        return {"task": key, **more}

    return fields


def _reviewed(scene: Scene) -> Fields:
    key, receipt = held(scene, output={"validation": "review"})
    scene.submit(receipt)
    return {"task": key}


def _taken(scene: Scene, **more: Any) -> Fields:
    key, receipt = held(scene, output={"validation": "test-pass", "settings": {"command": "unit"}})
    scene.submit(receipt)
    return {"receipt": scene.do(c.TakeValidation, checker="vera", task=key).receipt, **more}


def _checked(scene: Scene) -> Fields:
    key, receipt = held(scene, output={"validation": "test-pass", "settings": {"command": "unit"}})
    scene.submit(receipt)
    return {"checker": "vera", "task": key}


def _refused(scene: Scene) -> Fields:
    key, receipt = held(scene)
    scene.do(c.Recover, task=key)
    scene.submit(receipt)
    return {"task": key}


def _linked(scene: Scene) -> Fields:
    needed = scene.add()
    return {"task": scene.add(depends_on=(Dependency(task=needed),)), "needs": needed}


def _undone(scene: Scene) -> Fields:
    return {"command_id": scene.do(c.Cancel, task=held(scene)[0]).command_id}


def _by_receipt(**more: Any) -> Callable[[Scene], Fields]:
    return lambda scene: {"receipt": held(scene)[1], **more}


def _doubted(scene: Scene) -> Fields:
    key, receipt = held(scene)
    report(scene, receipt, "99999", fresh=1)
    return {"task": key}


def _hold(scene: Scene) -> Fields:
    return {"receipt": scene.do(c.Reserve, patterns=(f"src/{scene.add()}/**",), **BO).receipt}


# What each command that may concern another's task, claim or agent is given here.
OF_OTHERS: dict[type[c.Command], Callable[[Scene], Fields]] = {
    c.Edit: _of_task(changes={"title": "better"}),
    c.Cancel: _of_task(reason="no"),
    c.Note: _of_task(text="look"),
    c.Pause: _of_task(),
    c.Abort: _of_task(),
    c.Recover: _of_task(),
    c.Reassign: _of_task(agent="cy"),
    c.Reset: _of_task(),
    c.Gone: _after(held, processes=(PROCESS,)),
    c.Assign: lambda scene: {"task": scene.add(), "agent": "cy"},
    c.Resume: _in_state(lambda scene, key: scene.do(c.Pause, task=key)),
    c.Answer: _in_state(lambda scene, key: scene.do(c.Ask, receipt=scene.take(key, "bo"), question="?"), text="so"),
    c.Retry: _in_state(lambda scene, key: scene.bury(key, "bo")),
    c.Archive: _in_state(lambda scene, key: scene.finish(key, agent="bo")),
    c.Publish: lambda scene: {"task": scene.add(draft=True)},
    c.Approve: _reviewed,
    c.Reject: lambda scene: {**_reviewed(scene), "reason": "no"},
    c.Adopt: _refused,
    c.ConfirmUsage: _doubted,
    c.RejectUsage: _doubted,
    c.Link: lambda scene: {"task": held(scene)[0], "needs": scene.add()},
    c.Unlink: _linked,
    c.Undo: _undone,
    c.Judge: lambda scene: _taken(scene, ok=True),
    c.Undecide: lambda scene: _taken(scene, reason="no network"),
    c.TakeValidation: _checked,
    c.RenewValidation: _taken,
    c.Drain: lambda scene: {"agent": "bo"},
    c.ResumeAgent: _after(lambda scene: scene.do(c.Drain, agent="bo"), agent="bo"),
    c.Terminate: _after(held, agent="bo", graceful=False),
    c.Leave: _after(held, session="s-bo"),
    # With the receipt of bo's claim.
    c.Renew: _by_receipt(),
    c.Start: _by_receipt(),
    c.Progress: _by_receipt(percent=5, checkpoint={"at": 1}),
    c.SaveCheckpoint: _by_receipt(data={"at": 1}),
    c.ReportUsage: _by_receipt(model="opus", fresh=5),
    c.Land: _by_receipt(branch="main", old="1" * 40, new="2" * 40),
    c.PutArtifact: lambda scene: {
        **_by_receipt()(scene), "name": "a", "digest": "d" * 64, "size": 1, "since": scene.now,
    },
    c.Submit: _by_receipt(data="done"),
    c.Fail: _by_receipt(message="broken"),
    c.Release: _by_receipt(reason="later"),
    c.Ask: _by_receipt(question="which?"),
    c.Spawn: _by_receipt(tasks=(NewTask(title="child", name="child"),)),
    c.Wait: _by_receipt(),
    c.OpenSecrets: _by_receipt(),
    c.Reserve: lambda scene: {**_by_receipt()(scene), **BO, "patterns": ("a",)},
    c.RenewReservation: _hold,
    c.Unreserve: _hold,
    # In bo's name.
    c.ClaimTask: lambda scene: {"task": scene.add(), **BO},
    c.ClaimNext: _after(lambda scene: scene.add(), **BO),
    c.Register: lambda scene: BO,
    c.Heartbeat: lambda scene: BO,
    c.Send: lambda scene: {"sender": "bo", "to": "cy", "text": "hello"},
    c.Read: lambda scene: {"agent": "bo"},
    c.Emit: lambda scene: {"agent": "bo", "name": "built"},
    c.Lead: lambda scene: {"holder": "bo", "agent": True},
    c.StepDown: lambda scene: {
        "holder": "bo", "agent": True, "term": scene.do(c.Lead, holder="bo", agent=True).term,
    },
    # With the router, from here on.
    c.AssignTrack: _after(lambda scene: scene.do(c.DefineProject, router=True), code="B", agent="bo"),
    c.ReleaseTrack: _after(lambda scene: scene.do(c.AssignTrack, code="B", agent="bo"), code="B", agent="bo"),
}  # fmt: skip
# These concern the project, or rows that no agent holds.
OF_NOBODY = frozenset(
    {
        c.Add, c.AddMany, c.Plan, c.DefineProject, c.DefineTrack, c.StartLine, c.StopLine, c.Reorder, c.Reseal,
        c.RotateDataKey, c.AuditOn, c.SetBudget, c.RemoveBudget, c.MoveBudget, c.CreateKey, c.RotateKey, c.RevokeKey,
        c.SetPool, c.PausePool, c.ResumePool, c.RemovePool, c.PauseRelay, c.ResumeRelay, c.RewindRelay, c.RemoveRelay,
        c.SetSchedule, c.PauseSchedule, c.ResumeSchedule, c.RemoveSchedule, c.RunSchedule, c.SetTrigger, c.PauseTrigger,
        c.ResumeTrigger, c.RemoveTrigger, c.RotateSecret, c.TryTrigger, c.Deliver, c.FilesChanged, c.SetWatch,
        c.SetWebhook, c.PauseWebhook, c.ResumeWebhook, c.RemoveWebhook, c.RotateWebhook, c.ReplayWebhook, c.TestWebhook,
        c.AddTenant, c.ChangeTenant, c.CloseTenant, c.ReopenTenant, c.InviteMember, c.ChangeMember, c.RemoveMember,
    }
)  # fmt: skip
# Their events are about an agent, which is the event's; `by` says who acted.
ABOUT = ("agent.", "session.", "leader.", "message.")


def said_wrongly(event: Event, by: Principal) -> str | None:
    """What the event says of who acted that is not so."""
    if event.user != by.user:
        return f"its user is {event.user}"
    if event.kind.startswith(ABOUT):
        return None
    if by.agent is not None and event.agent != by.agent:
        return f"its agent is {event.agent}"
    text = TEXTS[event.kind]
    if "bo" in event_text(event).split() and "{who}" in text and "{holder}" not in text and event.agent != "bo":
        return event_text(event)
    return None


class Actors(Stage):
    def test_every_command_is_tried_on_what_another_holds(self) -> None:
        assert set(c.ALL) - OF_OTHERS.keys() == OF_NOBODY

    @pytest.mark.parametrize("by", PEOPLE, ids=("a person", "a person with a name as an agent"))
    def test_an_event_names_who_acted_and_not_who_holds_the_task(self, scene: Scene, by: Principal) -> None:
        scene.know("bo", "cy")
        wrong = []
        for kind, make in OF_OTHERS.items():
            fields = make(scene)
            before = len(scene.events())
            scene.do(kind, by=by, **fields)
            new = scene.events()[before:]
            wrong += [f"{kind.__name__}: {e.kind}: {said}" for e in new if (said := said_wrongly(e, by)) is not None]
            is_in_his_name = "receipt" in fields or BO.items() <= fields.items() or kind in (c.Leave, c.Emit)
            if not is_in_his_name:
                told = (e for e in new if e.agent == "bo" and not e.kind.startswith(ABOUT))
                wrong += [f"{kind.__name__}: {e.kind}: it names the holder" for e in told]
            scene.do(c.ResumeAgent, agent="bo")
        assert wrong == []

    def test_an_event_about_another_agent_says_who_acted(self, scene: Scene) -> None:
        scene.know("bo")
        scene.do(c.Drain, agent="bo", by=PEOPLE[0])
        scene.do(c.Drain, agent="bo", by=PEOPLE[0])
        (drained,) = scene.events(kind="agent.draining")
        assert (drained.agent, drained.details) == ("bo", {"by": "human:mia"})
        assert event_text(drained) == "bo drains, asked by mia: it claims nothing more"
        scene.do(c.Heartbeat, **BO)
        assert [event.details for event in scene.events(kind="agent.registered")] == [{}]

    def test_a_claim_that_ends_by_another_keeps_its_session_and_holder(self, scene: Scene) -> None:
        key, _ = held(scene)
        scene.do(c.Cancel, task=key, by=PEOPLE[1])
        (event,) = scene.events(kind="task.cancelled")
        assert (event.agent, event.details["holder"], event.session, event.generation) == ("root", "bo", "s-bo", 1)
        assert event_text(event) == f"{key} is cancelled by root"

    def test_what_time_does_names_the_holder_alone(self, scene: Scene) -> None:
        key, _ = held(scene)
        scene.pass_time(hours=2)
        scene.do(c.Note, task=key, text="later", by=PEOPLE[1])
        (event,) = scene.events(kind="task.lease_expired")
        assert (event.agent, event.user, "holder" in event.details) == ("bo", None, False)
        assert event_text(event) == f"bo's lease on {key} expires"

    def test_the_lineage_says_who_claimed_or_submitted_for_another(self, scene: Scene) -> None:
        mine, others, opened = scene.add(), scene.add(), scene.add()
        alice, carol = (Principal(role="member", user=name, key=name, tenant="local") for name in ("alice", "carol"))
        for key in (mine, others):
            receipt = str(scene.do(c.ClaimTask, task=key, by=alice, **BO).receipt)
            scene.do(c.Submit, receipt=receipt, data="x", by=alice if key == mine else carol)
        root = Principal(role="member", user="alice", agent="root", key="alice", tenant="local")
        scene.do(c.ClaimTask, task=opened, by=root, **BO)
        found = [look(scene, tasks.history, key)[0] for key in (mine, others, opened)]
        assert [entry.get("user") for entry in found] == ["alice"] * 3
        assert [entry.get("opened_by") for entry in found] == [None, None, "root (alice)"]
        assert [entry.get("submitted_by") for entry in found] == [None, "carol", None]

    def test_a_refused_result_and_a_verdict_say_whose_they_are(self, scene: Scene) -> None:
        key, receipt = held(scene)
        scene.do(c.Recover, task=key)
        scene.do(c.Submit, receipt=receipt, data="x", by=PEOPLE[1])
        assert look(scene, tasks.history, key)[0]["submitted_by"] == "root (mia)"
        reviewed = str(_reviewed(scene)["task"])
        scene.do(c.Approve, task=reviewed, by=PEOPLE[0])
        assert look(scene, tasks.history, reviewed)[0].get("submitted_by") is None
        (done,) = scene.events(kind="task.completed")
        assert event_text(done) == f"bo completes {reviewed}, accepted by mia"
