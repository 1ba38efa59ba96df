"""How far a principal reaches: its projects, and as an agent its own name, sessions and claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core import roles
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import NotAllowed, NotFound
from tenure.core.records import Project, Session, Sink
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.engine import checked_command
from tenure.testing.engine.operators import some_command
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene, code_of

ANN = Principal(role="agent", agent="ann", user="fleet", is_proven=True, key="k-ann")
BO = Principal(role="agent", agent="bo", user="fleet", is_proven=True, key="k-bo")
RELAYS = (c.PauseRelay, c.ResumeRelay, c.RewindRelay, c.RemoveRelay)
OF_STORE = (c.CreateKey, c.RotateKey, c.RevokeKey, *roles.OF_ALL_PROJECTS)


class Reach(Stage):
    # --- projects ---------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("role", roles.ROLES)
    def test_another_project_looks_unknown_to_every_command(self, scene: Scene, role: str) -> None:
        key = scene.add()
        scene.do(c.DefineProject, project="mine")
        outsider = Principal(role=role, user="x", projects=("mine", "also-mine"))
        before = scene.tables()
        for kind in roles.NEEDS:
            if kind in OF_STORE:
                continue
            (answer,) = scene.run(some_command(kind, key), by=outsider)
            assert isinstance(answer, NotFound), (kind, answer)
            assert "p" in answer.message
        assert scene.tables() == before

    def test_an_unknown_project_and_anothers_are_told_apart_by_nothing(self, scene: Scene) -> None:
        outsider = Principal(role="owner", projects=("mine",))
        hidden = scene.try_to(c.Add, task=NewTask(title="x"), by=outsider)
        missing = scene.try_to(c.Add, project="q", task=NewTask(title="x"))
        assert isinstance(hidden, NotFound)
        assert isinstance(missing, NotFound)
        assert (hidden.message.replace("'p'", "'q'"), hidden.hint) == (missing.message, missing.hint)

    def test_another_project_looks_unknown_to_every_look(self, scene: Scene) -> None:
        key = scene.add()
        outsider = Principal(role="owner", projects=("mine",))
        for kind in set(q.ALL) - {q.Projects, q.Keys, *roles.OF_ALL_PROJECTS}:
            more = {"dag": "d"} if kind is q.ShowDag else {}
            with pytest.raises(NotFound, match="no project"):
                read_query(scene.engine, some_query(kind, key, **more), outsider)
            with pytest.raises(NotFound, match="no project"):  # nor the store as a whole
                read_query(scene.engine, msgspec.structs.replace(some_query(kind, key, **more), project=""), outsider)

    def test_of_the_projects_only_its_own_are_listed(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="mine")
        assert read_query(scene.engine, q.Projects(), Principal(role="owner", projects=("mine", "later"))) == ["mine"]
        assert read_query(scene.engine, q.Projects()) == ["mine", PROJECT]

    def test_in_its_own_project_it_may_what_its_role_may(self, scene: Scene) -> None:
        here = Principal(role="member", user="mia", projects=(PROJECT,))
        key = scene.do(c.Add, task=NewTask(title="x"), by=here).task
        assert key is not None
        assert scene.do(c.Cancel, task=key["key"], by=here).outcome == "UPDATED"
        new = scene.do(c.DefineProject, project="later", by=Principal(role="admin", projects=("later",)))
        assert new.outcome == "CREATED"

    def test_one_projects_admin_does_not_coordinate_the_store(self, scene: Scene) -> None:
        here = Principal(role="admin", projects=(PROJECT,))
        assert code_of(scene.try_to(c.Lead, holder="x", by=here)) == "NOT_ALLOWED"

    def test_a_key_for_some_projects_neither_sees_nor_touches_relays(self, scene: Scene) -> None:
        here, all_over = Principal(role="admin", projects=(PROJECT,)), Principal(role="admin")
        row = Sink(project="", id="nats", sequence=0, created_at=scene.now)
        scene.engine.transact((), lambda work: work.put(row))
        for kind in RELAYS:
            (answer,) = scene.run(kind(sink="nats"), by=here)
            assert isinstance(answer, NotAllowed), kind
        with pytest.raises(NotAllowed, match="all projects"):
            read_query(scene.engine, q.Relays(), here)
        (seen,) = read_query(scene.engine, q.Relays(), all_over)
        assert (seen["name"], seen["paused_at"]) == ("nats", None)

    def test_the_short_way_of_claims_asks_for_the_project_of_each(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann", session="s")  # the fast path grants to known agents alone
        for _ in range(3):
            scene.add()
        mine, theirs = Principal(role="agent", projects=(PROJECT,)), Principal(role="agent", projects=("other",))
        command = c.ClaimNext(project=PROJECT, agent="ann", session="s")
        answers = scene.engine.run_checked([checked_command(command, by) for by in (mine, theirs, mine)])
        assert [code_of(a) for a in answers] == ["GRANTED", "NOT_FOUND", "GRANTED"]

    # --- viewers ----------------------------------------------------------------------------------------------

    def test_a_viewer_looks_and_does_nothing(self, scene: Scene) -> None:
        key = scene.add()
        viewer = Principal(role="viewer", user="vera")
        for kind in roles.NEEDS:
            (answer,) = scene.run(some_command(kind, key), by=viewer)
            assert isinstance(answer, NotAllowed), kind
        scene.take(key, "ann")
        scene.do(c.SetBudget, scope="project", usd="5")
        scene.run(*(some_command(kind, key) for kind in (c.SetSchedule, c.SetTrigger, c.SetWebhook)))
        scene.do(c.SetPool, pool="crew", program="claude")
        scene.do(c.AuditOn)
        for seen in set(q.ALL) - {*roles.QUERIES_NEED, q.ShowDag}:
            read_query(scene.engine, some_query(seen, key), viewer)
        for kept_from in roles.QUERIES_NEED:
            with pytest.raises(NotAllowed):
                read_query(scene.engine, some_query(kept_from, key), viewer)
        with pytest.raises(NotAllowed):
            read_query(scene.engine, q.Status(project=PROJECT), Principal(role="root"))

    # --- agents -----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("by", [ANN, Principal(role="agent", agent="ann")], ids=["proven", "said"])
    def test_an_agent_speaks_for_no_other(self, scene: Scene, by: Principal) -> None:
        key = scene.add()
        before = scene.tables()
        for kind, field in roles.SPEAKS_FOR.items():
            command = some_command(kind, key)
            name = {field: "bo"} | ({"agent": True} if kind in (c.Lead, c.StepDown) else {})
            (answer,) = scene.run(msgspec.structs.replace(command, **name), by=by)
            assert isinstance(answer, NotAllowed), kind
            assert "ann" in answer.message
        assert scene.tables() == before

    def test_every_command_of_agents_that_names_one_is_compared(self) -> None:
        naming = {"agent", "sender", "holder"}
        for kind, role in roles.NEEDS.items():
            if role == "agent" and naming & set(kind.__struct_fields__):
                assert kind in roles.SPEAKS_FOR, kind

    def test_an_agents_key_takes_no_others_session(self, scene: Scene) -> None:
        key = scene.add()
        scene.next("bo", session="s-bo")
        assert [s.agent for s in scene.rows(Session)] == ["bo"]
        tries: list[tuple[type[c.Command], dict[str, Any]]] = [
            (c.ClaimTask, {"task": key, "agent": "ann"}),
            (c.ClaimNext, {"agent": "ann"}),
            (c.Register, {"agent": "ann"}),
            (c.Heartbeat, {"agent": "ann"}),
            (c.Reserve, {"agent": "ann", "patterns": ("x",)}),
            (c.Leave, {}),
        ]
        before = scene.tables()
        for kind, fields in tries:
            assert code_of(scene.try_to(kind, session="s-bo", by=ANN, **fields)) == "NOT_ALLOWED", kind
        assert scene.tables() == before
        assert scene.do(c.Leave, session="s-bo", by=BO).outcome == "OK"

    def test_a_key_for_any_agent_ends_no_session_with_claims_of_another_key(self, scene: Scene) -> None:
        """Both may call themselves what they like: the claims know which key made them."""
        one, other = (Principal(role="agent", user="fleet", key=key, address="10.0.0.1") for key in ("k-1", "k-2"))
        key = scene.add()
        assert scene.claim(key, "bo", session="s-bo", by=one).outcome == "GRANTED"
        before = scene.tables()
        named = msgspec.structs.replace(other, agent="bo", session="s-bo")
        for thief in (other, named):
            assert code_of(scene.try_to(c.Leave, session="s-bo", by=thief)) == "NOT_ALLOWED"
        assert scene.tables() == before
        assert scene.do(c.Leave, session="s-bo", by=one).changed == (key,)

    def test_every_command_of_agents_that_names_a_session_is_tried_above(self) -> None:
        naming = {k for k, role in roles.NEEDS.items() if role == "agent" and "session" in k.__struct_fields__}
        assert naming == {c.ClaimTask, c.ClaimNext, c.Register, c.Heartbeat, c.Reserve, c.Leave}

    def test_sub_agents_of_one_host_share_a_session_by_their_word(self, scene: Scene) -> None:
        scene.next("bo", session="shared")
        principal = Principal(role="agent", agent="sub", session="shared")
        assert scene.do(c.ClaimTask, task=scene.add(), agent="sub", session="shared", by=principal).outcome == "GRANTED"

    def test_an_agents_key_does_nothing_with_anothers_receipt(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), "bo")
        held = scene.do(c.Reserve, patterns=("x",), agent="bo", session="s-bo").receipt
        waiting = scene.add(output={"validation": "test-pass", "settings": {"command": "unit"}})
        scene.submit(scene.take(waiting, "bo"))
        far = {"address": "10.0.0.1", "capabilities": ("checker",)}
        checked = scene.do(
            c.TakeValidation, checker="cy", by=msgspec.structs.replace(BO, agent="cy", key="k-cy", **far)
        ).receipt
        before = scene.tables()
        for kind in [k for k in roles.NEEDS if "receipt" in k.__struct_fields__]:
            theirs = held if kind in (c.RenewReservation, c.Unreserve) else receipt
            theirs = checked if kind in (c.RenewValidation, c.Judge, c.Undecide) else theirs
            command = msgspec.structs.replace(some_command(kind, "A-001"), receipt=theirs)
            (answer,) = scene.run(command, by=msgspec.structs.replace(ANN, **far) if theirs is checked else ANN)
            assert isinstance(answer, NotAllowed), (kind, answer)
        assert scene.tables() == before
        assert scene.do(c.Submit, receipt=receipt, by=BO).outcome == "ACCEPTED"

    def test_a_thief_in_a_batch_is_refused_alone(self, scene: Scene) -> None:
        receipts = [scene.take(scene.add(), "bo") for _ in range(4)]
        for kind, good in ((c.Renew, "RENEWED"), (c.Submit, "ACCEPTED")):
            batch = [
                checked_command(kind(project=PROJECT, receipt=r), ANN if n == 2 else BO) for n, r in enumerate(receipts)
            ]
            answers = scene.engine.run_checked(batch)
            assert [code_of(a) for a in answers] == [good, good, "NOT_ALLOWED", good]

    def test_an_agents_own_work_goes_through_with_its_key(self, scene: Scene) -> None:
        for _ in range(2):
            scene.add()
        for _ in range(2):
            claimed = scene.do(c.ClaimNext, agent="ann", session="s", user="somebody", by=ANN)
            assert scene.do(c.Renew, receipt=claimed.receipt, by=ANN).outcome == "RENEWED"
            assert scene.do(c.Submit, receipt=claimed.receipt, data=1, by=ANN).outcome == "ACCEPTED"
        # by whose key it was done is not for the agent to say
        assert {claim.user for claim in scene.lineage("A-001") + scene.lineage("A-002")} == {"fleet"}
        assert {s.user for s in scene.rows(Session)} == {"fleet"}

    def test_an_agent_reads_no_others_mail(self, scene: Scene) -> None:
        scene.do(c.Register, agent="bo")
        scene.know("bo")
        scene.do(c.Send, sender="x", to="bo", text="secret")
        with pytest.raises(NotAllowed):
            read_query(scene.engine, q.Inbox(project=PROJECT, agent="bo"), ANN)
        with pytest.raises(NotAllowed):
            read_query(scene.engine, q.Messages(project=PROJECT), ANN)
        assert len(read_query(scene.engine, q.Inbox(project=PROJECT, agent="bo"), BO)) == 1

    def test_a_viewer_reads_neither_mail_nor_checkpoints(self, scene: Scene) -> None:
        scene.do(c.Register, agent="bo")
        scene.know("bo")
        scene.do(c.Send, sender="x", to="bo", text="secret")
        key = scene.add()
        scene.do(c.SaveCheckpoint, receipt=scene.take(key, "bo"), data={"next_action": "secret"})
        viewer, nobody = Principal(role="viewer", user="vi"), Principal(role="agent", user="fleet", key="k")
        for who in (viewer, nobody):
            for query in (q.Inbox(project=PROJECT, agent="bo"), q.Messages(project=PROJECT)):
                with pytest.raises(NotAllowed):
                    read_query(scene.engine, query, who)
        shown = read_query(scene.engine, q.Show(project=PROJECT, task=key), viewer)
        assert "secret" not in str(shown)
        assert "secret" not in str(read_query(scene.engine, q.Log(project=PROJECT), viewer))
        assert read_query(scene.engine, q.Show(project=PROJECT, task=key), BO)["checkpoint"]["data"]

    def test_where_agents_may_operate_they_still_speak_for_themselves(self, scene: Scene) -> None:
        scene.do(c.DefineProject, agents_may_operate=True)
        key = scene.add()
        scene.know("bo")
        assert scene.do(c.Assign, task=key, agent="bo", by=ANN).outcome == "UPDATED"
        assert code_of(scene.try_to(c.ClaimTask, task=key, agent="bo", session="s", by=ANN)) == "NOT_ALLOWED"
        assert scene.row(Project, PROJECT).agents_may_operate


def some_query(kind: type[q.Query], key: str, **more: Any) -> q.Query:
    """A query of that kind that has an answer in a project with this task, held by ann; a dag is named by `more`."""
    fields: dict[str, Any] = {
        "task": key, "agent": "ann", "session": "s-ann", "tasks": (key,), "scope": "project", "schedule": "s",
        "trigger": "t", "webhook": "w", "pool": "crew", "tenant": "local",
    }  # fmt: skip
    needed = [field.name for field in msgspec.structs.fields(kind) if field.required]
    return kind(project=PROJECT, **{name: fields[name] for name in needed if name in fields} | more)
