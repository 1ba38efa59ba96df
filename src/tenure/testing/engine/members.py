"""Members of a tenant, and the tenants of a deployment."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, NotAllowed, NotFound
from tenure.core.outcomes import Outcome
from tenure.core.records import ApiKey, Member, Project, Tenant
from tenure.engine import Context, Engine
from tenure.engine.reads.query_table import read_query
from tenure.engine.verbs.members import joined
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import OWNER, PROJECT, Scene, code_of

ADMIN = Principal(role="admin", user="ada")


def invited(scene: Scene, user: str, role: str = "member", **fields: Any) -> Outcome:
    outcome = scene.do(c.InviteMember, project="", user=user, role=role, **fields)
    assert outcome.outcome == "CREATED"
    return outcome


def key_of(scene: Scene, user: str, role: str = "member", **fields: Any) -> str:
    outcome = scene.do(c.CreateKey, project="", name=f"{user}-{role}", user=user, role=role, **fields)
    assert outcome.key is not None
    return str(outcome.key["id"])


def is_revoked(scene: Scene, key: str) -> bool:
    return scene.row(ApiKey, key, "").revoked_at is not None


def members(scene: Scene, *, left: bool = False) -> dict[str, tuple[str, str]]:
    found = read_query(scene.engine, q.Members(left=left), ADMIN)
    return {one["user"]: (one["role"], one["status"]) for one in found}


class Members(Stage):
    def test_who_may_see_members_reads_their_events_and_nobody_else_does(self, scene: Scene) -> None:
        invited(scene, "mia")
        key_of(scene, "mia")
        asked = q.Log(project=PROJECT, kind=("member", "key"), store=True)

        def seen(**caller: Any) -> list[str]:
            return [event["kind"] for event in read_query(scene.engine, asked, Principal(**caller))]

        assert seen(role="admin") == ["member.invited", "key.created"]
        for caller in ({"role": "member"}, {"role": "viewer"}, {"role": "owner", "projects": (PROJECT,)}):
            assert seen(**caller) == []

    def test_a_person_is_invited_joins_and_leaves(self, scene: Scene) -> None:
        member = invited(scene, "mia", projects=(PROJECT,)).member
        assert member is not None
        assert (member["role"], tuple(member["projects"]), member["status"]) == ("member", (PROJECT,), "invited")
        scene.pass_time(seconds=5)
        scene.engine.transact(("",), lambda work: joined(work, "mia"))
        scene.engine.transact(("",), lambda work: joined(work, "mia"))
        assert members(scene) == {"mia": ("member", "active")}
        assert scene.do(c.RemoveMember, project="", user="mia").outcome == "UPDATED"
        assert members(scene) == {}
        assert members(scene, left=True) == {"mia": ("member", "left")}
        kinds = [event.kind for event in scene.events() if event.kind.startswith("member.")]
        assert kinds == ["member.invited", "member.joined", "member.removed"]
        assert invited(scene, "mia", "viewer").member["status"] == "invited"  # type: ignore[index]
        assert members(scene) == {"mia": ("viewer", "invited")}

    def test_nobody_joins_who_is_not_invited(self, scene: Scene) -> None:
        assert scene.engine.transact(("",), lambda work: joined(work, "eve")) is None
        invited(scene, "mia")
        scene.do(c.RemoveMember, project="", user="mia")
        scene.engine.transact(("",), lambda work: joined(work, "mia"))
        row = scene.row(Member, "mia", "")
        assert (row.joined_at, row.left_at) == (None, scene.now)

    def test_a_member_is_invited_once(self, scene: Scene) -> None:
        invited(scene, "mia")
        again = scene.do(c.InviteMember, project="", user="mia", role="viewer")
        assert (again.outcome, again.member["role"]) == ("EXISTS", "member")  # type: ignore[index]
        assert len(scene.events(kind="member.invited")) == 1

    @pytest.mark.parametrize("role", ["admin", "owner"])
    def test_an_admin_neither_gives_nor_takes_a_role_above_member(self, scene: Scene, role: str) -> None:
        invited(scene, "mia")
        invited(scene, "high", role)
        invited(scene, "olga", "owner")
        before = scene.tables()
        for command in (
            c.InviteMember(user="new", role=role),
            c.ChangeMember(user="mia", role=role),
            c.ChangeMember(user="high", role="viewer"),
            c.RemoveMember(user="high"),
        ):
            (answer,) = scene.run(command, by=ADMIN)
            assert isinstance(answer, NotAllowed), command
        assert scene.tables() == before
        assert scene.do(c.InviteMember, project="", user="vera", role="viewer", by=ADMIN).outcome == "CREATED"
        assert scene.do(c.ChangeMember, project="", user="vera", role="member", by=ADMIN).outcome == "UPDATED"
        assert scene.do(c.RemoveMember, project="", user="vera", by=ADMIN).outcome == "UPDATED"

    @pytest.mark.parametrize("role", ["viewer", "agent", "member"])
    def test_below_admin_nobody_manages_or_lists_members(self, scene: Scene, role: str) -> None:
        by = Principal(role=role, user="low")
        for command in (c.InviteMember(user="x"), c.ChangeMember(user="x"), c.RemoveMember(user="x")):
            (answer,) = scene.run(command, by=by)
            assert isinstance(answer, NotAllowed)
        with pytest.raises(NotAllowed):
            read_query(scene.engine, q.Members(), by)

    def test_an_admin_of_some_projects_manages_no_members(self, scene: Scene) -> None:
        by = Principal(role="owner", projects=(PROJECT,))
        assert code_of(scene.try_to(c.InviteMember, project="", user="x", by=by)) == "NOT_ALLOWED"
        with pytest.raises(NotAllowed, match="all projects"):
            read_query(scene.engine, q.Members(), by)

    def test_a_tenant_keeps_its_last_owner(self, scene: Scene) -> None:
        invited(scene, "olga", "owner")
        for answer in (
            scene.do(c.RemoveMember, project="", user="olga"),
            scene.do(c.ChangeMember, project="", user="olga", role="admin"),
        ):
            assert (answer.outcome, "only owner" in answer.message) == ("DENIED_STATE", True)
        invited(scene, "otto", "owner")
        assert scene.do(c.ChangeMember, project="", user="olga", role="admin").outcome == "UPDATED"
        assert scene.do(c.RemoveMember, project="", user="otto").outcome == "DENIED_STATE"

    def test_an_owner_may_lose_projects_and_stay_owner(self, scene: Scene) -> None:
        invited(scene, "olga", "owner")
        assert scene.do(c.ChangeMember, project="", user="olga", projects=(PROJECT,)).outcome == "UPDATED"
        assert scene.do(c.ChangeMember, project="", user="olga", projects=(PROJECT,)).outcome == "UNCHANGED"

    def test_who_is_removed_loses_every_key(self, scene: Scene) -> None:
        invited(scene, "mia", "admin")
        invited(scene, "otto", "owner")
        mine, also, other = key_of(scene, "mia"), key_of(scene, "mia", "agent"), key_of(scene, "otto")
        done = scene.do(c.RemoveMember, project="", user="mia")
        assert done.message == "2 of their API keys revoked"
        assert [is_revoked(scene, key) for key in (mine, also, other)] == [True, True, False]
        assert len(scene.events(kind="key.revoked")) == 2

    def test_a_lowered_member_loses_the_keys_that_reach_further(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="web")
        invited(scene, "mia", "admin")
        high, low = key_of(scene, "mia", "admin"), key_of(scene, "mia", "viewer", projects=("web",))
        scene.do(c.ChangeMember, project="", user="mia", role="member")
        assert [is_revoked(scene, key) for key in (high, low)] == [True, False]
        wide = key_of(scene, "mia", "member")
        scene.do(c.ChangeMember, project="", user="mia", projects=("web",))
        assert [is_revoked(scene, key) for key in (wide, low)] == [True, False]

    def test_an_invitation_revokes_no_key_that_its_author_could_not(self, scene: Scene) -> None:
        key = key_of(scene, "boss", "owner")
        before = scene.tables()
        assert code_of(scene.try_to(c.InviteMember, project="", user="boss", role="viewer", by=ADMIN)) == "NOT_ALLOWED"
        assert scene.tables() == before
        assert not is_revoked(scene, key)

    def test_a_key_reaches_no_further_than_its_member(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="web")
        invited(scene, "mia", "member", projects=("web",))
        for fields in ({"role": "admin", "projects": ("web",)}, {"role": "member"}, {"role": "viewer"}):
            answer = scene.try_to(c.CreateKey, project="", name="k", user="mia", **fields)
            assert code_of(answer) == "NOT_ALLOWED", fields
        assert not is_revoked(scene, key_of(scene, "mia", "member", projects=("web",)))
        assert not is_revoked(scene, key_of(scene, "somebody-else", "admin"))
        scene.do(c.RemoveMember, project="", user="mia")
        gone = scene.try_to(c.CreateKey, project="", name="mia", role="viewer", projects=("web",))
        assert isinstance(gone, NotAllowed)
        assert "has left the tenant" in gone.message

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"user": ""}, "INVALID_INPUT"),
            ({"user": " mia"}, "INVALID_INPUT"),
            ({"user": "m\nia"}, "INVALID_INPUT"),
            ({"user": "m" * 256}, "TOO_LARGE"),
            ({"user": "mia", "role": "agent"}, "INVALID_INPUT"),
            ({"user": "mia", "role": "boss"}, "INVALID_INPUT"),
            ({"user": "mia", "projects": ("nowhere",)}, "NOT_FOUND"),
            ({"user": "mia", "project": PROJECT}, "INVALID_INPUT"),
        ],
    )
    def test_bad_invitations_are_refused(self, scene: Scene, fields: dict[str, Any], code: str) -> None:
        answer = scene.try_to(c.InviteMember, **{"project": "", **fields})
        assert code_of(answer) == code
        assert members(scene, left=True) == {}

    def test_an_unknown_member_is_not_found(self, scene: Scene) -> None:
        for command in (c.ChangeMember(user="eve", role="viewer"), c.RemoveMember(user="")):
            (answer,) = scene.run(command)
            assert isinstance(answer, NotFound)

    # --- tenants ----------------------------------------------------------------------------------------------

    def test_the_home_tenant_is_always_listed(self, scene: Scene) -> None:
        (home,) = read_query(scene.engine, q.Tenants())
        assert (home["name"], home["status"], home["created_at"]) == ("local", "open", None)
        assert read_query(scene.engine, q.ShowTenant(tenant="local")) == home
        for kind in (c.CloseTenant, c.ReopenTenant):
            assert code_of(scene.try_to(kind, project="", tenant="local")) == "INVALID_INPUT"
        with pytest.raises(NotFound, match="no tenant 'acme' here"):
            read_query(scene.engine, q.ShowTenant(tenant="acme"))

    def test_a_store_of_one_tenant_takes_no_other(self, scene: Scene) -> None:
        if "tenants" in scene.store.features:
            pytest.skip("keeps more tenants than one")
        with pytest.raises(InvalidInput, match="keeps only the tenant local"):
            scene.do(c.AddTenant, project="", tenant="acme")
        assert scene.events(kind="tenant.added") == []

    def test_a_tenant_is_added_closed_and_opened_again(self, scene: Scene) -> None:
        _needs_tenants(scene)
        assert scene.do(c.AddTenant, project="", tenant="acme").outcome == "CREATED"
        assert scene.do(c.AddTenant, project="", tenant="acme").outcome == "EXISTS"
        assert scene.do(c.AddTenant, project="", tenant="local").outcome == "EXISTS"
        scene.pass_time(seconds=3)
        closed = scene.do(c.CloseTenant, project="", tenant="acme", reason="moved away")
        assert (closed.outcome, closed.tenant["closed_for"]) == ("UPDATED", "moved away")  # type: ignore[index]
        assert scene.do(c.CloseTenant, project="", tenant="acme").outcome == "UNCHANGED"
        assert scene.do(c.AddTenant, project="", tenant="acme").outcome == "DENIED_STATE"
        assert [one["name"] for one in read_query(scene.engine, q.Tenants())] == ["local"]
        every = read_query(scene.engine, q.Tenants(closed=True))
        assert [(one["name"], one["status"]) for one in every] == [("local", "open"), ("acme", "closed")]
        assert scene.do(c.ReopenTenant, project="", tenant="acme").outcome == "UPDATED"
        assert scene.do(c.ReopenTenant, project="", tenant="acme").outcome == "UNCHANGED"
        assert read_query(scene.engine, q.ShowTenant(tenant="acme"))["status"] == "open"
        kinds = [event.kind for event in scene.events() if event.kind.startswith("tenant.")]
        assert kinds == ["tenant.added", "tenant.closed", "tenant.reopened"]

    @pytest.mark.parametrize("name", ["", "Acme", "a_b", "-a", "a-", "a.b", "a" * 41, "ä", "a/b", "a b"])
    def test_a_tenants_name_fits_into_a_key_and_a_path(self, scene: Scene, name: str) -> None:
        assert code_of(scene.try_to(c.AddTenant, project="", tenant=name)) == "INVALID_INPUT"

    @pytest.mark.parametrize("role", ["viewer", "agent", "member", "admin"])
    def test_only_an_owner_manages_or_lists_tenants(self, scene: Scene, role: str) -> None:
        by = Principal(role=role, user="low")
        for command in (c.AddTenant(tenant="x"), c.CloseTenant(tenant="x"), c.ReopenTenant(tenant="x")):
            (answer,) = scene.run(command, by=by)
            assert isinstance(answer, NotAllowed)
        for query in (q.Tenants(), q.ShowTenant(tenant="local")):
            with pytest.raises(NotAllowed):
                read_query(scene.engine, query, by)

    def test_the_owner_of_another_tenant_manages_no_tenants(self, scene: Scene) -> None:
        _needs_tenants(scene)
        scene.do(c.AddTenant, project="", tenant="acme")
        acme = Engine(scene.store, scene.dice, Context(tenant="acme"))
        for command in (c.AddTenant(tenant="more"), c.CloseTenant(tenant="acme"), c.ReopenTenant(tenant="acme")):
            (answer,) = acme.run((command,), OWNER)
            assert isinstance(answer, NotAllowed), answer
        for query in (q.Tenants(), q.ShowTenant(tenant="local"), q.ShowTenant(tenant="acme")):
            with pytest.raises(NotAllowed):
                read_query(acme, query, OWNER)
        assert [row.id for row in scene.rows(Tenant, project="")] == ["acme"]

    def test_equal_names_in_two_tenants_are_two_rows(self, scene: Scene) -> None:
        _needs_tenants(scene)
        scene.do(c.AddTenant, project="", tenant="acme")
        acme = Engine(scene.store, scene.dice, Context(tenant="acme"))
        acme.do(c.DefineProject(project=PROJECT), OWNER)
        acme.do(c.InviteMember(user="mia", role="owner"), OWNER)
        invited(scene, "mia", "viewer")
        assert acme.read(lambda tx: [row.role for row in tx.find(Member, {})]) == ["owner"]
        assert [row.role for row in scene.rows(Member, project="")] == ["viewer"]
        scene.do(c.RemoveMember, project="", user="mia")
        assert acme.read(lambda tx: [row.left_at for row in tx.find(Member, {})]) == [None]
        assert acme.read(lambda tx: len(tx.find(Project, {}))) == 1
        assert acme.verify() == []


def _needs_tenants(scene: Scene) -> None:
    if "tenants" not in scene.store.features:
        pytest.skip("keeps the tenant local alone")
