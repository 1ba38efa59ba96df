"""Every route × every identity × own, another's and a foreign row: who is let at what, from one declared table.

The routes are those of the server's own document. One that is added there and not in EXPECT fails the first test. What
is refused changes nothing; a row of a project that is not the key's looks exactly like one that does not exist.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tenure.core import commands as c
from tenure.core import roles
from tenure.core.commands import NewTask, Principal, Template
from tenure.core.records import ApiKey, Validation, WebSession
from tenure.core.roles import level_of
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Policy
from tenure.server.docs_page import Operation, operations, resolved
from tenure.server.logs import ServerLog
from tenure.server.openapi import document
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene

OPERATIONS = {str(one.spec["operationId"]): one for one in operations(document())}


class Rule(NamedTuple):
    role: str | None  # the least; None: nobody has to be signed in
    agents: str = "any"  # on which rows a key of one agent may do it: any, own, or another's
    capability: str = ""  # of agents' keys only those with it
    claimant: bool = False  # only for the key, or the agent of a bound key, that claimed
    store: bool = False  # about the store as a whole: not for keys of some projects, or no project is in its path


VIEW, MEMBER, ADMIN = Rule("viewer"), Rule("member"), Rule("admin")
AGENT, OWN = Rule("agent"), Rule("agent", "own")

EXPECT: dict[str, Rule] = {
    **dict.fromkeys(
        (
            "status", "overview", "tracks", "tasks", "show", "history", "results", "artifacts", "why", "ready",
            "states", "dags", "dag", "plans", "deadletters", "agents", "sessions", "session", "validations",
            "reservations", "spent", "budgets", "budget", "projection", "alerts", "headroom", "savings", "estimates",
            "models", "processes", "log", "schedules", "schedule", "triggers", "trigger", "watched", "batch", "preview",
            "news", "get_artifact", "webhooks", "webhook", "deliveries", "pools", "pool", "spawns", "agent", "forecast",
            "briefing", "showproject", "limits", "todo", "task_logs", "agent_health", "agent_tasks", "transcript",
            "read_plan", "audithead", "verifyaudit",
        ),
        VIEW,
    ),
    **dict.fromkeys(("next", "ownclaims"), Rule("viewer", "own")),
    **dict.fromkeys(("projects", "me"), Rule("viewer", store=True)),
    "coordinator_status": Rule("admin", store=True),
    "relays": Rule("viewer", store=True),
    "metrics": Rule("viewer", store=True),
    **dict.fromkeys(("add", "add_many", "deliver"), AGENT),
    **dict.fromkeys(
        (
            "inbox", "send", "emit", "reserve", "claim_next", "claim", "submit", "renew", "start", "progress",
            "checkpoint", "usage", "land", "fail", "release", "ask", "spawn", "wait", "register", "heartbeat", "read",
            "leave", "renew_reservation", "unreserve", "step_down", "put_artifact", "agentnews",
        ),
        OWN,
    ),
    "open_secrets": Rule("agent", "own", claimant=True),
    **dict.fromkeys(("approve", "reject"), Rule("agent", "another's")),
    "take_validation": Rule("agent", capability="checker"),
    **dict.fromkeys(("renew_validation", "judge", "undecide"), Rule("agent", "own", capability="checker")),
    "lead": Rule("agent", "own", capability="leader"),
    "gone": Rule("nobody"),  # only for somebody on the host itself, whatever its role
    **dict.fromkeys(
        (
            "edit", "plan", "messages", "undo", "publish", "link", "unlink", "pause", "resume", "answer", "cancel",
            "retry", "reset", "adopt", "archive", "assign", "reassign", "recover", "abort", "note", "drain",
            "terminate", "resume_agent", "assign_track", "release_track", "attest",
        ),
        MEMBER,
    ),
    **dict.fromkeys(
        (
            "define_project", "set_budget", "set_schedule", "set_trigger", "set_watch", "define_track",
            "remove_budget", "move_budget", "confirm_usage", "reject_usage", "stop_line", "start_line",
            "pause_schedule", "resume_schedule",
            "remove_schedule", "run_schedule", "pause_trigger", "resume_trigger", "remove_trigger", "rotate_secret",
            "try_trigger", "set_webhook", "pause_webhook", "resume_webhook", "remove_webhook", "rotate_webhook",
            "test_webhook", "replay_webhook", "reorder", "set_pool", "pause_pool", "resume_pool", "remove_pool",
            "rotate_data_key", "reseal",
        ),
        ADMIN,
    ),
    "audit_on": Rule("owner"),
    "auditpage": Rule("owner"),
    **dict.fromkeys(
        ("keys", "create_key", "rotate_key", "revoke_key", "coordinator_recover", "coordinator_logs"),
        Rule("admin", store=True),
    ),
    **dict.fromkeys(
        ("pause_relay", "resume_relay", "rewind_relay", "remove_relay"), Rule("admin", store=True)
    ),
    **dict.fromkeys(("members", "invite_member", "change_member", "remove_member"), Rule("admin", store=True)),
    **dict.fromkeys(
        ("tenants", "tenant", "add_tenant", "change_tenant", "close_tenant", "reopen_tenant"), Rule("owner", store=True)
    ),
    **dict.fromkeys(
        ("take_delivery", "health", "readiness", "coordinator_health", "login", "logout", "openapi"), Rule(None)
    ),
}  # fmt: skip

# Of the store as a whole, and not for a key of some projects whatever its role.
ALL_PROJECTS = {
    "relays",
    "pause_relay",
    "resume_relay",
    "rewind_relay",
    "remove_relay",
    "metrics",
    "coordinator_recover",
    "coordinator_logs",
    "members",
    "invite_member",
    "change_member",
    "remove_member",
    "tenants",
    "tenant",
    "add_tenant",
    "change_tenant",
    "close_tenant",
    "reopen_tenant",
}
ROWS = ("own", "other")
OUTPUTS: dict[str, dict[str, Any]] = {
    "review": {"validation": "review"},
    "tested": {"validation": "test-pass", "settings": {"command": "unit"}},
}


class Who(NamedTuple):
    name: str
    role: str | None  # None: not let in
    agent: str | None = None  # whom the key is bound to
    capability: str = ""
    projects: tuple[str, ...] = ("p",)
    headers: Mapping[str, str] = MappingProxyType({})


class World:
    """Two projects alike, with rows of two agents in each, behind a server with keys."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.loop = asyncio.Runner()
        self.scene = Scene(Memory(clock=clock), clock)
        self.engine = self.scene.engine
        self.receipts: dict[tuple[str, str, str], str] = {}
        self.tasks: dict[tuple[str, str, str], str] = {}
        for project in ("p", "q"):
            self._fill(project)
        self.assembly = Assembly(self.engine, Policy(auth="required", rate=0), ServerLog("error"))
        self.people = list(self._people())

    def do(self, command: c.Command, by: Principal | None = None) -> Any:
        outcome = self.engine.do(command, by or Principal())
        assert outcome.ok, outcome
        return outcome

    def _fill(self, project: str) -> None:
        do = self.do
        do(c.DefineProject(project=project, lead="auto"))
        for agent in ("ann", "bo"):
            session = f"s-{agent}"
            do(c.Register(project=project, agent=agent, session=session))
            for kind in ("held", "review", "tested"):
                output = OUTPUTS.get(kind, {})
                added = do(c.Add(project=project, task=NewTask(title=kind, output=output)))
                key = self.tasks[project, agent, kind] = str(added.task["key"])
                held = do(c.ClaimTask(project=project, task=key, agent=agent, session=session, lease=3600.0))
                self.receipts[project, agent, kind] = str(held.receipt)
                if kind != "held":
                    do(c.Submit(project=project, receipt=str(held.receipt), data="x"))
            reserved = do(c.Reserve(project=project, patterns=(f"src/{agent}",), agent=agent, session=session))
            self.receipts[project, agent, "reservation"] = str(reserved.receipt)
            do(c.Send(project=project, sender="x", to=agent, text="hello"))
        for agent, author in (("ann", "bo"), ("bo", "ann")):
            taker = Principal(
                role="agent", agent=agent, is_proven=True, user=agent, key=f"k-{agent}", address="10.0.0.1",
                capabilities=("checker",),
            )  # fmt: skip
            command = c.TakeValidation(project=project, checker=agent, task=self.tasks[project, author, "tested"])
            self.receipts[project, agent, "check"] = str(do(command, taker).receipt)
        do(c.SetTrigger(project=project, trigger="hook", on="webhook", template=Template(tasks=(NewTask(title="t"),))))
        do(
            c.SetSchedule(
                project=project, schedule="nightly", cron="0 3 * * *", template=Template(tasks=(NewTask(title="t"),))
            )
        )

    def _people(self) -> Iterator[Who]:
        def key(name: str, role: str, projects: tuple[str, ...] = ("p",), **more: Any) -> dict[str, str]:
            made = self.do(c.CreateKey(name=name, role=role, projects=projects, **more))
            return {"Authorization": f"Bearer {made.secret}"}

        yield Who("anonymous", None)
        yield Who("viewer", "viewer", headers=key("viewer", "viewer"))
        yield Who("agent own", "agent", "ann", headers=key("ann", "agent", agent="ann"))
        yield Who("agent other", "agent", "bo", headers=key("bo", "agent", agent="bo"))
        for can in roles.CAPABILITIES:
            headers = key(can, "agent", agent="ann", capabilities=(can,))
            yield Who(can, "agent", "ann", capability=can, headers=headers)
        for role in ("member", "admin"):
            yield Who(role, role, headers=key(role, role))
        yield Who("owner", "owner", projects=(), headers=key("owner", "owner", ()))
        yield Who("foreign", "member", projects=("q",), headers=key("foreign", "member", ("q",)))
        gone = key("gone", "owner", ())
        self.do(c.RevokeKey(key="gone"))
        yield Who("revoked", None, headers=gone)
        secret = key("visitor", "member")["Authorization"].removeprefix("Bearer ")
        origin = {"Origin": "http://localhost"}
        _, _, said = self.send("POST", "/login", origin, json.dumps({"key": secret}).encode())
        yield Who("web session", "member", headers={**origin, "Cookie": said["set-cookie"].partition(";")[0]})

    def send(
        self, method: str, target: str, headers: dict[str, str], body: bytes = b""
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        path, _, query = target.partition("?")
        all_headers = {"Host": "localhost", "Content-Length": str(len(body)), **headers}
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "scheme": "http", "client": ("127.0.0.1", 4711), "state": {}, "http_version": "1.1",
            "headers": [(name.lower().encode(), value.encode()) for name, value in all_headers.items()],
        }  # fmt: skip
        sent: list[dict[str, Any]] = []

        async def ask() -> None:
            bodies = iter([{"type": "http.request", "body": body, "more_body": False}])

            async def receive() -> dict[str, Any]:
                return next(bodies, None) or await asyncio.Event().wait() or {}

            async def send(message: Any) -> None:
                sent.append(message)

            await asyncio.wait_for(self.assembly.app(scope, receive, send), 30)

        self.loop.run(ask())
        raw = b"".join(message.get("body", b"") for message in sent[1:])
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        is_json = "json" in told.get("content-type", "")
        return sent[0]["status"], json.loads(raw) if is_json and raw else {}, told

    def tables(self) -> dict[Any, Any]:
        """All rows, but for what signing in notes by itself."""
        return {
            kind: dict(rows)
            for kind, rows in self.scene.store.rows.items()  # type: ignore[attr-defined]
            if kind not in (ApiKey, WebSession)
        }

    def close(self) -> None:
        self.loop.run(self.assembly.service.close())
        self.loop.close()


