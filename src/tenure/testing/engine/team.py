"""Agents, sessions, mail, reservations, leadership."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.core import commands as c
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, LimitReached, NotAllowed, NotFound
from tenure.core.queries import Limits, ShowSession, Tasks
from tenure.core.records import Agent, Message, Reservation, Session
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene, code_of, forged


def texts(scene: Scene, agent: str) -> list[str]:
    return [m["text"] for m in scene.do(c.Read, agent=agent).messages or ()]


def kinds_of(scene: Scene, agent: str) -> list[str]:
    return [e.kind for e in scene.events() if e.agent == agent and e.kind.startswith("agent.")]


# Every way in which a claim ends, for tasks set aside for it.
ENDS: dict[str, Callable[[Scene, str, str], object]] = {
    "submit": lambda scene, key, receipt: scene.submit(receipt),
    "fail": lambda scene, key, receipt: scene.fail(receipt),
    "trouble": lambda scene, key, receipt: scene.fail(receipt, "environment"),
    "release": lambda scene, key, receipt: scene.do(c.Release, receipt=receipt),
    "ask": lambda scene, key, receipt: scene.do(c.Ask, receipt=receipt, question="?"),
    "wait": lambda scene, key, receipt: scene.do(c.Wait, receipt=receipt),
    "pause": lambda scene, key, receipt: scene.do(c.Pause, task=key),
    "cancel": lambda scene, key, receipt: scene.do(c.Cancel, task=key),
    "recover": lambda scene, key, receipt: scene.do(c.Recover, task=key),
    "abort": lambda scene, key, receipt: scene.do(c.Abort, task=key),
    "reassign": lambda scene, key, receipt: scene.know("cy").do(c.Reassign, task=key, agent="cy"),
    "edit": lambda scene, key, receipt: scene.do(c.Edit, task=key, changes={"touches": ["x"]}, supersede=True),
    "lease over": lambda scene, key, receipt: scene.pass_time(seconds=601),
    "terminate": lambda scene, key, receipt: scene.do(c.Terminate, agent="ann", graceful=False),
    "leave": lambda scene, key, receipt: scene.do(c.Leave, session="s-ann"),
    "new epoch": lambda scene, key, receipt: scene.engine.new_epoch("restored"),
}


NOT_NAMES = (
    "$(id)", "`id`", "${IFS}", "-rf", ".", "..", ".hidden", "_x", "~root", "a b", "a;b", "größe", "\u0430nn",
    "a\u200bb", "", "x" * 129, "a\n", "a:b", "@all", "a/b",
)  # fmt: skip


class Team(Stage):
    @pytest.mark.parametrize("name", NOT_NAMES)
    def test_a_new_name_is_one_that_no_shell_reads(self, scene: Scene, name: str) -> None:
        """A shell, a path and a reader take such a name for something else; each command that could create one."""
        scene.add()
        for command in (
            c.Register(project=PROJECT, agent=name),
            c.Register(project=PROJECT, agent="ann", session=name),
            c.ClaimNext(project=PROJECT, agent=name, session="s"),
            c.ClaimNext(project=PROJECT, agent="bo", session=name),
            c.CreateKey(name="k", role="agent", agent=name),
            c.SetPool(project=PROJECT, pool=name, program="claude"),
            c.SetPool(project=PROJECT, pool="fine", program=name),
            c.SetPool(project=PROJECT, pool="fine", program="claude", spawner=name),
            c.Send(project=PROJECT, sender=name, to="@all", text="x"),
            c.Lead(project=PROJECT, holder=name, agent=True),
            c.DefineProject(project=name),
        ):
            (answer,) = scene.run(command)
            assert isinstance(answer, (InvalidInput, NotFound)), (command, answer)
        assert {agent.id for agent in scene.rows(Agent)} <= {"ann", "bo"}

    # --- agents ---------------------------------------------------------------------------------------------------

    def test_an_agent_is_known_from_its_first_command(self, scene: Scene) -> None:
        scene.next("ann")
        assert kinds_of(scene, "ann") == ["agent.registered"]
        again = scene.do(c.Register, agent="ann", type="claude", capabilities=("b", "a", "b"), models=("opus",))
        assert again.outcome == "UPDATED"
        assert again.agent is not None
        assert (again.agent["capabilities"], again.agent["status"]) == (("a", "b"), "idle")

    def test_an_agent_is_active_while_it_holds_something(self, scene: Scene) -> None:
        scene.take(scene.add(), "ann")
        view = scene.do(c.Register, agent="ann").agent or {}
        assert (view["status"], view["tasks"]) == ("active", ("A-001-work",))

    def test_a_heartbeat_brings_mail_and_directives_and_renews_no_lease(self, scene: Scene) -> None:
        key = scene.add()
        until = scene.claim(key, "ann").lease_until
        scene.do(c.Send, sender="bo", to="ann", text="hi")
        scene.pass_time(seconds=30)
        beat = scene.do(c.Heartbeat, agent="ann", health="degraded", step="thinking", memory_mb=12, cpu_percent=99)
        assert (beat.outcome, beat.mail, beat.directive) == ("OK", 1, "continue")
        assert scene.task(key).lease_until == until
        scene.pass_time(seconds=10)
        scene.do(c.Heartbeat, agent="ann", health="degraded", step="thinking", memory_mb=12, cpu_percent=99)
        agent: Agent = scene.row(Agent, "ann")
        assert (agent.health, agent.step, agent.memory_mb, agent.cpu_percent) == ("degraded", "thinking", 12, 99)
        assert agent.last_seen == scene.now
        scene.do(c.Pause, task=key, drain=True)
        assert scene.do(c.Heartbeat, agent="ann").directive == "pause"

    def test_a_draining_agent_finishes_and_takes_nothing_more(self, scene: Scene) -> None:
        key, _ = scene.add(), scene.add()
        receipt = scene.take(key, "ann")
        assert scene.do(c.Drain, agent="ann").outcome == "UPDATED"
        assert scene.do(c.Drain, agent="ann").outcome == "UNCHANGED"
        assert scene.next("ann").outcome == "DENIED_LIMIT"
        assert scene.claim("A-002", "ann").outcome == "DENIED_LIMIT"
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_a_draining_agent_that_was_silent_still_drains(self, scene: Scene) -> None:
        scene.add()
        scene.do(c.Register, agent="ann", stale_after=60)
        scene.do(c.Drain, agent="ann")
        scene.pass_time(seconds=90)
        scene.engine.sweep()
        assert scene.next("ann").outcome == "DENIED_LIMIT"

    def test_a_silent_agent_is_stale_and_its_claims_are_untouched(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Register, agent="ann", stale_after=60)
        scene.take(key, "ann", lease=3600)
        scene.pass_time(seconds=60)
        for _ in range(2):
            scene.engine.sweep()
        assert kinds_of(scene, "ann").count("agent.stale") == 1
        assert scene.state(key) == "claimed"
        scene.do(c.Heartbeat, agent="ann")
        assert kinds_of(scene, "ann")[-1] == "agent.recovered"
        view = scene.do(c.Register, agent="ann").agent or {}
        assert view["status"] == "active"

    def test_a_command_with_a_receipt_is_a_sign_of_life(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann", stale_after=60)
        receipt = scene.take(scene.add(), "ann", lease=3600)
        for _ in range(4):
            scene.pass_time(seconds=40)
            scene.do(c.Renew, receipt=receipt)
            scene.engine.sweep()
        assert "agent.stale" not in kinds_of(scene, "ann")

    def test_signs_of_life_close_together_are_written_once(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), "ann")
        for seconds, seen in ((14, 0), (1, 15), (14, 15), (1, 30)):
            scene.pass_time(seconds=seconds)
            scene.do(c.Renew, receipt=receipt)
            began = scene.row(Agent, "ann").registered_at
            assert scene.row(Agent, "ann").last_seen == began + seen * 1_000_000
            assert scene.row(Session, "s-ann").last_activity == began + seen * 1_000_000

    def test_an_unknown_agent_cannot_be_drained(self, scene: Scene) -> None:
        for kind in (c.Drain, c.Terminate):
            with pytest.raises(NotFound, match="nobody"):
                scene.do(kind, agent="nobody")

    def test_an_agent_holds_no_more_than_it_said(self, scene: Scene) -> None:
        keys = [scene.add() for _ in range(3)]
        scene.do(c.Register, agent="ann", max_concurrent_tasks=2)
        granted = scene.next("ann", n=3)
        assert len(granted.claims or ()) == 2
        denied = scene.claim(keys[2], "ann")
        assert denied.outcome == "DENIED_LIMIT"
        assert "max_concurrent_tasks is 2" in denied.message
        scene.submit((granted.claims or ())[0].receipt or "")
        assert scene.claim(keys[2], "ann").outcome == "GRANTED"

    # --- sessions -------------------------------------------------------------------------------------------------

    def test_a_session_ends_an_hour_after_its_last_sign_with_nothing_in_hand(self, scene: Scene) -> None:
        scene.next("ann", session="one")
        scene.pass_time(minutes=59)
        scene.engine.sweep()
        assert scene.row(Session, "one").ended_at is None
        scene.pass_time(minutes=1)
        scene.engine.sweep()
        assert scene.row(Session, "one").ended_at == scene.now

    def test_a_session_with_a_claim_goes_on(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), session="one", lease=86400)
        scene.pass_time(hours=10)
        scene.engine.sweep()
        assert scene.row(Session, "one").ended_at is None
        scene.submit(receipt)
        scene.engine.sweep()
        assert scene.row(Session, "one").ended_at is None  # handing in was activity
        scene.pass_time(hours=1)
        scene.engine.sweep()
        assert scene.row(Session, "one").ended_at == scene.now

    def test_a_session_that_left_may_come_back(self, scene: Scene) -> None:
        scene.next("ann", session="one")
        assert scene.do(c.Leave, session="one").outcome == "OK"
        assert scene.do(c.Leave, session="one").outcome == "UNCHANGED"
        assert kinds_of(scene, "ann")[-1] == "agent.left"
        scene.next("ann", session="one")
        assert scene.row(Session, "one").ended_at is None

    def test_an_agent_with_another_session_has_not_left(self, scene: Scene) -> None:
        scene.next("ann", session="one")
        scene.next("ann", session="two")
        scene.do(c.Leave, session="one")
        assert "agent.left" not in kinds_of(scene, "ann")

    def test_sessions_are_limited_and_ended_ones_do_not_count(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"max_active_sessions": 2})
        scene.next("ann", session="one")
        scene.next("ann", session="two")
        before = scene.tables()
        with pytest.raises(LimitReached, match="2 active sessions"):
            scene.next("bo", session="three")
        assert scene.tables() == before
        scene.do(c.Leave, session="one")
        scene.next("bo", session="three")

    def test_limits_have_their_value_their_source_and_their_use(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"max_active_sessions": 5, "max_lease": 600})
        scene.take(scene.add(), "ann")
        changed = scene.do(c.DefineProject, change_limits={"max_concurrent_claims": 3, "max_lease": None})
        assert changed.outcome == "UPDATED"
        found = {one["name"]: one for one in read_query(scene.engine, Limits(project=PROJECT))}

        def of(name: str) -> tuple[object, object, object]:
            return found[name]["value"], found[name]["source"], found[name]["used"]

        assert of("max_active_sessions") == (5, "project", 1)
        assert of("max_concurrent_claims") == (3, "project", 1)
        assert of("max_lease") == (30 * 86_400, "default", None)
        assert of("max_result_size") == (None, "default", None)
        before = scene.tables()
        for wrong in ({"max_claims": 1}, {"max_claims": None}, {"min_lease": 100, "max_lease": 10}, {"max_lease": 0}):
            with pytest.raises(InvalidInput):
                scene.do(c.DefineProject, change_limits=wrong)
        assert scene.tables() == before

    def test_a_list_says_who_completed_a_task(self, scene: Scene) -> None:
        done, open_ = scene.add(), scene.add()
        scene.finish(done, agent="ann")
        listed = {view["key"]: view for view in read_query(scene.engine, Tasks(project=PROJECT))}
        assert (listed[done].get("agent"), listed[done]["completed_by"]) == (None, "ann")
        assert "completed_by" not in listed[open_]

    def test_a_list_does_not_name_the_agent_of_a_refused_result(self, scene: Scene) -> None:
        """A person adopts the result of ann, whose claim bo has superseded: bo has completed nothing."""
        key = scene.add()
        first = scene.take(key, "ann", lease=10)
        scene.pass_time(seconds=11)
        second = scene.take(key, "bo")
        scene.submit(first, data="kept")
        scene.do(c.Release, receipt=second)
        scene.do(c.Adopt, task=key)
        (view,) = read_query(scene.engine, Tasks(project=PROJECT))
        assert (view["state"], view.get("completed_by")) == ("completed", None)

    @pytest.mark.parametrize("swept", [True, False])
    def test_an_idle_session_counts_for_nothing_whether_or_not_it_was_swept(self, scene: Scene, swept: bool) -> None:
        scene.do(c.DefineProject, limits={"max_active_sessions": 1})
        scene.next("ann", session="one")
        scene.pass_time(hours=1)
        if swept:
            scene.engine.sweep()
        scene.next("bo", session="two")
        with pytest.raises(LimitReached):
            scene.next("ann", session="one")

    # --- mail -----------------------------------------------------------------------------------------------------

    def test_a_second_session_that_joins_with_a_live_name_is_told(self, scene: Scene) -> None:
        assert scene.do(c.Register, agent="dup", session="one").warnings is None
        assert scene.do(c.Register, agent="dup", session="one").warnings is None
        scene.pass_time(seconds=4)
        second = scene.do(c.Register, agent="dup", session="two")
        assert second.outcome == "UPDATED"  # sessions may share a name, as sub-agents do
        (warning,) = second.warnings or ()
        assert warning.startswith("the name dup is taken: session one uses it, seen 4 s ago.")
        assert scene.do(c.Register, agent="dup", session="three", managed=True).warnings is None  # started again
        scene.do(c.Leave, session="one")
        scene.do(c.Leave, session="two")
        scene.do(c.Leave, session="three")
        assert scene.do(c.Register, agent="dup", session="four").warnings is None
        scene.pass_time(seconds=180)
        assert scene.do(c.Register, agent="dup", session="five").warnings is None  # silent for too long

    def test_mail_is_read_by_each_recipient_for_itself(self, scene: Scene) -> None:
        for agent in ("ann", "bo", "cy"):
            scene.do(c.Register, agent=agent)
        sent = scene.do(c.Send, sender="ann", text="hello")
        assert (sent.outcome, sent.changed) == ("CREATED", ("bo", "cy"))
        assert (texts(scene, "bo"), texts(scene, "bo")) == (["hello"], [])
        assert texts(scene, "cy") == ["hello"]
        assert texts(scene, "ann") == []

    def test_mail_to_an_unknown_agent_is_refused_and_the_nearest_name_given(self, scene: Scene) -> None:
        scene.know("builder")
        with pytest.raises(NotFound, match=r"no agent 'bilder'.*did you mean builder\?"):
            scene.do(c.Send, sender="ann", to="bilder", text="hi")
        assert scene.rows(Message) == []

    def test_whoever_has_sent_mail_gets_an_answer(self, scene: Scene) -> None:
        scene.know("ann")
        scene.do(c.Send, sender="terminal", to="ann", text="how far?")
        assert scene.do(c.Send, sender="ann", to="terminal", text="half").changed == ("terminal",)

    def test_an_agent_sends_no_mail_of_the_system_and_under_no_name_that_others_obey(self, scene: Scene) -> None:
        scene.know("ann")
        bound = Principal(role="agent", agent="root", is_proven=True, key="k", address="127.0.0.1")
        for sender, type, by in (
            ("ann", "system", Principal(role="agent")),
            ("root", "chat", Principal(role="agent", key="fleet", address="127.0.0.1")),
            ("Leader", "request", Principal(role="agent")),
            ("root", "system", bound),
        ):
            with pytest.raises(NotAllowed, match="send: "):
                scene.do(c.Send, sender=sender, to="ann", text="obey", type=type, by=by)
        assert scene.do(c.Send, sender="root", to="ann", text="hello", by=bound).ok
        assert scene.do(c.Send, sender="root", to="ann", text="restart", type="system").ok

    def test_an_offer_to_an_unknown_agent_is_refused(self, scene: Scene) -> None:
        key = scene.add()
        for kind in (c.Assign, c.Reassign):
            with pytest.raises(NotFound, match="no agent 'bo'"):
                scene.do(kind, task=key, agent="bo")
        assert scene.task(key).offer_to is None

    def test_progress_names_who_reported_it_and_whose_claim_it_is(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), "ann")
        scene.do(c.Progress, receipt=receipt, percent=10, by=Principal(role="owner", user="olaf", agent="script"))
        (event,) = scene.events(kind="task.progress")
        assert (event.agent, event.user, event.details["holder"]) == ("script", "olaf", "ann")

    def test_a_session_remembers_a_refused_result_as_rejected(self, scene: Scene) -> None:
        key = scene.add()
        first = scene.take(key, "ann", lease=10)
        scene.pass_time(seconds=11)
        scene.finish(key, agent="bo")
        scene.submit(first)
        memory = read_query(scene.engine, ShowSession(project=PROJECT, session=scene.lineage(key)[0].session))
        results = [
            (entry["outcome"], entry["sequence"])
            for entry in memory["task_log"]
            if entry["event"] == "result_submitted"
        ]
        assert results == [("REJECTED", 1)]
        assert (memory["tenant"], memory["project"], memory["completed"]) == ("local", PROJECT, [])

    def test_a_session_remembers_its_live_claims_and_tracks(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann", lease=60)
        memory = read_query(scene.engine, ShowSession(project=PROJECT, session=scene.last_claim(key).session))
        (held,) = memory["active_claims"]
        assert (held["key"], held["generation"], held["lease_until"]) == (key, 1, scene.now + 60_000_000)
        assert memory["track_assignments"] == {"A": "ann"}

    def test_a_session_remembers_the_renewals_of_each_claim_in_its_place(self, scene: Scene) -> None:
        first, second = scene.add(), scene.add(track="B")
        ended, live = (scene.take(key, "ann", session="s-ann", lease=60) for key in (first, second))
        for receipt in (ended, live, live):
            scene.pass_time(seconds=10)
            scene.do(c.Renew, receipt=receipt, lease=60)
        renewed = scene.now
        scene.submit(ended)
        scene.pass_time(seconds=10)
        log = read_query(scene.engine, ShowSession(project=PROJECT, session="s-ann"))["task_log"]
        assert [line["time"] for line in log] == sorted(line["time"] for line in log)
        lines = [line for line in log if line["event"] == "lease_renewed"]
        assert {(x["task"], x["track"], x["sequence"], x["count"], x["time"]) for x in lines} == {
            (first, "A", 1, 1, renewed),
            (second, "B", 1, 2, renewed),
        }

    def test_addresses_are_resolved_when_sent(self, scene: Scene) -> None:
        for agent in ("ann", "bo", "gone"):
            scene.do(c.Register, agent=agent)
        scene.do(c.Terminate, agent="gone", graceful=False)
        scene.do(c.Send, sender="x", to="@all", text="hi")
        scene.do(c.Register, agent="new")
        assert scene.do(c.Read, agent="new").messages == ()
        assert {m.recipient for m in scene.rows(Message)} == {"ann", "bo"}

    def test_idle_agents_are_those_that_hold_nothing(self, scene: Scene) -> None:
        for agent in ("busy", "idle", "draining", "silent"):
            scene.do(c.Register, agent=agent, stale_after=3600)
        scene.do(c.Register, agent="silent", stale_after=10)
        scene.take(scene.add(), "busy")
        scene.do(c.Drain, agent="draining")
        scene.pass_time(seconds=11)
        assert scene.do(c.Send, sender="x", to="@idle", text="hi").changed == ("idle",)

    def test_a_track_is_those_registered_for_it_and_those_at_work_on_it(self, scene: Scene) -> None:
        scene.do(c.Register, agent="registered", tracks=("B",))
        scene.do(c.Register, agent="other", tracks=("C",))
        scene.take(scene.add(track="B"), "working")
        assert scene.do(c.Send, sender="x", to="@track:B", text="hi").changed == ("registered", "working")

    def test_the_leader_gets_its_mail_while_it_leads(self, scene: Scene) -> None:
        with pytest.raises(NotFound, match="@leader: this project has no leader now"):
            scene.do(c.Send, sender="x", to="@leader", text="hi")
        scene.do(c.Lead, holder="ann", agent=True, lease=60)
        assert scene.do(c.Send, sender="x", to="@leader", text="hi").changed == ("ann",)
        with pytest.raises(NotFound, match="ann leads"):
            scene.do(c.Send, sender="ann", to="@leader", text="hi")
        scene.pass_time(seconds=60)
        assert code_of(scene.try_to(c.Send, sender="x", to="@leader", text="hi")) == "NOT_FOUND"

    @pytest.mark.parametrize("to", ["@all", "@idle", "@track:B", "@type:codex"])
    def test_mail_to_many_that_reaches_nobody_says_so(self, scene: Scene, to: str) -> None:
        sent = scene.do(c.Send, sender="ann", to=to, text="hi")
        assert (sent.outcome, sent.changed) == ("CREATED", ())
        assert sent.message.startswith("sent to nobody: no other agent is ")
        assert sent.hint is not None
        command = scene.do(c.Send, sender="ann", to=to, text="hi", action="review")
        assert "brokers carry it" in command.message

    def test_a_reply_names_what_it_answers(self, scene: Scene) -> None:
        scene.know("bo")
        asked = scene.do(c.Send, sender="ann", to="bo", text="?", type="request")
        message = (asked.messages or ())[0]["id"]
        scene.do(c.Send, sender="bo", to="ann", text="!", type="response", reply_to=message)
        (reply,) = scene.do(c.Read, agent="ann").messages or ()
        assert (reply["reply_to"], reply["from"], reply["type"]) == (message, "bo", "response")
        with pytest.raises(NotFound, match="nothing"):
            scene.do(c.Send, sender="bo", to="ann", text="!", reply_to="nothing")

    def test_some_of_the_mail_can_be_read_alone(self, scene: Scene) -> None:
        scene.know("bo")
        ids = [(scene.do(c.Send, sender="a", to="bo", text=t).messages or ())[0]["id"] for t in ("one", "two")]
        assert [m["text"] for m in scene.do(c.Read, agent="bo", messages=(ids[1],)).messages or ()] == ["two"]
        assert texts(scene, "bo") == ["one"]

    # --- touches and needs ----------------------------------------------------------------------------------------

    def test_overlapping_work_is_not_offered_and_named(self, scene: Scene) -> None:
        one = scene.add(touches=("src/api/**",), priority=10)
        two = scene.add(touches=("src/api/users.py",), priority=20)
        free = scene.add(touches=("docs/**",))
        scene.take(one, "ann")
        denied = scene.claim(two, "bo")
        assert (denied.outcome, denied.conflict, denied.holder) == ("DENIED_CONFLICT", one, "ann")
        assert scene.next_keys(2, "bo") == [free]

    def test_work_that_needs_the_same_thing_is_done_one_after_another(self, scene: Scene) -> None:
        one = scene.add(constraints={"needs": ["env:staging"]})
        two = scene.add(constraints={"needs": ["env:staging", "port:8080"]})
        receipt = scene.take(one, "ann")
        assert scene.claim(two, "bo").outcome == "DENIED_CONFLICT"
        scene.submit(receipt)
        assert scene.claim(two, "bo").outcome == "GRANTED"

    def test_a_session_stands_in_its_own_way_with_two_claims(self, scene: Scene) -> None:
        one, two = scene.add(touches=("a",)), scene.add(touches=("a",))
        scene.take(one, "ann")
        assert scene.claim(two, "ann").outcome == "DENIED_CONFLICT"

    @pytest.mark.parametrize("how", ENDS)
    def test_work_set_aside_is_offered_again_when_the_other_claim_ends(self, scene: Scene, how: str) -> None:
        one, two = scene.add(touches=("src/**",), priority=10), scene.add(touches=("src/a.py",))
        receipt = scene.take(one, "ann", lease=600)
        nothing = scene.next("bo")
        assert nothing.outcome == "NO_TASK"
        assert (nothing.counts or {})["conflicting"] == 1
        assert scene.task(two).set_aside_for == scene.task(one).id
        ENDS[how](scene, one, receipt)
        if how not in ("submit", "cancel", "pause", "ask"):
            scene.do(c.Pause, task=one)
        if scene.state(one) == "paused":
            assert scene.next("bo").outcome == "GRANTED"
        assert scene.task(two).set_aside_for is None
        if how in ("submit", "cancel"):
            assert scene.next_keys(1, "bo") == [two]

    def test_work_set_aside_is_checked_again_when_its_touches_change(self, scene: Scene) -> None:
        one, two = scene.add(touches=("src/**",), priority=10), scene.add(touches=("src/a.py",))
        scene.take(one, "ann")
        assert scene.next("bo").outcome == "NO_TASK"
        scene.do(c.Edit, task=two, changes={"touches": ["docs/a.md"]})
        assert scene.next_keys(1, "bo") == [two]

    def test_a_holder_reserves_more_for_as_long_as_it_holds(self, scene: Scene) -> None:
        one = scene.add()
        two = scene.add(touches=("lib/x.py",))
        receipt = scene.take(one, "ann", lease=60)
        held = scene.do(c.Reserve, receipt=receipt, patterns=("lib/**",), agent="ann", session="s-ann")
        assert (held.outcome, held.receipt) == ("GRANTED", None)
        assert scene.claim(two, "bo").outcome == "DENIED_CONFLICT"
        scene.pass_time(seconds=60)
        assert scene.claim(two, "bo").outcome == "GRANTED"

    def test_reserving_the_same_again_with_a_claim_is_one_reservation(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(touches=("a",)))
        for _ in range(2):
            scene.do(c.Reserve, receipt=receipt, patterns=("a", "b"), agent="ann", session="s-ann")
        assert sorted(r.pattern for r in scene.rows(Reservation)) == ["a", "b"]

    # --- reservations that stand alone ----------------------------------------------------------------------------

    def test_a_standalone_reservation_has_a_receipt_and_a_lease_of_its_own(self, scene: Scene) -> None:
        held = scene.do(c.Reserve, patterns=("port:8080", "src/**"), agent="ann", session="s", lease=60)
        assert (held.outcome, held.lease) == ("GRANTED", 60.0)
        task = scene.add(touches=("src/x",))
        assert scene.claim(task, "bo").outcome == "DENIED_CONFLICT"
        other = scene.do(c.Reserve, patterns=("port:8081", "port:8080"), agent="bo", session="t")
        assert (other.outcome, other.holder, other.conflict) == ("DENIED_CONFLICT", "ann", "port:8080")
        scene.pass_time(seconds=59)
        renewed = scene.do(c.RenewReservation, receipt=held.receipt)
        assert (renewed.outcome, renewed.lease) == ("RENEWED", 60.0)
        scene.pass_time(seconds=59)
        assert scene.claim(task, "bo").outcome == "DENIED_CONFLICT"
        assert scene.do(c.Unreserve, receipt=held.receipt).outcome == "OK"
        assert scene.claim(task, "bo").outcome == "GRANTED"

    def test_a_reservation_ends_by_the_clock_with_no_sweep(self, scene: Scene) -> None:
        held = scene.do(c.Reserve, patterns=("env:x",), agent="ann", session="s", lease=60)
        scene.pass_time(seconds=60)
        assert scene.do(c.Reserve, patterns=("env:x",), agent="bo", session="t").outcome == "GRANTED"
        assert scene.do(c.RenewReservation, receipt=held.receipt).outcome == "NOT_FOUND"

    def test_a_swept_reservation_tells_its_holder_the_same(self, scene: Scene) -> None:
        held = scene.do(c.Reserve, patterns=("env:x",), agent="ann", session="s", lease=60)
        scene.pass_time(seconds=60)
        answers = []
        for _ in range(2):
            answers.append(scene.do(c.RenewReservation, receipt=held.receipt).outcome)
            scene.engine.sweep()
        assert answers[0] == answers[1]

    def test_shared_reservations_do_not_mind_each_other(self, scene: Scene) -> None:
        for agent in ("ann", "bo"):
            shared = scene.do(c.Reserve, patterns=("docs/**",), mode="shared", agent=agent, session=agent)
            assert shared.outcome == "GRANTED"
        assert scene.do(c.Reserve, patterns=("docs/x",), agent="cy", session="cy").outcome == "DENIED_CONFLICT"

    def test_a_session_does_not_stand_in_its_own_way_with_what_it_reserved(self, scene: Scene) -> None:
        scene.do(c.Reserve, patterns=("src/**",), agent="ann", session="s-ann")
        assert scene.claim(scene.add(touches=("src/x",)), "ann").outcome == "GRANTED"

    @pytest.mark.parametrize("kind", [c.RenewReservation, c.Unreserve])
    def test_a_reservation_is_fenced_like_a_claim(self, scene: Scene, kind: type[c.Command]) -> None:
        held = scene.do(c.Reserve, patterns=("env:x",), agent="ann", session="s").receipt or ""
        before = scene.tables()
        for wrong, code in (
            (forged(held, name="hold_nowhere"), "NOT_FOUND"),
            (forged(held, epoch="00000000"), "STALE_EPOCH"),
            (forged(held, generation=2), "FUTURE_GENERATION"),
            (forged(held, generation=0), "STALE_GENERATION"),
            (forged(held, nonce=bytes(16)), "SESSION_MISMATCH"),
        ):
            assert scene.do(kind, receipt=wrong).outcome == code
        assert scene.tables() == before
        assert scene.do(kind, receipt=held).ok

    # --- leadership -----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("agent", [True, False])
    def test_terms_only_grow(self, scene: Scene, agent: bool) -> None:
        first = scene.do(c.Lead, holder="one", agent=agent, lease=30)
        assert (first.outcome, first.term) == ("ELECTED", 1)
        denied = scene.do(c.Lead, holder="two", agent=agent)
        assert (denied.outcome, denied.holder, denied.term) == ("DENIED_LEADER", "one", 1)
        scene.pass_time(seconds=20)
        assert scene.do(c.Lead, holder="one", agent=agent, term=1).outcome == "RENEWED"
        scene.pass_time(seconds=29)
        assert scene.do(c.Lead, holder="two", agent=agent).outcome == "DENIED_LEADER"
        scene.pass_time(seconds=1)
        assert scene.do(c.Lead, holder="two", agent=agent).term == 2
        assert scene.do(c.Lead, holder="one", agent=agent, term=1).outcome == "DENIED_LEADER"
        assert scene.do(c.StepDown, holder="one", agent=agent, term=1).outcome == "STALE_TERM"
        stranger = scene.do(c.StepDown, holder="three", agent=agent, term=1)
        assert stranger.message == "one led with term 1, which is over; two leads with term 2"
        assert scene.do(c.StepDown, holder="two", agent=agent, term=2).outcome == "OK"
        assert scene.do(c.Lead, holder="two", agent=agent).term == 3

    @pytest.mark.parametrize("agent", [True, False])
    def test_who_never_led_cannot_step_down(self, scene: Scene, agent: bool) -> None:
        refused = scene.do(c.StepDown, holder="one", agent=agent, term=1)
        assert (refused.outcome, refused.directive) == ("STALE_TERM", "abort")

    def test_a_namesake_without_the_term_is_not_the_leader(self, scene: Scene) -> None:
        scene.do(c.Lead, holder="one")
        assert scene.do(c.Lead, holder="one").outcome == "DENIED_LEADER"
        assert scene.do(c.Lead, holder="one", term=2).outcome == "DENIED_LEADER"

    def test_a_leader_whose_lease_is_over_gets_a_new_term(self, scene: Scene) -> None:
        scene.do(c.Lead, holder="one", lease=30)
        scene.pass_time(seconds=30)
        again = scene.do(c.Lead, holder="one", lease=30, term=1)
        assert (again.outcome, again.term) == ("ELECTED", 2)
        assert scene.do(c.StepDown, holder="one", term=1).outcome == "STALE_TERM"

    def test_the_coordinator_is_the_stores_and_not_a_projects(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="q")
        assert scene.do(c.Lead, holder="one").outcome == "ELECTED"
        assert scene.do(c.Lead, project="q", holder="two").outcome == "DENIED_LEADER"
