"""API keys: what is kept of them, what they open, and for how long."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import keys
from tenure.core import queries as q
from tenure.core.commands import Principal
from tenure.core.errors import Ambiguous, InvalidInput, NotAllowed, NotFound, RequestIdReused
from tenure.core.outcomes import Outcome
from tenure.core.records import ApiKey, Request
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, MEMBER, PROJECT, Scene, code_of

ADMIN = Principal(role="admin", user="ada")
SIGNED_IN = Principal(role="admin", user="ada", key="k-ada", address="10.0.0.1", tenant="local")
HOUR = 3600


def made(scene: Scene, name: str = "fleet", **fields: Any) -> Outcome:
    outcome = scene.do(c.CreateKey, **{"project": "", "name": name, **fields})
    assert outcome.outcome == "CREATED"
    return outcome


def row_of(scene: Scene, outcome: Outcome) -> ApiKey:
    assert outcome.key is not None
    row = scene.row(ApiKey, outcome.key["id"], "")
    assert isinstance(row, ApiKey)
    return row


def opens(scene: Scene, outcome: Outcome) -> bool:
    """Whether the secret of this answer is good now."""
    given = keys.parse_key(outcome.secret or "")
    assert given is not None
    assert outcome.key is not None
    assert given.id == outcome.key["id"]
    return keys.opens(row_of(scene, outcome), given.secret, scene.now)


def listed(scene: Scene, *, by: Principal = ADMIN, ended: bool = False) -> list[str]:
    return [key["name"] for key in read_query(scene.engine, q.Keys(ended=ended), by)]


class Keys(Stage):
    def test_a_key_is_shown_once_and_kept_as_a_digest(self, scene: Scene) -> None:
        outcome = made(scene, role="member", user="mia", projects=(PROJECT,))
        assert opens(scene, outcome)
        given = keys.parse_key(outcome.secret or "")
        assert given is not None
        stored = b"".join(msgspec.json.encode(rows) for rows in scene.tables().values())
        assert given.secret.encode() not in stored.lower()
        (event,) = scene.events(kind="key.created")
        assert (event.project, event.user, event.details["role"]) == ("", "olaf", "member")
        assert "digest" not in str(event.patch)
        (seen,) = read_query(scene.engine, q.Keys(), ADMIN)
        assert "digest" not in seen
        assert (seen["name"], seen["user"], seen["projects"], seen["status"]) == ("fleet", "mia", (PROJECT,), "live")

    def test_another_secret_opens_nothing(self, scene: Scene) -> None:
        one, other = made(scene, "one"), made(scene, "other")
        theirs = keys.parse_key(other.secret or "")
        assert theirs is not None
        assert not keys.opens(row_of(scene, one), theirs.secret, scene.now)

    def test_a_revoked_key_is_void_for_ever(self, scene: Scene) -> None:
        outcome = made(scene)
        key = row_of(scene, outcome).id
        scene.do(c.RotateKey, project="", key=key)
        assert scene.do(c.RevokeKey, project="", key=key, by=ADMIN).outcome == "UPDATED"
        assert not opens(scene, outcome)
        assert scene.do(c.RevokeKey, project="", key=key).outcome == "UNCHANGED"
        assert scene.do(c.RotateKey, project="", key=key).outcome == "DENIED_STATE"
        assert [e.user for e in scene.events(kind="key.revoked")] == ["ada"]
        assert listed(scene) == []
        assert listed(scene, ended=True) == ["fleet"]

    def test_a_key_ends_when_its_time_is_over(self, scene: Scene) -> None:
        outcome = made(scene, expires_in=HOUR)
        scene.pass_time(seconds=HOUR - 1)
        assert opens(scene, outcome)
        scene.pass_time(seconds=1)
        assert not opens(scene, outcome)
        assert listed(scene) == []

    def test_a_rotated_key_takes_the_old_secret_until_the_grace_is_over(self, scene: Scene) -> None:
        first = made(scene, expires_in=10 * HOUR)
        scene.pass_time(hours=1)
        second = scene.do(c.RotateKey, project="", key=row_of(scene, first).id, grace=HOUR)
        assert first.secret != second.secret
        assert opens(scene, first)
        assert opens(scene, second)
        scene.pass_time(hours=1)
        assert not opens(scene, first)
        assert opens(scene, second)
        scene.pass_time(hours=9)  # it lives as long again, counted from its rotation
        assert not opens(scene, second)

    def test_without_grace_the_old_secret_is_void_at_once(self, scene: Scene) -> None:
        first = made(scene)
        scene.do(c.RotateKey, project="", key=row_of(scene, first).id, grace=0)
        assert not opens(scene, first)
        assert row_of(scene, first).previous == b""

    def test_no_grace_outlives_the_secret_itself(self, scene: Scene) -> None:
        first = made(scene, expires_in=HOUR)
        scene.pass_time(minutes=59)
        second = scene.do(c.RotateKey, project="", key=row_of(scene, first).id, grace=HOUR)
        scene.pass_time(minutes=1)
        assert not opens(scene, first)
        assert opens(scene, second)
        over = made(scene, "over", expires_in=HOUR)
        scene.pass_time(hours=1)
        scene.do(c.RotateKey, project="", key=row_of(scene, over).id, grace=HOUR)
        assert not opens(scene, over)

    def test_a_request_that_is_repeated_makes_one_key_and_voids_the_secret_that_was_lost(self, scene: Scene) -> None:
        lost = made(scene, request_id="r1")
        again = scene.do(c.CreateKey, project="", name="fleet", request_id="r1")
        assert (again.outcome, again.again) == ("CREATED", True)
        assert row_of(scene, again).id == row_of(scene, lost).id
        assert opens(scene, again)
        assert not opens(scene, lost)
        assert listed(scene) == ["fleet"]
        with pytest.raises(RequestIdReused):
            scene.do(c.CreateKey, project="", name="another", request_id="r1")
        assert scene.rows(Request) == []

    def test_a_rotation_that_is_repeated_does_not_cut_the_grace_short(self, scene: Scene) -> None:
        first = made(scene)
        key = row_of(scene, first).id
        lost = scene.do(c.RotateKey, project="", key=key, request_id="r2")
        again = scene.do(c.RotateKey, project="", key=key, request_id="r2")
        assert [opens(scene, outcome) for outcome in (first, lost, again)] == [True, False, True]

    # --- who may ----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("by", [AGENT, MEMBER, Principal(role="viewer")], ids=lambda by: by.role)
    def test_keys_are_for_admins(self, scene: Scene, by: Principal) -> None:
        key = row_of(scene, made(scene)).id
        for command in (c.CreateKey(name="mine"), c.RotateKey(key=key), c.RevokeKey(key=key)):
            (answer,) = scene.run(command, by=by)
            assert isinstance(answer, NotAllowed)
        with pytest.raises(NotAllowed):
            read_query(scene.engine, q.Keys(), by)

    def test_an_admin_touches_no_owners_key(self, scene: Scene) -> None:
        assert isinstance(scene.try_to(c.CreateKey, project="", name="x", role="owner", by=ADMIN), NotAllowed)
        key = row_of(scene, made(scene, role="owner")).id
        assert isinstance(scene.try_to(c.RotateKey, project="", key=key, by=ADMIN), NotAllowed)
        assert isinstance(scene.try_to(c.RevokeKey, project="", key=key, by=ADMIN), NotAllowed)
        assert scene.do(c.CreateKey, project="", name="x", role="admin", by=ADMIN).outcome == "CREATED"

    def test_an_admin_of_one_project_hands_out_no_more_than_that(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="other")
        here = Principal(role="admin", user="ida", projects=(PROJECT,))
        theirs = row_of(scene, made(scene, "theirs", projects=("other",))).id
        everywhere = row_of(scene, made(scene, "everywhere")).id
        assert isinstance(scene.try_to(c.CreateKey, project="", name="x", by=here), NotAllowed)
        assert isinstance(scene.try_to(c.CreateKey, project="", name="x", projects=("other",), by=here), NotFound)
        for key in (theirs, everywhere):
            assert isinstance(scene.try_to(c.RevokeKey, project="", key=key, by=here), NotFound)
        mine = scene.do(c.CreateKey, project="", name="mine", projects=(PROJECT,), by=here)
        assert scene.do(c.RotateKey, project="", key=row_of(scene, mine).id, by=here).outcome == "UPDATED"
        assert listed(scene, by=here) == ["mine"]

    # --- what is asked ----------------------------------------------------------------------------------------

    def test_a_key_is_named_by_its_id_or_by_a_name_of_its_own(self, scene: Scene) -> None:
        first = made(scene, "laptop")
        scene.do(c.RevokeKey, project="", key="laptop")
        assert row_of(scene, first).revoked_at is not None
        second = made(scene, "laptop")  # a revoked one does not stand in its way
        scene.do(c.RotateKey, project="", key="laptop")
        assert row_of(scene, second).rotated_at is not None
        made(scene, "laptop")
        assert isinstance(scene.try_to(c.RevokeKey, project="", key="laptop"), Ambiguous)
        assert isinstance(scene.try_to(c.RevokeKey, project="", key="nobody"), NotFound)

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({"name": " "}, "INVALID_INPUT"),
            ({"name": "x" * 101}, "TOO_LARGE"),
            ({"name": "two\nlines"}, "INVALID_INPUT"),
            ({"role": "root"}, "INVALID_INPUT"),
            ({"agent": "two words"}, "INVALID_INPUT"),
            ({"agent": "ann", "role": "member"}, "INVALID_INPUT"),
            ({"projects": ("nowhere",)}, "NOT_FOUND"),
            ({"expires_in": 0.0}, "INVALID_INPUT"),
            ({"project": PROJECT}, "INVALID_INPUT"),
        ],
        ids=str,
    )
    def test_what_makes_no_sense_is_refused(self, scene: Scene, fields: dict[str, Any], code: str) -> None:
        before = scene.tables()
        assert code_of(scene.try_to(c.CreateKey, **{"project": "", "name": "x", **fields})) == code
        assert scene.tables() == before

    def test_a_grace_has_a_bound(self, scene: Scene) -> None:
        key = row_of(scene, made(scene)).id
        with pytest.raises(InvalidInput, match="grace"):
            scene.do(c.RotateKey, project="", key=key, grace=31 * 24 * HOUR)

    # --- in whose name --------------------------------------------------------------------------------------------

    def test_who_signed_in_makes_a_key_in_the_name_of_a_member_alone(self, scene: Scene) -> None:
        wanted = (("bob", "member", None), ("k", "member", "bob"), ("k", "agent", "bob"))
        for name, role, user in wanted:
            answer = scene.try_to(c.CreateKey, project="", by=SIGNED_IN, name=name, role=role, user=user)
            assert code_of(answer) == "NOT_ALLOWED", (name, role, user)
        scene.do(c.InviteMember, project="", user="bob", role="member")
        of_bob = made(scene, "k", role="member", user="bob", by=SIGNED_IN)
        own = made(scene, "laptop", role="member", user="ada", by=SIGNED_IN)
        service = made(scene, "ci", by=SIGNED_IN)
        here = made(scene, "cid", role="member")  # by the owner of the machine
        assert [keys.maker_of(row_of(scene, one)) for one in (of_bob, own, service, here)] == ["ada", None, None, None]
        scene.do(c.RemoveMember, project="", user="bob")
        fields = {"name": "late", "role": "member", "user": "bob"}
        assert code_of(scene.try_to(c.CreateKey, project="", by=SIGNED_IN, **fields)) == "NOT_ALLOWED"

    def test_a_key_in_anothers_name_makes_none_in_the_name_of_a_third(self, scene: Scene) -> None:
        for user in ("bob", "cid"):
            scene.do(c.InviteMember, project="", user=user, role="member")
        posing = msgspec.structs.replace(SIGNED_IN, user="bob", maker="ada")
        fields = {"name": "k", "role": "member", "user": "cid"}
        assert code_of(scene.try_to(c.CreateKey, project="", by=posing, **fields)) == "NOT_ALLOWED"
        own = made(scene, "k", role="member", user="bob", by=posing)
        assert keys.maker_of(row_of(scene, own)) == "ada"

    def test_who_rotates_a_key_has_its_secret_and_is_its_maker(self, scene: Scene) -> None:
        own = made(scene, "k", role="member", user="bob", by=msgspec.structs.replace(SIGNED_IN, user="bob"))
        assert keys.maker_of(row_of(scene, own)) is None
        assert own.key is not None
        scene.do(c.RotateKey, project="", key=own.key["id"], by=SIGNED_IN)
        assert keys.maker_of(row_of(scene, own)) == "ada"