# --- the request for a row ---


def names_of(world: World, operation: str, project: str, agent: str) -> dict[str, str]:
    kind = "review" if operation in ("approve", "reject") else "held"
    receipt = {
        "renew_reservation": "reservation", "unreserve": "reservation", "renew_validation": "check", "judge": "check",
        "undecide": "check",
    }.get(operation, "held")  # fmt: skip
    known = project if project in ("p", "q") else "p"
    return {
        "project": project, "task": world.tasks[known, agent, kind], "dag": "dag", "session": f"s-{agent}",
        "agent": agent, "sender": agent, "holder": agent, "code": "Z", "key": "no-such-key",
        "scope": f"agent:{agent}", "schedule": "nightly", "trigger": "hook",
        "name": "fact" if operation == "emit" else "a.txt", "webhook": "out", "pool": "none", "sink": "nats", "url": "https://example.org/hook",
        "receipt": world.receipts.get((known, agent, receipt), "Z-999@1:53Z70T9DQ1FPZ2RDF81842BXPTNRVB1Y"),
        "old": "1" * 40, "new": "2" * 40, "branch": "main", "cron": "* * * * *", "on": "webhook", "to": "ann",
        "body": "e30=", "tenant": "local", "user": "mia",
    }  # fmt: skip


def request_for(operation: Operation, names: dict[str, str]) -> tuple[str, str, bytes, dict[str, str]]:
    asked = [resolved(parameter) for parameter in operation.spec.get("parameters", ())]
    is_own = operation.spec["operationId"] == "ownclaims"  # without an agent it is for people
    required = [p for p in asked if p["in"] == "query" and (p.get("required") or (is_own and p["name"] == "agent"))]
    query = "&".join(f"{p['name']}={names.get(p['name'], 'x')}" for p in required)
    path = operation.path.format(**names) + (f"?{query}" if query else "")
    content = operation.spec.get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        is_bytes = bool(content)
        return operation.method.upper(), path, b"x" * is_bytes, {"Tenure-Receipt": names["receipt"]} if is_bytes else {}
    body = least(content["application/json"]["schema"], names)
    if operation.spec["operationId"] in ("lead", "step_down"):
        body["agent"] = True
    if operation.spec["operationId"] == "emit":
        body["agent"] = names["agent"]
    if operation.spec["operationId"] == "create_key":
        body["projects"] = ["p"]
    return operation.method.upper(), path, json.dumps(body).encode(), {}


