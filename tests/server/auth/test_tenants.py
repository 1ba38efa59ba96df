"""Who is let into which tenant: the credential decides, and a foreign tenant looks like one that does not exist."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import keys
from tenure.core.errors import InvalidInput, NotFound, NotSignedIn, TenureError
from tenure.core.records import Member
from tenure.server.auth.policy import Jwt, Policy
from tenure.server.auth.request_source import NAMED_TENANT, TENANT_PATH, without_tenant
from tests.server.auth.conftest import Door, scope
from tests.server.auth.test_tokens import SECRET, shared_token

NAMES = Jwt("https://issuer.example", "tenure", secret=SECRET, tenant="org")
PLAIN = Jwt("https://issuer.example", "tenure", secret=SECRET)


def doors(jwt: Jwt | None = None) -> tuple[Door, Door]:
    """Two tenants of one store, `acme` and `zeta`."""
    policy = Policy(auth="required", jwt=jwt)
    acme = Door(policy, tenant="acme")
    return acme, Door(policy, tenant="zeta", beside=acme)


def refusal(door: Door, key: str, **said: Any) -> tuple[str, str, str | None]:
    with pytest.raises(TenureError) as refused:
        door.admit(key, **said)
    return refused.value.code, refused.value.message, refused.value.hint


def unknown(tenant: str) -> tuple[str, str, str]:
    """The refusal of a tenant that does not exist."""
    return (
        "NOT_FOUND", f"no tenant '{tenant}' here", "the owner of the deployment lists them with `tenure tenant list`"
    )  # fmt: skip


# --- keys -----------------------------------------------------------------------------------------------------


def test_a_key_names_its_tenant_and_opens_no_other() -> None:
    acme, _ = doors()
    key = acme.key("ann", role="owner")
    assert key.startswith("tnr_acme_")
    assert (acme.admit(key).role, acme.admit(key).tenant) == ("owner", "acme")
    assert refusal(acme, key.replace("acme", "zeta")) == refusal(acme, key.replace("acme", "none"))
    assert refusal(acme, key.replace("acme", "zeta"))[0] == "NOT_SIGNED_IN"


def test_a_name_that_no_tenant_can_have_is_looked_up_nowhere() -> None:
    acme, _ = doors()
    key = acme.key("ann", role="owner")
    for name in ("-", "a" * 41, "A", ""):
        assert refusal(acme, key, below=name)[0] == "NOT_FOUND"


def test_a_key_of_equal_id_and_secret_opens_its_own_tenant_alone() -> None:
    """The rows of two tenants may be equal in all but their tenant, after a copy."""
    acme = Door(tenant="acme")
    other = Door(tenant="acmo", beside=acme)
    key, twin = acme.key("ann", role="owner"), other.key("ann", role="viewer")
    assert key.replace("acme", "acmo") == twin
    assert (other.admit(twin).tenant, other.admit(twin).role) == ("acmo", "viewer")
    assert (other.admit(key).tenant, other.admit(key).role) == ("acme", "owner")
    other.engine.do(c.RevokeKey(key="ann"))
    other.pass_time(3)
    assert refusal(other, twin)[0] == "NOT_SIGNED_IN"
    assert other.admit(key).tenant == "acme"


def test_a_key_from_before_tenants_is_the_home_tenants() -> None:
    home = Door()
    given = keys.parse_key(home.key("ann", role="member"))
    assert given is not None
    assert given.tenant == "local"
    former = f"tnr_{given.id}_{given.secret}"
    assert home.admit(former).role == "member"
    acme = Door(tenant="acme", beside=home)
    row = keys.parse_key(acme.key("ann"))
    assert row is not None
    assert refusal(acme, f"tnr_{row.id}_{row.secret}")[0] == "NOT_SIGNED_IN"


@pytest.mark.parametrize("how", ["header", "path"])
def test_another_tenant_is_unknown_to_a_known_caller_whether_it_exists_or_not(how: str) -> None:
    acme, _ = doors()
    key = acme.key("ann", role="owner")

    def asked(name: str) -> tuple[str, str, str | None]:
        code, message, hint = refusal(acme, key, **({"tenure_tenant": name} if how == "header" else {"below": name}))
        return code, message.replace(name, "NAME"), hint

    assert asked("zeta") == asked("beta") == asked("local") == unknown("NAME")
    same = {"tenure_tenant": "acme"} if how == "header" else {"below": "acme"}
    assert acme.admit(key, **same).role == "owner"


def test_who_is_not_signed_in_learns_nothing_by_naming_a_tenant() -> None:
    acme, _ = doors()
    said = [refusal(acme, "tnr_acme_0000000000000_" + "0" * 52, below=name) for name in ("acme", "zeta", "beta")]
    assert said[0] == said[1] == said[2]
    assert said[0][0] == "NOT_SIGNED_IN"


def test_path_and_header_must_agree() -> None:
    acme, _ = doors()
    key = acme.key("ann")
    with pytest.raises(InvalidInput, match="different tenants"):
        acme.admit(key, below="acme", tenure_tenant="zeta")
    assert acme.admit(key, below="acme", tenure_tenant="acme").user == "ann"


def test_a_key_of_a_closed_tenant_is_refused_like_one_of_a_tenant_that_does_not_exist() -> None:
    acme, _ = doors()
    key = acme.key("ann", role="owner")
    who = acme.admit(key)
    acme.home.do(c.CloseTenant(tenant="acme"))
    acme.pass_time(3)
    assert refusal(acme, key) == refusal(acme, key.replace("acme", "none"))
    assert refusal(acme, key)[0] == "NOT_SIGNED_IN"
    assert not asyncio.run(acme.authenticator.is_still_valid(who))
    acme.home.do(c.ReopenTenant(tenant="acme"))
    acme.pass_time(3)
    assert acme.admit(key).role == "owner"


def test_a_session_is_of_its_tenant_alone() -> None:
    acme, zeta = doors()
    key = acme.key("ann", role="member")
    signed_in = asyncio.run(acme.authenticator.sign_in(scope("POST", origin="http://localhost:7420"), key))
    cookie = signed_in.set_cookie.partition(";")[0]
    assert acme.admit(cookie=cookie).user == "ann"
    with pytest.raises(NotFound, match="no tenant 'zeta' here"):
        acme.admit(cookie=cookie, below="zeta")
    with pytest.raises(NotFound, match="no tenant 'zeta' here"):
        zeta.admit(cookie=cookie)
    forged = cookie.replace("acme:", "zeta:")
    with pytest.raises(NotSignedIn):
        zeta.admit(cookie=forged)
    with pytest.raises(NotFound):
        asyncio.run(
            acme.authenticator.sign_in(scope("POST", origin="http://localhost:7420") | {NAMED_TENANT: "zeta"}, key)
        )


def test_a_browser_is_signed_in_to_several_tenants_and_the_path_says_to_which() -> None:
    acme, zeta = doors()
    cookie = ""
    for door, name in ((acme, "ann"), (zeta, "zoe")):
        asked = scope("POST", origin="http://localhost:7420", cookie=cookie or None)
        signed_in = asyncio.run(acme.authenticator.sign_in(asked, door.key(name, role="member")))
        cookie = signed_in.set_cookie.partition(";")[0]
    assert (acme.admit(cookie=cookie).user, zeta.admit(cookie=cookie).user) == ("ann", "zoe")
    assert acme.admit(cookie=cookie, below="zeta").tenant == "zeta"
    newest = asyncio.run(acme.authenticator.authenticate(scope(cookie=cookie)))
    assert newest.tenant == "zeta"
    asyncio.run(acme.authenticator.sign_out(scope("POST", origin="http://localhost:7420", cookie=cookie)))
    for door in (acme, zeta):
        with pytest.raises(NotSignedIn):
            door.admit(cookie=cookie)


@pytest.mark.parametrize("change", ["member", "key"])
def test_a_change_in_a_tenant_whose_row_was_read_long_ago_is_heard(change: str) -> None:
    acme, _ = doors()
    acme.engine.do(c.InviteMember(user="ann", role="admin"))
    who = acme.admit(acme.key("laptop", role="admin", user="ann"))
    commands = {"member": c.RemoveMember(user="ann"), "key": c.RevokeKey(key=who.key or "")}
    acme.pass_time(3)
    outcome = acme.engine.do(commands[change])
    acme.authenticator.observe(commands[change], who, outcome, 0.0)
    assert not asyncio.run(acme.authenticator.is_still_valid(who))


def listed(door: Door, **said: Any) -> list[str]:
    who = door.admit(**said)
    said.pop("key", None)
    return asyncio.run(door.authenticator.tenants_of(scope(**said), who))


def test_a_caller_is_told_of_the_tenants_it_may_open_and_of_no_other() -> None:
    acme, zeta = doors()
    cookie = ""
    for door, name in ((zeta, "zoe"), (acme, "ann")):
        asked = scope("POST", origin="http://localhost:7420", cookie=cookie or None)
        signed_in = asyncio.run(acme.authenticator.sign_in(asked, door.key(name, role="member")))
        cookie = signed_in.set_cookie.partition(";")[0]
    assert listed(acme, cookie=cookie) == ["acme", "zeta"]
    mine = cookie.partition(".")[0]
    assert listed(acme, cookie=f"{mine}.zeta:{'00' * 32}.none:{'00' * 32}") == ["acme"]
    assert listed(acme, key=acme.key("bo")) == ["acme"]
    acme.home.do(c.CloseTenant(tenant="zeta"))
    acme.pass_time(3)
    assert listed(acme, cookie=cookie) == ["acme"]


def test_the_owner_on_this_machine_is_told_of_all_open_tenants() -> None:
    home = Door(Policy(auth="open"))
    for name in ("zeta", "acme", "beta"):
        home.home.do(c.AddTenant(tenant=name))
    home.home.do(c.CloseTenant(tenant="beta"))
    assert listed(home) == ["local", "acme", "zeta"]


def test_the_owner_on_this_machine_may_name_any_tenant_that_is_open() -> None:
    home = Door(Policy())
    acme = Door(home.policy, tenant="acme", beside=home)
    assert (acme.admit(home.token).tenant, home.admit(home.token).tenant) == ("acme", "local")
    assert refusal(home, home.token or "", tenure_tenant="beta") == unknown("beta")
    home.home.do(c.CloseTenant(tenant="acme"))
    home.pass_time(3)
    assert refusal(acme, home.token or "") == unknown("acme")


def test_the_rate_of_a_tenant_is_of_all_its_keys_and_of_no_other_tenant() -> None:
    acme, zeta = doors()
    acme.home.do(c.ChangeTenant(tenant="acme", limits={"api_rate": 5}))
    keys, other = [acme.key(name) for name in ("ann", "bo")], zeta.key("zoe")
    for n in range(10):  # what two seconds allow
        acme.admit(keys[n % 2])
    assert refusal(acme, keys[0])[0] == refusal(acme, keys[1])[0] == "RATE_LIMITED"
    assert zeta.admit(other).user == "zoe"
    acme.pass_time(0.2)
    assert acme.admit(keys[0]).user == "ann"
    assert refusal(acme, keys[1])[0] == "RATE_LIMITED"


def test_a_token_of_several_tenants_must_name_one() -> None:
    acme, _ = doors(NAMES)
    both = shared_token(org=["zeta", "acme"])
    with pytest.raises(InvalidInput, match="several tenants: zeta, acme"):
        asyncio.run(acme.authenticator.authenticate(scope(authorization=f"Bearer {both}")))
    one = shared_token(org=["zeta"])
    assert asyncio.run(acme.authenticator.authenticate(scope(authorization=f"Bearer {one}"))).tenant == "zeta"


def test_a_member_joins_with_the_first_use_of_a_key() -> None:
    acme, _ = doors()
    acme.engine.do(c.InviteMember(user="ann", role="admin"))
    acme.admit(acme.key("laptop", role="admin", user="ann"))
    (row,) = acme.engine.read(lambda tx: tx.find(Member, {}))
    assert row.joined_at is not None


# --- tokens ---------------------------------------------------------------------------------------------------


def test_a_token_is_good_in_the_tenants_that_it_names() -> None:
    acme, zeta = doors(NAMES)
    assert acme.admit(shared_token(org="acme")).role == "member"
    both = shared_token(org=["zeta", "acme"], role="admin")
    assert (acme.admit(both).role, zeta.admit(both).role) == ("admin", "admin")
    assert refusal(zeta, shared_token(org="acme")) == unknown("zeta")
    assert refusal(zeta, shared_token()) == unknown("zeta")
    for wrong in (7, [7], {"a": 1}):
        assert refusal(acme, shared_token(org=wrong))[0] == "NOT_SIGNED_IN"


def test_a_token_that_names_no_tenant_is_good_for_members() -> None:
    acme, zeta = doors(PLAIN)
    token = shared_token(role="owner")
    assert refusal(acme, token) == unknown("acme")
    acme.engine.do(c.InviteMember(user="mia", role="viewer", projects=("p",)))
    acme.pass_time(61)
    who = acme.admit(token)
    assert (who.role, who.projects, who.user) == ("viewer", ("p",), "mia")
    assert refusal(zeta, token)[0] == "NOT_FOUND"
    (row,) = acme.engine.read(lambda tx: tx.find(Member, {}))
    assert row.joined_at is not None


def test_a_membership_gives_a_role_to_a_token_without_one() -> None:
    home = Door(Policy(auth="required", jwt=PLAIN))
    token = shared_token(role=None)
    assert refusal(home, token)[0] == "NOT_SIGNED_IN"
    home.engine.do(c.InviteMember(user="mia", role="admin"))
    home.pass_time(61)
    assert home.admit(token).role == "admin"


def test_a_membership_bounds_a_token_that_names_the_tenant() -> None:
    acme, _ = doors(NAMES)
    acme.engine.do(c.DefineProject(project="q"))
    acme.engine.do(c.InviteMember(user="mia", role="viewer", projects=("q",)))
    who = acme.admit(shared_token(org="acme", role="owner"))
    assert (who.role, who.projects) == ("viewer", ("q",))
    assert acme.admit(shared_token(org="acme", projects=["p", "q"])).projects == ("q",)
    assert refusal(acme, shared_token(org="acme", projects=["p"]))[0] == "NOT_FOUND"


@pytest.mark.parametrize("jwt", [NAMES, PLAIN])
def test_a_removed_member_is_out_with_every_token(jwt: Jwt) -> None:
    acme, _ = doors(jwt)
    acme.engine.do(c.InviteMember(user="mia", role="admin"))
    token = shared_token(org="acme", role="owner")
    who = acme.admit(token)
    assert asyncio.run(acme.authenticator.is_still_valid(who))
    acme.engine.do(c.ChangeMember(user="mia", role="viewer"))
    acme.pass_time(3)
    assert not asyncio.run(acme.authenticator.is_still_valid(who))
    assert acme.admit(token).role == "viewer"
    acme.engine.do(c.RemoveMember(user="mia"))
    acme.pass_time(3)
    assert refusal(acme, token) == unknown("acme")


def test_a_changed_member_is_known_at_once_in_the_process_that_changed_it() -> None:
    acme, _ = doors(PLAIN)
    acme.engine.do(c.InviteMember(user="mia", role="admin"))
    token = shared_token(role="owner")
    assert acme.admit(token).role == "admin"
    command = c.ChangeMember(user="mia", role="viewer")
    outcome = acme.engine.do(command)
    acme.authenticator.observe(command, acme.admit(token), outcome, 0.0)
    assert acme.admit(token).role == "viewer"
    acme.engine.do(c.ChangeMember(user="mia", role="member"))
    acme.authenticator.hear("acme", acme.engine.read(lambda tx: tx.events({"kind": "member.changed"})))
    assert acme.admit(token).role == "member"


# --- paths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "raw", "inner", "name"),
    [
        ("/t/acme/api/v1/projects", b"/t/acme/api/v1/projects", "/api/v1/projects", "acme"),
        ("/t/acme/", b"/t/acme/", "/", "acme"),
        ("/t/acme/x/y", b"/t/%61cme/x/y", "/t/acme/x/y", "acme"),
        ("/t/acme", b"/t/acme", "/t/acme", "acme"),
        ("/t//x", b"/t//x", "/x", ""),
        ("/tasks", b"/tasks", "/tasks", None),
    ],
)
def test_the_path_names_the_tenant(path: str, raw: bytes, inner: str, name: str | None) -> None:
    found = without_tenant({"path": path, "raw_path": raw})
    assert (found["path"], found.get(NAMED_TENANT)) == (inner, name)
    assert found.get(TENANT_PATH, "") == ("" if name is None else f"/t/{name}")
    if inner != path:
        assert found["raw_path"] == inner.encode()
