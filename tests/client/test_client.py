"""`tenure.Client` on both stores: every method reaches its verb, and every look shows what is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure
from tenure import Client, Dependency, NewTask, TenureError
from tenure.core import commands
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.outcomes import Outcome
from tenure.testing import FakeClock


class Team:
    """Clients of one project that share a store and a clock."""

    def __init__(self, url: str) -> None:
        self.clock = FakeClock()
        self.ann = Client(url, "shop", agent="ann", session="s-ann", clock=self.clock, create=True)
        self.ann.init()

    def joined_by(self, agent: str, role: str = "owner") -> Client:
        other = Client.__new__(Client)
        other.__dict__ |= self.ann.__dict__
        other.agent, other.session = agent, f"s-{agent}"
        other.principal = tenure.core.commands.Principal(role=role, agent=agent)
        return other


@pytest.fixture(params=["memory", "sqlite"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    team = Team("memory://" if request.param == "memory" else str(tmp_path / ".tenure" / "tenure.db"))
    yield team
    assert team.ann.verify() == []
    team.ann.close()


def held(client: Client, title: str = "Work", **fields: object) -> str:
    client.add(title, **fields)
    receipt = client.claim().receipt
    assert receipt is not None
    return receipt


def test_the_package_shows_its_names_and_no_others() -> None:
    for name in tenure.__all__:
        assert getattr(tenure, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Clientt'"):
        tenure.Clientt  # noqa: B018  # looking is the test


def test_a_task_is_shown_with_all_that_belongs_to_it(team: Team) -> None:
    ann = team.ann
    ann.add("Design", track="B", tags=("db",), description="d" * 5000, priority="high")
    ann.add("Build", track="C", after=["B-001", Dependency(task="B-001")])
    seen = ann.show("C-001")
    assert seen["state"] == "pending"
    assert seen["depends_on"] == [{"key": "B-001-design", "state": "ready", "on_failure": "block", "met": False}]
    assert seen["blocked_by"] == ["B-001-design"]
    receipt = ann.claim("B-001").receipt or ""
    ann.checkpoint(receipt, {"next": "x" * 6000})
    ann.submit(receipt, {"rows": ["y" * 6000]}, "three tables")
    design = ann.show("B-001")
    assert (design["state"], design["blocks"], design["tier"]) == ("completed", ["C-001-build"], "high")
    assert design["description"] == "d" * 5000
    assert design["result"]["data"] == {"rows": ["y" * 6000]}
    claim = ann.claim()
    assert (claim.inputs or {})["B-001-design"]["data"] == {"rows": ["y" * 6000]}


def test_the_last_checkpoint_is_handed_to_whoever_goes_on(team: Team) -> None:
    receipt = held(team.ann)
    team.ann.checkpoint(receipt, {"next_action": "write the tests"})
    team.clock.advance(seconds=301)
    taken = team.joined_by("bo").claim()
    assert taken.checkpoint is not None
    assert (taken.checkpoint["data"], taken.checkpoint["agent"]) == ({"next_action": "write the tests"}, "ann")
    assert team.ann.show("A-001")["checkpoint"]["generation"] == 1


def test_lists_are_filtered_sorted_and_paged(team: Team) -> None:
    ann = team.ann
    for number in range(7):
        ann.add(f"Task {number}", tags=("odd",) if number % 2 else (), priority=10 * number)
        team.clock.advance(seconds=1)
    held(ann, "Held", type="review")
    assert len(ann.tasks()) == 8
    assert [t["title"] for t in ann.tasks(tag="odd")] == ["Task 1", "Task 3", "Task 5"]
    assert [t["title"] for t in ann.tasks(priority_range=(20, 39), state="ready")] == ["Task 2", "Task 3"]
    assert [t["key"] for t in ann.tasks(agent="ann")] == ["A-001-task-0"]
    first = ann.tasks(order="-created_at", limit=3)
    rest = ann.tasks(order="-created_at", after=(first[-1]["created_at"], first[-1]["id"]))
    assert [t["title"] for t in first + rest] == ["Held", *(f"Task {n}" for n in range(6, -1, -1))]
    with pytest.raises(InvalidInput, match="did you mean ready"):
        ann.tasks(state="reddy")
    with pytest.raises(InvalidInput, match="filter"):
        ann.tasks(colour="red")


def test_archived_tasks_are_left_out_of_lists_unless_asked_for(team: Team) -> None:
    team.ann.add("Old")
    team.ann.cancel("A-001")
    team.ann.archive("A-001")
    assert team.ann.tasks() == []
    assert [t["key"] for t in team.ann.tasks(archived=True)] == ["A-001-old"]


def test_reads_show_the_settled_state_and_write_nothing(team: Team) -> None:
    held(team.ann)
    team.clock.advance(seconds=300)
    mark = team.ann.store.mark("local")
    assert team.ann.show("A-001")["state"] == "ready"
    assert team.ann.status()["tasks"] == {"ready": 1}
    assert [t["state"] for t in team.ann.tasks(state="ready")] == ["ready"]
    assert team.ann.tasks(state="claimed") == []
    assert team.ann.states(["A-001", "Z-999"]) == [
        {
            "name": "A-001", "outcome": "OK", "id": team.ann.show("A-001")["id"], "key": "A-001-work",
            "state": "ready", "generation": 1, "agent": None, "version": team.ann.show("A-001")["version"],
        },
        {"name": "Z-999", "outcome": "NOT_FOUND"},
    ]  # fmt: skip
    assert team.ann.store.mark("local") == mark
    assert team.ann.sweep() == 1
    assert team.ann.sweep() == 0
    assert team.ann.store.mark("local") > mark


def test_the_history_has_a_row_for_each_generation_and_what_was_refused(team: Team) -> None:
    first = held(team.ann)
    team.ann.renew(first)
    team.clock.advance(seconds=301)
    bo = team.joined_by("bo")
    second = bo.claim().receipt or ""
    team.ann.submit(first, "late", "too late")
    bo.submit(second, "good")
    lost, won = team.ann.history("A-001")
    assert (lost["release_reason"], lost["result_accepted"], lost["renewals"]) == ("EXPIRED", False, 1)
    assert [(r["reason"], r["summary"]) for r in lost["refused"]] == [("STALE_GENERATION", "too late")]
    assert (won["release_reason"], won["result_accepted"], won["session"]) == ("COMPLETED", True, "s-bo")
    assert won["work_product_ref"].startswith("wp-A-001-work-gen2-")
    assert sorted(r["data"] for r in team.ann.results("A-001")) == ["good", "late"]
    assert "nonce" not in str(team.ann.history("A-001"))


def test_why_explains_each_reason_to_wait(team: Team) -> None:
    ann = team.ann
    ann.register(capabilities=("python",), tracks=("A",))
    ann.add("First", constraints={"required_capabilities": ["rust"]})
    ann.add("Second", after=["A-001"])
    ann.add("Later", not_before=team.clock() + 60_000_000)
    ann.add("Draft", draft=True)
    ann.add("Paused")
    ann.pause("A-005", "holiday")
    ann.add("Elsewhere", track="B", constraints={"region": "eu"})
    ann.add("Touchy", touches=("src/**",))
    ann.add("Touchy too", touches=("src/x.py",))
    ann.claim("A-006")
    ann.claim(types=("code",))
    ann.stop_line("track:A", "broken build")

    def why(task: str) -> str:
        return " / ".join(ann.why(task)["reasons"])

    assert "no known agent can take it" in why("A-001")
    why_not = ["lacks rust", "claiming is stopped for track A: broken build"]
    assert ann.why("A-001")["agents"] == [{"agent": "ann", "why_not": why_not}]
    assert "waiting for A-001-first" in why("A-002")
    assert "may not start before" in why("A-003")
    assert "publish it" in why("A-004")
    assert "holiday" in why("A-005")
    assert "agent ann holds generation 1" in why("A-006")
    assert "would overlap src/**, reserved by agent ann for A-006-touchy" in why("A-007")
    assert "claiming is stopped for track A: broken build" in why("A-002")
    assert ann.why("B-001")["agents"][0]["why_not"] == ["is not in region eu", "works on A only"]
    assert ann.why("A-001")["priority"]["effective"] == 48  # one task below it weighs two points
    ann.start_line("track:A")
    assert "stopped" not in why("A-002")


def test_why_tells_of_dead_letters_retries_offers_and_cool_offs(team: Team) -> None:
    ann = team.ann
    receipt = held(ann, "Fragile", max_attempts=2, constraints={"model_preferences": ["opus"]})
    ann.fail(receipt, "flaky")
    assert "is retried at" in ann.why("A-001")["reasons"][0]
    team.clock.advance(seconds=60)
    ann.fail(ann.claim().receipt or "", "broken")
    assert "dead letter after 2 of 2 attempts: broken" in ann.why("A-001")["reasons"]
    assert [d["key"] for d in ann.dead_letters()] == ["A-001-fragile"]
    ann.retry("A-001", "look again")
    assert ann.dead_letters() == []
    assert ann.dead_letters(resolved=True)[0]["note"] == "look again"
    limited = ann.claim().receipt or ""
    ann.fail(limited, "slow down", "rate_limit", retry_after=30)
    team.clock.advance(seconds=10)
    ann.release(held(ann, "Handed back"))
    ann.do(commands.Register(project="shop", agent="bo"))
    ann.assign("A-002", "bo")
    why = ann.why("A-002")
    assert any(reason.startswith("offered to agent bo") for reason in why["reasons"])
    assert {"agent": "ann", "why_not": ["is not bo, to whom it is offered", "is cooling off on this task"]} in why[
        "agents"
    ]


def test_a_dag_shows_edges_counts_and_the_critical_path(team: Team) -> None:
    ann = team.ann
    made = ann.plan(
        [
            NewTask(title="One", name="one"),
            NewTask(title="Two", name="two", depends_on=("one",)),
            NewTask(title="Three", depends_on=("two",)),
            NewTask(title="Aside", depends_on=("one",)),
        ],
        title="Four",
    )
    id = (made.tasks or ())[0]["dag"]
    dag = ann.dag(id)
    assert (dag["total"], dag["live"], dag["blocked"], dag["status"]) == (4, 1, 3, "pending")
    assert dag["critical_path"] == ["A-001-one", "A-002-two", "A-003-three"]
    assert (dag["roots"], dag["leaves"]) == (["A-001-one"], ["A-003-three", "A-004-aside"])
    assert {(e["task"], e["needs"]) for e in dag["edges"]} >= {("A-002-two", "A-001-one")}
    assert [d["title"] for d in ann.dags()] == ["Four"]
    ann.add("Alone")
    alone = ann.dag(ann.show("A-005")["dag"])
    assert (alone["total"], alone["status"], alone["critical_path"]) == (1, "pending", ["A-005-alone"])
    with pytest.raises(NotFound, match="dag"):
        ann.dag("dag_none")


def test_a_session_remembers_what_it_claimed_did_and_lost(team: Team) -> None:
    ann = team.ann
    ann.submit(held(ann, "Done"), 1)
    lost = held(ann, "Lost")
    ann.renew(lost)
    team.clock.advance(seconds=301)
    ann.sweep()
    open_ = held(ann, "Open")
    ann.renew(open_)
    memory = ann.memory()
    what = [(e["event"], e["task"]) for e in memory["task_log"] if e["event"] != "lease_renewed"]
    assert what == [
        ("claim_acquired", "A-001-done"), ("result_submitted", "A-001-done"), ("claim_acquired", "A-002-lost"),
        ("claim_lost", "A-002-lost"), ("claim_acquired", "A-002-lost"),
    ]  # fmt: skip
    assert memory["completed"] == ["A-001-done"]
    assert [claim["key"] for claim in memory["active_claims"]] == ["A-002-lost"]
    assert memory["track_progress"] == {"A": {"completed": 1, "in_progress": 1, "pending": 1}}
    assert sum(e["count"] for e in memory["task_log"] if e["event"] == "lease_renewed") == 2
    with pytest.raises(NotFound, match="session"):
        ann.memory("nobody")


def test_the_status_is_one_screen(team: Team) -> None:
    ann = team.ann
    held(ann)
    assert ann.status()["leader"]["holder"] == "ann"  # the first that claims leads
    term = ann.lead().term
    status = ann.status()
    assert (status["leader"]["holder"], status["leader"]["term"]) == ("ann", 1)
    assert [(a["name"], a["status"], a["tasks"]) for a in status["agents"]] == [("ann", "active", ("A-001-work",))]
    assert ann.lead(term=term).outcome == "RENEWED"
    assert ann.step_down(1).outcome == "OK"
    assert ann.status()["leader"] is None
    assert [a["name"] for a in ann.agents()] == ["ann"]


def test_the_log_shows_events_without_their_patches(team: Team) -> None:
    held(team.ann)
    team.ann.note("A-001", "look here")
    kinds = [e["kind"] for e in team.ann.log(task="A-001")]
    assert kinds == ["task.created", "task.claimed", "task.noted"]
    assert all("patch" not in e for e in team.ann.log())
    assert [e["kind"] for e in team.ann.log(limit=1)] == ["task.noted"]
    assert team.ann.log(kind="task.claimed")[0]["agent"] == "ann"


def test_mail_is_read_by_each_for_itself(team: Team) -> None:
    bo, cy = team.joined_by("bo"), team.joined_by("cy")
    for client in (team.ann, bo, cy):
        client.register()
    team.ann.send("hello all")
    assert [m["text"] for m in bo.inbox()] == ["hello all"]
    assert (bo.read().mail, bo.inbox(), len(bo.inbox(unread=False))) == (1, [], 1)
    assert [m["from"] for m in cy.inbox(sender="ann")] == ["ann"]
    assert cy.heartbeat().mail == 1


def test_reservations_are_listed_renewed_and_given_back(team: Team) -> None:
    bo = team.joined_by("bo")
    mine = team.ann.reserve("port:8080", lease=60)
    assert bo.reserve("port:8080").outcome == "DENIED_CONFLICT"
    assert team.ann.renew_reservation(mine.receipt or "").outcome == "RENEWED"
    with_claim = held(bo)
    bo.reserve("src/api/**", receipt=with_claim)
    assert sorted((r["pattern"], r["task"]) for r in team.ann.reservations()) == [
        ("port:8080", None), ("src/api/**", "A-001-work"),
    ]  # fmt: skip
    assert team.ann.unreserve(mine.receipt or "").outcome == "OK"
    assert [r["pattern"] for r in team.ann.reservations()] == ["src/api/**"]
    bo.submit(with_claim)
    assert team.ann.reservations() == []


def test_a_question_pauses_and_its_answer_is_handed_on(team: Team) -> None:
    receipt = held(team.ann)
    assert team.ann.ask(receipt, "which colour?").state == "paused"
    team.ann.answer("A-001", "green")
    (said,) = (team.ann.claim().task or {})["answers"]
    assert (said["answer"], said["question"]) == ("green", "question: which colour?")


def test_subtasks_are_spawned_and_waited_for(team: Team) -> None:
    receipt = held(team.ann, "Parent")
    team.ann.spawn(receipt, [NewTask(title="Child")])
    assert team.ann.show("A-001")["subtasks"] == ["A-001-parent::1"]
    assert team.ann.wait_for_subtasks(receipt).waits_for == ("A-001-parent::1",)
    team.ann.submit(team.ann.claim().receipt or "", "child's")
    back = team.ann.claim()
    assert (back.task or {})["key"] == "A-001-parent"
    assert (back.inputs or {})["A-001-parent::1"]["data"] == "child's"


def test_a_persons_verbs_reach_the_task(team: Team) -> None:
    ann = team.ann
    ann.define_track("OPS", "Operations")
    ann.do(commands.Register(project="shop", agent="bo"))
    ann.add("Task", track="OPS", draft=True)
    assert ann.publish("OPS-001").changed == ("OPS-001-task",)
    ann.add("Other", track="OPS")
    assert ann.link("OPS-001", "OPS-002").state == "pending"
    assert ann.unlink("OPS-001", "OPS-002").state == "ready"
    assert ann.update("OPS-001", title="Renamed", priority="critical").outcome == "UPDATED"
    assert ann.update("OPS-001", version=1, title="No").outcome == "VERSION_CONFLICT"
    receipt = ann.claim("OPS-001").receipt or ""
    ann.start(receipt)
    ann.progress(receipt, 40, "half", done_in=60)
    assert ann.show("OPS-001")["percent"] == 40
    assert ann.pause("OPS-001", drain=True).state == "running"
    assert ann.renew(receipt).directive == "pause"
    assert ann.recover("OPS-001").state == "ready"
    assert ann.submit(receipt, "kept").outcome == "NO_CLAIM"
    assert ann.adopt("OPS-001").state == "completed"
    assert ann.reset("OPS-001").state == "ready"
    ann.claim("OPS-001")
    assert ann.abort("OPS-001").state == "retrying"
    cancelled = ann.cancel("OPS-002")
    assert ann.undo(cancelled.command_id or "").outcome == "UPDATED"
    ann.claim("OPS-002")
    assert ann.reassign("OPS-002", "bo").holder == "bo"
    assert ann.resume("OPS-002").outcome == "DENIED_STATE"
    assert ann.drain().outcome == "UPDATED"
    assert ann.terminate("ann", graceful=False).outcome == "UPDATED"
    assert ann.leave().outcome == "OK"


def test_a_batch_answers_each_command(team: Team) -> None:
    c = tenure.core.commands
    answers = team.ann.batch(
        [
            c.Add(project="shop", task=NewTask(title="One")),
            c.Add(project="shop", task=NewTask(title="")),
            c.ClaimNext(project="shop", agent="bo", session="s"),
        ]
    )
    assert [a.code if isinstance(a, TenureError) else a.outcome for a in answers] == [
        "CREATED",
        "INVALID_INPUT",
        "GRANTED",
    ]


def test_a_waiter_wakes_when_work_is_added(tmp_path: Path) -> None:
    """Two connections on one file; the waiter is woken by the event, long before its poll."""
    url = str(tmp_path / "t" / "tenure.db")
    with Client(url, "shop", agent="ann", create=True) as ann, Client(url, "shop", agent="bo") as bo:
        ann.init()
        got: list[str] = []
        waiter = threading.Thread(target=lambda: got.append(bo.claim(wait=25).outcome))
        waiter.start()
        ann.add("Something to do")
        waiter.join(timeout=20)
        assert got == ["GRANTED"]


def test_a_claim_by_name_waits_for_the_end_of_another_s_and_for_a_time(tmp_path: Path) -> None:
    url = str(tmp_path / "t" / "tenure.db")
    with Client(url, "shop", agent="ann", create=True) as ann, Client(url, "shop", agent="bo") as bo:
        ann.init()
        ann.add("One", not_before_in=0.2)
        receipt = ann.claim("A-001", wait=20).receipt
        got: list[Outcome] = []
        waiter = threading.Thread(target=lambda: got.append(bo.claim("A-001", wait=25)))
        waiter.start()
        ann.release(receipt)
        waiter.join(timeout=20)
        assert [one.outcome for one in got] == ["GRANTED"]
        assert bo.claim("A-001", wait=25).yours  # its own claim does not end by waiting
        bo.submit(got[0].receipt, "done")
        assert ann.claim("A-001", wait=25).outcome == "DENIED_COMPLETED"
        ann.add("Two", after=["A-001"], draft=True)
        assert ann.claim("A-002", wait=0.01).outcome == "DENIED_NOT_READY"


def test_a_waiter_gives_up_in_time(team: Team) -> None:
    ticks = iter(range(0, 1000, 6))
    team.ann._monotonic = lambda: float(next(ticks))
    assert team.ann.claim(wait=1).outcome == "NO_TASK"


def test_a_backup_is_a_copy_with_an_epoch_of_its_own(tmp_path: Path) -> None:
    with Client(str(tmp_path / "a" / "tenure.db"), "shop", agent="ann", create=True) as ann:
        ann.init()
        receipt = held(ann)
        ann.backup(str(tmp_path / "copy.db"))
        with Client(str(tmp_path / "copy.db"), "shop", agent="ann") as copy:
            assert copy.show("A-001")["state"] == "ready"
            assert copy.submit(receipt, 1).outcome == "STALE_EPOCH"
            assert copy.verify() == []
        assert ann.submit(receipt, 1).outcome == "ACCEPTED"


def test_a_new_epoch_voids_every_receipt(team: Team) -> None:
    receipt = held(team.ann)
    team.ann.new_epoch("a failover may have lost commits")
    assert team.ann.submit(receipt, 1).outcome == "STALE_EPOCH"
    assert team.ann.claim().generation == 2