def least(schema: dict[str, Any], names: dict[str, str], name: str = "") -> Any:
    schema = resolved(schema)
    if "anyOf" in schema and schema["anyOf"][0].get("$ref", "").endswith("Body"):
        return least(schema["anyOf"][0], names, name)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {one: least(schema["properties"][one], names, one) for one in schema.get("required", ())}
    if kind == "array":
        return [least(schema["items"], names)] * schema.get("minItems", 0)
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    return names.get(name, "x") if kind == "string" else True if kind == "boolean" else None


# --- what is expected ---


def expected(who: Who, name: str, row: str) -> str | int:
    rule = EXPECT[name]
    if rule.role is None:
        return "open"
    if who.role is None:
        return 401
    if not rule.store and who.projects and "p" not in who.projects:
        return "unknown"
    if level_of(who.role) < level_of(rule.role) or rule.role == "nobody":
        return 403
    if rule.store and name in ALL_PROJECTS and who.projects:
        return 403
    if who.role == "agent" and rule.capability not in ("", who.capability):
        return 403
    if rule.claimant and who.agent is None:
        return 403
    if who.agent is not None and rule.agents != "any":
        is_own = who.agent == ("ann" if row == "own" else "bo")
        if is_own != (rule.agents == "own"):
            return 403
    return "allowed"


