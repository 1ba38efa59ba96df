"""The agent that leads a project: elected and renewed by its own commands, and its verbs under its term."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import Principal, Process
from tenure.core.errors import NotFound
from tenure.core.records import Leader
from tenure.engine import Engine
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene, code_of

ANN, BEN = (Principal(role="agent", agent=name, session=f"s-{name}") for name in ("ann", "ben"))
PROCESS = Process(host="h", boot="b", pid=7, start=1)
LED = ("assign", "reassign", "recover")
ENDS: dict[str, Callable[[Scene], object]] = {
    "leave": lambda scene: scene.do(c.Leave, session="s-ann"),
    "death": lambda scene: scene.do(c.Gone, processes=(PROCESS,)),
    "terminate": lambda scene: scene.do(c.Terminate, agent="ann"),
    "terminate now": lambda scene: scene.do(c.Terminate, agent="ann", graceful=False),
}
VISITOR: dict[str, Any] = {"address": "10.0.0.1", "user": "fleet", "tenant": "local"}  # a caller over HTTP
KEYS = {
    "for one agent": Principal(role="agent", agent="ann", is_proven=True, key="k-ann", **VISITOR),
    "for any agent": Principal(role="agent", agent="ann", session="s-ann", key="k-fleet", **VISITOR),
    "of no agent": Principal(role="agent", key="k-fleet", **VISITOR),
}


def leader(scene: Scene) -> tuple[str, int] | None:
    found = read_query(scene.engine, q.Status(project=PROJECT))["leader"]
    return None if found is None else (found["holder"], found["term"])


def terms(scene: Scene, kind: str) -> list[tuple[str | None, int]]:
    return [(event.agent, event.details["term"]) for event in scene.events(kind=kind)]


class AgentLeaders(Stage):
    @pytest.fixture
    def here(self, scene: Scene) -> Scene:
        """A project that the first agent leads; `ben` and `cem` are known to it."""
        scene.do(c.Register, agent="ben")
        scene.do(c.Register, agent="cem")
        scene.do(c.DefineProject, lead="auto")
        return scene

    # --- election -------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("how", ["register", "claim", "next"])
    def test_the_first_agent_that_joins_or_claims_leads(self, here: Scene, how: str) -> None:
        key = here.add()
        assert leader(here) is None
        if how == "register":
            here.do(c.Register, agent="ann", by=ANN)
        elif how == "claim":
            here.claim(key, "ann")
        else:
            here.next("ann")
        here.do(c.Register, agent="ben", by=BEN)
        assert leader(here) == ("ann", 1)
        assert terms(here, "leader.elected") == [("ann", 1)]

    def test_nobody_leads_by_being_first_where_the_project_says_off(self, scene: Scene) -> None:
        scene.engine = Engine(scene.store, scene.dice, msgspec.structs.replace(scene.engine.context, elects=True))
        scene.do(c.DefineProject, lead="off")
        scene.do(c.Register, agent="ann", by=ANN)
        assert leader(scene) is None
        scene.do(c.DefineProject, lead="default")
        scene.do(c.Register, agent="ann", by=ANN)
        assert leader(scene) == ("ann", 1)

    def test_behind_a_server_nobody_leads_by_default(self, scene: Scene) -> None:
        assert not scene.engine.context.elects
        scene.do(c.Register, agent="ann", by=ANN)
        assert leader(scene) is None

    def test_its_commands_renew_and_the_lease_is_thirty_seconds(self, here: Scene) -> None:
        receipt = here.take(here.add(), "ann", lease=3600)
        for _ in range(5):
            here.pass_time(seconds=29)
            assert here.do(c.Renew, receipt=receipt, by=ANN).outcome == "RENEWED"
        here.pass_time(seconds=30)
        here.clock.advance(-1)
        assert leader(here) == ("ann", 1)
        here.clock.advance(1)
        assert leader(here) is None

    def test_a_renewal_is_written_at_most_every_ten_seconds(self, here: Scene) -> None:
        here.do(c.Register, agent="ann", by=ANN)
        first: Leader = here.row(Leader, "agent")
        here.pass_time(seconds=9)
        here.do(c.Heartbeat, agent="ann", by=ANN)
        assert here.row(Leader, "agent").until == first.until
        here.pass_time(seconds=1)
        here.do(c.Heartbeat, agent="ann", by=ANN)
        assert here.row(Leader, "agent").until == here.now + 30_000_000

    def test_a_shorter_lease_of_the_settings_is_that_of_elections_and_is_renewed(self, here: Scene) -> None:
        here.engine = Engine(
            here.store, here.dice, msgspec.structs.replace(here.engine.context, leader_lease=6_000_000)
        )
        here.do(c.Register, agent="ann", by=ANN)
        for _ in range(3):
            here.pass_time(seconds=5)
            here.do(c.Heartbeat, agent="ann", by=ANN)
            assert here.row(Leader, "agent").until == here.now + 6_000_000
        here.pass_time(seconds=6)
        assert leader(here) is None

    def test_commands_of_others_do_not_renew(self, here: Scene) -> None:
        here.do(c.Register, agent="ann", by=ANN)
        here.pass_time(seconds=20)
        here.do(c.Register, agent="ben", by=BEN)
        here.pass_time(seconds=10)
        here.do(c.Heartbeat, agent="ben", by=BEN)
        assert leader(here) is None  # a heartbeat elects nobody
        assert terms(here, "leader.lost") == [("ann", 1)]

    def test_after_the_lease_the_next_that_claims_leads_with_the_next_term(self, here: Scene) -> None:
        here.do(c.Register, agent="ann", by=ANN)
        here.pass_time(seconds=30)
        here.next("ben")
        assert leader(here) == ("ben", 2)
        assert terms(here, "leader.lost") == [("ann", 1)]
        here.pass_time(seconds=29)
        here.do(c.Register, agent="ann", by=ANN)
        assert leader(here) == ("ben", 2)

    @pytest.mark.parametrize("swept", [False, True])
    def test_a_lost_leader_is_announced_once(self, here: Scene, swept: bool) -> None:
        here.do(c.Register, agent="ann", by=ANN)
        here.pass_time(seconds=40)
        if swept:
            here.engine.sweep()
            assert terms(here, "leader.lost") == [("ann", 1)]
        here.do(c.Register, agent="ann", by=ANN)
        assert (leader(here), terms(here, "leader.lost")) == (("ann", 2), [("ann", 1)])

    def test_the_end_of_its_process_ends_its_term(self, here: Scene) -> None:
        here.next("ann", process=PROCESS)
        (found,) = read_query(here.engine, q.Processes(project=PROJECT))
        assert (found["pid"], found["tasks"]) == (7, [])
        assert here.do(c.Gone, processes=(PROCESS,)).outcome == "OK"
        assert leader(here) is None
        assert terms(here, "leader.lost") == [("ann", 1)]
        here.next("ben")
        assert leader(here) == ("ben", 2)

    @pytest.mark.parametrize("how", ENDS)
    @pytest.mark.parametrize("is_auto", [False, True])
    def test_the_end_of_the_agent_ends_its_term(self, here: Scene, how: str, is_auto: bool) -> None:
        here.do(c.DefineProject, lead="auto" if is_auto else "off")
        here.take(here.add(), "ann", process=PROCESS)
        if not is_auto:
            here.do(c.Lead, holder="ann", agent=True, lease=1800)  # named by a person
        assert leader(here) == ("ann", 1)
        ENDS[how](here)
        assert (leader(here), terms(here, "leader.lost")) == (None, [("ann", 1)])
        assert here.row(Leader, "agent").until == here.now
        with pytest.raises(NotFound, match="has no leader now"):
            here.do(c.Send, sender="ben", to="@leader", text="hi")
        taken = here.do(c.Lead, holder="ben", agent=True, lease=60)
        assert (taken.outcome, taken.term) == ("ELECTED", 2)
        assert here.do(c.Send, sender="cem", to="@leader", text="hi").changed == ("ben",)

    @pytest.mark.parametrize("how", ENDS)
    def test_the_end_of_another_agent_ends_no_term(self, here: Scene, how: str) -> None:
        here.do(c.Lead, holder="ben", agent=True, lease=1800, by=BEN)
        here.take(here.add(), "ann", process=PROCESS)
        ENDS[how](here)
        assert (leader(here), terms(here, "leader.lost")) == (("ben", 1), [])

    def test_who_leaves_one_session_of_two_still_leads(self, here: Scene) -> None:
        for session in ("s-ann", "s-other"):
            here.claim(here.add(), "ann", session=session)
        assert leader(here) == ("ann", 1)
        here.do(c.Leave, session="s-ann")
        assert leader(here) == ("ann", 1)
        here.do(c.Leave, session="s-other")
        assert leader(here) is None

    def test_who_is_asked_to_finish_leads_no_more_though_it_holds_a_task(self, here: Scene) -> None:
        here.take(here.add(), "ann")
        here.do(c.Terminate, agent="ann")
        assert (leader(here), here.states("A-001")) == (None, ["claimed"])

    def test_an_agent_that_is_stopped_does_not_lead(self, here: Scene) -> None:
        here.do(c.DefineProject, lead="off")
        here.do(c.Register, agent="ann", by=ANN)
        here.do(c.Terminate, agent="ann")
        here.do(c.DefineProject, lead="auto")
        here.next("ann")
        assert leader(here) is None

    def test_lead_shows_the_term_of_the_leader_and_refuses_others(self, here: Scene) -> None:
        here.next("ann")
        own = here.do(c.Lead, holder="ann", agent=True, lease=600, by=ANN)
        assert (own.outcome, own.term, own.lease) == ("RENEWED", 1, 30.0)
        assert "term 1 for 30 s, which each of its commands renews" in own.message
        assert own.hint == "for a lease of 600 s pass the term: 1"
        assert here.do(c.Lead, holder="ann", agent=True, lease=30, by=ANN).hint is None
        longer = here.do(c.Lead, holder="ann", agent=True, lease=600, term=1, by=ANN)
        assert (longer.outcome, longer.lease) == ("RENEWED", 600.0)
        other = here.do(c.Lead, holder="ben", agent=True, by=BEN)
        assert (other.outcome, other.holder, other.term) == ("DENIED_LEADER", "ann", 1)

    def test_a_leader_by_command_is_not_deposed_by_claims(self, here: Scene) -> None:
        here.do(c.Lead, holder="mia", agent=True, lease=600)
        here.pass_time(seconds=300)
        here.next("ann")
        assert leader(here) == ("mia", 1)
        here.pass_time(seconds=300)
        here.next("ann")
        assert leader(here) == ("ann", 2)

    def test_one_that_stepped_down_is_announced_once(self, here: Scene) -> None:
        here.next("ann")
        here.do(c.StepDown, holder="ann", term=1, agent=True, by=ANN)
        here.next("ben")
        assert (leader(here), terms(here, "leader.lost")) == (("ben", 2), [("ann", 1)])

    def test_a_stale_term_is_explained_by_what_was(self, here: Scene) -> None:
        def why(holder: str, term: int) -> str:
            return str(here.do(c.StepDown, holder=holder, term=term, agent=True).message)

        assert why("ben", 1) == "ben does not lead: nobody has led yet"
        here.do(c.Lead, holder="ann", agent=True, lease=60)
        assert why("ben", 1) == "ben does not lead; ann leads with term 1"
        assert why("ann", 2) == "nobody has led with term 2; ann leads with term 1"
        here.pass_time(seconds=60)
        assert why("ann", 1) == why("ben", 1) == "ann's term 1 is over; nobody leads now"
        here.do(c.Lead, holder="ben", agent=True, lease=60)
        assert why("ann", 1) == why("cem", 1) == "ann led with term 1, which is over; ben leads with term 2"

    # --- who may lead ---------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("can", [(), ("leader",)], ids=["without the capability", "with it"])
    @pytest.mark.parametrize("setting", ["default", "off"])
    @pytest.mark.parametrize("key", KEYS)
    def test_no_key_leads_where_the_project_does_not_let_agents_lead(
        self, scene: Scene, key: str, setting: str, can: tuple[str, ...]
    ) -> None:
        by = msgspec.structs.replace(KEYS[key], capabilities=can)
        self._is_refused_everything(scene, by, setting)

    @pytest.mark.parametrize("key", KEYS)
    def test_over_http_no_key_leads_without_the_capability(self, scene: Scene, key: str) -> None:
        scene.do(c.DefineProject, lead="auto")
        by = KEYS[key]
        scene.do(c.Register, agent="ann", session="s-ann", by=by)
        scene.next("ann", session="s-ann", by=by)
        assert leader(scene) is None  # nor do its commands elect it
        self._is_refused_everything(scene, by, "auto")

    def test_in_a_store_without_a_server_no_agent_leads_where_the_project_says_off(self, scene: Scene) -> None:
        scene.engine = Engine(scene.store, scene.dice, msgspec.structs.replace(scene.engine.context, elects=True))
        self._is_refused_everything(scene, ANN, "off")
        scene.do(c.DefineProject, lead="default")
        scene.pass_time(seconds=30)
        assert scene.do(c.Lead, holder="ann", agent=True, by=ANN).outcome == "ELECTED"

    def _is_refused_everything(self, scene: Scene, by: Principal, setting: str) -> None:
        """Nothing that it sends makes it the leader, or ends the claim of another."""
        scene.do(c.DefineProject, lead="off")
        key, free = scene.add(), scene.add()
        receipt = scene.take(key, "ben")
        scene.know("cem")
        scene.do(c.DefineProject, lead=setting)
        for term in (None, 1):
            answer = scene.try_to(c.Lead, holder="ann", agent=True, lease=3600, term=term, by=by)
            assert code_of(answer) == "NOT_ALLOWED"
        assert (leader(scene), scene.events(kind="leader.elected")) == (None, [])
        scene.do(c.Lead, holder="ann", agent=True)  # a person names it
        before = scene.task(key)
        for term in (None, 1):
            assert code_of(scene.try_to(c.Recover, task=key, term=term, by=by)) == "NOT_ALLOWED"
            assert code_of(scene.try_to(c.Reassign, task=key, agent="ann", term=term, by=by)) == "NOT_ALLOWED"
            assert code_of(scene.try_to(c.Assign, task=free, agent="cem", term=term, by=by)) == "NOT_ALLOWED"
        assert scene.task(key) == before
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"

    @pytest.mark.parametrize("key", ["for one agent", "for any agent"])
    def test_a_leader_by_setting_and_capability_does_its_work(self, here: Scene, key: str) -> None:
        by = msgspec.structs.replace(KEYS[key], capabilities=("leader",))
        first = here.do(c.Lead, holder="ann", agent=True, lease=600, by=by)
        assert (first.outcome, first.term, first.lease) == ("ELECTED", 1, 600.0)
        held, free = here.add(), here.add()
        here.take(held, "ben")
        assert here.do(c.Recover, task=held, term=1, by=by).outcome == "UPDATED"
        assert here.do(c.Assign, task=free, agent="cem", term=1, by=by).outcome == "UPDATED"
        here.take(held, "ben")
        assert here.do(c.Reassign, task=held, agent="cem", term=1, by=by).outcome == "UPDATED"
        here.do(c.DefineProject, lead="off")
        assert code_of(here.try_to(c.Recover, task=held, term=1, by=by)) == "NOT_ALLOWED"
        assert here.do(c.StepDown, holder="ann", term=1, agent=True, by=by).outcome == "OK"

    def test_a_key_with_the_capability_is_elected_by_its_commands(self, here: Scene) -> None:
        by = msgspec.structs.replace(KEYS["for one agent"], capabilities=("leader",))
        here.do(c.Register, agent="ann", session="s-ann", by=by)
        assert leader(here) == ("ann", 1)

    @pytest.mark.parametrize("lease", [3600.001, 86400.0])
    def test_nobody_leads_for_more_than_an_hour_without_a_renewal(self, here: Scene, lease: float) -> None:
        assert code_of(here.try_to(c.Lead, holder="ann", agent=True, lease=lease, by=ANN)) == "INVALID_INPUT"

    # --- its verbs ------------------------------------------------------------------------------------------------

    def _verb(self, scene: Scene, verb: str, **fields: Any) -> str:
        """The code of one of the leader's verbs, on a task that it fits."""
        key = scene.add()
        if verb != "assign":
            scene.take(key, "ben")
        kinds: dict[str, type[c.Command]] = {"assign": c.Assign, "reassign": c.Reassign, "recover": c.Recover}
        if verb != "recover":
            fields["agent"] = "cem"
        before = scene.task(key).version
        answer = code_of(scene.try_to(kinds[verb], task=key, **fields))
        assert (scene.task(key).version > before) == (answer == "UPDATED")
        return answer

    @pytest.mark.parametrize("verb", LED)
    def test_the_leader_may_with_its_term_though_its_role_is_agent(self, here: Scene, verb: str) -> None:
        here.next("ann")
        assert self._verb(here, verb, term=1, by=ANN) == "UPDATED"

    @pytest.mark.parametrize("verb", LED)
    def test_without_a_term_an_agent_may_not(self, here: Scene, verb: str) -> None:
        here.next("ann")
        assert self._verb(here, verb, by=ANN) == "NOT_ALLOWED"

    @pytest.mark.parametrize("verb", LED)
    @pytest.mark.parametrize("term", [0, 2, 99])
    def test_another_term_is_refused(self, here: Scene, verb: str, term: int) -> None:
        here.next("ann")
        assert self._verb(here, verb, term=term, by=ANN) == "STALE_TERM"

    @pytest.mark.parametrize("verb", LED)
    def test_another_agent_may_not_use_the_leaders_term(self, here: Scene, verb: str) -> None:
        here.next("ann")
        assert self._verb(here, verb, term=1, by=BEN) == "STALE_TERM"
        nameless = Principal(role="agent")
        assert self._verb(here, verb, term=1, by=nameless) == "STALE_TERM"

    @pytest.mark.parametrize("verb", LED)
    def test_a_leader_whose_lease_is_over_may_not(self, here: Scene, verb: str) -> None:
        here.next("ann")
        here.pass_time(seconds=30)
        assert self._verb(here, verb, term=1, by=ANN) == "STALE_TERM"

    @pytest.mark.parametrize("verb", LED)
    def test_a_deposed_leader_may_not(self, here: Scene, verb: str) -> None:
        here.next("ann")
        here.pass_time(seconds=30)
        here.next("ben")
        assert self._verb(here, verb, term=1, by=ANN) == "STALE_TERM"
        assert self._verb(here, verb, term=2, by=ANN) == "STALE_TERM"
        assert self._verb(here, verb, term=2, by=BEN) == "UPDATED"

    @pytest.mark.parametrize("verb", LED)
    def test_a_person_that_gives_a_term_is_fenced_by_it(self, here: Scene, verb: str) -> None:
        here.next("ann")
        assert self._verb(here, verb, term=1) == "UPDATED"
        assert self._verb(here, verb, term=2) == "STALE_TERM"
        assert self._verb(here, verb) == "UPDATED"

    def test_the_term_opens_no_other_verb(self, here: Scene) -> None:
        here.next("ann")
        for kind in (c.Pause, c.Cancel, c.Abort):
            assert code_of(here.try_to(kind, task=here.add(), by=ANN)) == "NOT_ALLOWED"

    def test_an_offer_records_the_term_and_the_claim_shows_it(self, here: Scene) -> None:
        here.next("ann")
        key, other = here.add(), here.add()
        offered = here.do(c.Assign, task=key, agent="ben", term=1, by=ANN)
        assert (offered.term, here.task(key).offer_term) == (1, 1)
        here.do(c.Assign, task=other, agent="ben")
        claims = [here.next("ben", request_id="r") for _ in range(2)]
        assert [claim.term for claim in claims] == [1, 1]  # the second is the first again
        (entry,) = read_query(here.engine, q.History(project=PROJECT, task=key))
        assert (entry["term"], here.task(key).offer_term) == (1, None)
        assert here.next("ben").term is None

    def test_the_term_of_an_offer_ends_with_it(self, here: Scene) -> None:
        here.next("ann")
        key = here.add()
        here.do(c.Assign, task=key, agent="ben", seconds=5, term=1, by=ANN)
        here.pass_time(seconds=5)
        assert here.task(key).offer_term is None
        assert here.claim(key, "ben").term is None