def told(status: int) -> str | int:
    return status if status in (401, 403) else "allowed"


# --- the matrix ---


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_every_route_has_an_expectation() -> None:
    assert set(EXPECT) == set(OPERATIONS)


@pytest.mark.parametrize("name", [n for n, rule in EXPECT.items() if rule.role is not None])
def test_each_identity_is_let_at_its_rows_and_at_no_others(name: str) -> None:
    world = World()
    operation = OPERATIONS[name]
    try:
        before = world.tables()
        later = []
        for who in world.people:
            for row in ROWS:
                wanted = expected(who, name, row)
                asked = request_for(operation, names_of(world, name, "p", "ann" if row == "own" else "bo"))
                if wanted in ("allowed", "unknown"):
                    later.append((who, row, wanted, asked))
                    continue
                status, answer, _ = ask(world, who, asked)
                assert told(status) == wanted, (who.name, row, answer)
        assert world.tables() == before  # what is refused changes nothing
        for who, row, wanted, asked in later:
            status, answer, _ = ask(world, who, asked)
            assert status < 500, (who.name, row, answer)
            if wanted == "unknown":
                assert (status, answer.get("code")) == (404, "NOT_FOUND"), (who.name, row, answer)
            elif name == "deliver":  # by whom it is sent is one thing, its signature another
                assert (status, "signature" in answer["detail"]) == (401, True), (who.name, row, answer)
            else:
                assert told(status) == "allowed", (who.name, row, answer)
    finally:
        world.close()


@pytest.mark.parametrize("name", [n for n, one in OPERATIONS.items() if "{project}" in one.path and EXPECT[n].role])
def test_a_foreign_row_looks_like_one_that_there_is_not(world: World, name: str) -> None:
    """Equal status and body, but for the name that was asked for: by every identity whose key is for p alone."""
    operation = OPERATIONS[name]
    for who in world.people:
        if who.projects != ("p",) or who.role is None:
            continue
        foreign, missing = (
            ask(world, who, request_for(operation, names_of(world, name, project, who.agent or "ann")))
            for project in ("q", "x")
        )
        assert foreign[0] == missing[0] == 404, (who.name, foreign, missing)
        assert shape(foreign[1], "q") == shape(missing[1], "x"), (who.name, foreign, missing)


@pytest.mark.parametrize("name", [n for n, one in OPERATIONS.items() if "{project}" in one.path and EXPECT[n].role])
@pytest.mark.parametrize("body", [b"\xff{not json", b'{"no such field": 1}', b""])
def test_a_foreign_project_is_unknown_whatever_is_sent_to_it(world: World, name: str, body: bytes) -> None:
    """Neither a bad body nor a bad query tells that a project is there."""
    who = max((who for who in world.people if who.projects == ("p",) and who.role), key=lambda who: level_of(who.role))
    method, path, _, more = request_for(OPERATIONS[name], names_of(world, name, "q", "ann"))
    query = "&" if "?" in path else "?"
    for asked in ((method, path, body, more), (method, f"{path}{query}limit=none&%", body, more)):
        status, answer, _ = ask(world, who, asked)
        assert (status, answer["code"]) == (404, "NOT_FOUND"), answer


def ask(world: World, who: Who, asked: tuple[str, str, bytes, dict[str, str]]) -> tuple[int, dict[str, Any], Any]:
    method, path, body, more = asked
    return world.send(method, path, {**who.headers, **more}, body)


def shape(answer: dict[str, Any], project: str) -> dict[str, Any]:
    return {name: str(value).replace(f"'{project}'", "'?'") for name, value in answer.items()}


def test_the_checks_of_the_world_are_what_the_table_speaks_of(world: World) -> None:
    rows = [row for row in world.tables()[Validation].values() if row.project == "p"]
    assert sorted(row.validator for row in rows) == ["review", "review", "test-pass", "test-pass"]


def test_a_request_sent_again_with_another_owners_key_is_refused(world: World) -> None:
    """Both keys may call themselves the same agent; the answer of the first, with its receipt, is not for the other."""
    secrets = [world.do(c.CreateKey(name=name, role="agent", projects=("p",))).secret for name in ("one", "two")]
    task = str(world.do(c.Add(project="p", task=NewTask(title="once"))).task["key"])
    body = json.dumps({"agent": "robot", "session": "s-robot"}).encode()
    answers = [
        world.send(
            "POST", f"/api/v1/projects/p/tasks/{task}/claim",
            {"Authorization": f"Bearer {secret}", "Tenure-Agent": "robot", "Idempotency-Key": "r-1"}, body,
        )
        for secret in (secrets[0], secrets[1], secrets[0])
    ]  # fmt: skip
    (_, first, _), (_, thief, _), (_, again, _) = answers
    assert first["receipt"] == again["receipt"]
    assert thief["code"] == "REQUEST_ID_REUSED"
    assert first["receipt"] not in json.dumps(thief)


@pytest.mark.parametrize("lead", ["default", "off"])
@pytest.mark.parametrize("bound", [True, False])
@pytest.mark.parametrize("can", [(), ("leader",)])
def test_an_agents_key_leads_nobody_where_agents_do_not_lead(lead: str, bound: bool, can: tuple[str, ...]) -> None:
    world = World()
    try:
        world.do(c.DefineProject(project="p", lead="off"))
        world.scene.pass_time(seconds=60)  # the leader that the commands of the rows have elected is over
        world.do(c.DefineProject(project="p", lead=lead))
        answers = _lead_and_end(world, bound, can)
        assert [status for status, _ in answers] == [403] * 4, answers
        receipt = world.receipts["p", "bo", "held"]
        assert world.do(c.Renew(project="p", receipt=receipt)).outcome == "RENEWED"
    finally:
        world.close()


@pytest.mark.parametrize("bound", [True, False])
def test_an_agents_key_leads_with_the_capability_where_agents_lead(bound: bool) -> None:
    for can in ((), ("leader",)):
        world = World()
        try:
            world.scene.pass_time(seconds=60)
            answers = _lead_and_end(world, bound, can)
            if not can:
                assert [status for status, _ in answers] == [403] * 4, answers
                assert "--can leader" in answers[0][1]["hint"]
            else:
                assert [answer["outcome"] for _, answer in answers] == ["ELECTED", "UPDATED", "UPDATED", "UPDATED"]
        finally:
            world.close()


def _lead_and_end(world: World, bound: bool, can: tuple[str, ...]) -> list[tuple[int, dict[str, Any]]]:
    """The answers to a key that makes ann the leader, and ends what bo holds under the next term."""
    more = {"agent": "ann"} if bound else {}
    made = world.do(c.CreateKey(name="wants to lead", role="agent", projects=("p",), capabilities=can, **more))
    headers = {"Authorization": f"Bearer {made.secret}", "Tenure-Agent": "ann"}
    task, free = world.tasks["p", "bo", "held"], world.do(c.Add(project="p", task=NewTask(title="free"))).task["key"]
    found = []
    for path, body in (
        ("leader", {"agent": True, "holder": "ann", "lease": 3600}),
        (f"tasks/{task}/recover", {"term": 2}),
        (f"tasks/{free}/assign", {"agent": "bo", "term": 2}),
        (f"tasks/{task}/reassign", {"agent": "ann", "term": 2}),
    ):
        status, answer, _ = world.send("POST", f"/api/v1/projects/p/{path}", headers, json.dumps(body).encode())
        found.append((status, answer))
    return found


def test_nobody_judges_their_own_work_with_a_second_key(world: World) -> None:
    """Neither an agent with another key of its person, nor an admin with a key in the name of somebody else."""

    def made(name: str, **fields: Any) -> dict[str, str]:
        return {"Authorization": f"Bearer {world.do(c.CreateKey(name=name, **fields)).secret}"}

    def post(headers: dict[str, str], path: str, **body: Any) -> tuple[int, dict[str, Any]]:
        status, answer, _ = world.send("POST", f"/api/v1/{path}", headers, json.dumps(body).encode())
        return status, answer

    def waiting(headers: dict[str, str], name: str) -> str:
        task = str(world.do(c.Add(project="p", task=NewTask(title="judged", output=OUTPUTS["review"]))).task["key"])
        _, claim = post(headers, f"projects/p/tasks/{task}/claim", agent=name, session=f"s-{name}")
        status, _ = post(headers, f"projects/p/tasks/{task}/submit", receipt=claim["receipt"], data="x")
        assert status == 202
        return f"projects/p/tasks/{task}/approve"

    one, two = (made(name, role="agent", agent=name, user="bob") for name in ("r1", "r2"))
    status, refused = post(two, waiting(one, "r1"))
    assert (status, refused["code"]) == (403, "NOT_ALLOWED")
    person = made("bob", role="member", user="bob")
    assert post(person, waiting(one, "r1"))[1]["outcome"] == "ACCEPTED"  # a person judges what their agents did

    admin = made("ada", role="admin")
    approve = waiting(admin, "ada")
    assert post(admin, approve)[0] == 403
    status, refused = post(admin, "keys", name="pose", role="member", user="cid")
    assert (status, refused["code"]) == (403, "NOT_ALLOWED")
    world.do(c.InviteMember(user="cid", role="member"))
    status, pose = post(admin, "keys", name="pose", role="member", user="cid")
    assert status in (200, 201)
    posing = {"Authorization": f"Bearer {pose['secret']}"}
    status, refused = post(posing, approve)
    assert (status, refused["code"]) == (403, "NOT_ALLOWED")
    assert post(posing, waiting(one, "r1"))[1]["outcome"] == "ACCEPTED"
    (decided,) = [row.decided_by for row in world.tables()[Validation].values() if "cid" in (row.decided_by or "")]
    assert decided == "user:cid (key made by ada)"
