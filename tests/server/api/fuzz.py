"""Requests made up from the document, sent to a real server, and what is wrong with its answers.

Half of them keep to the document, half break it somewhere. Those that keep to it are brought near to what is there:
names and receipts are taken from what the project had at its beginning and from what earlier answers have told, so
that most requests reach the rules behind the checks.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tenure.server.app import LONGEST_WAIT
from tenure.server.openapi.operations import IN_PATH
from tenure.testing.factories import PROJECT

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LIKELY = 0.8
MOST_KNOWN = 200
A_PASS = 1000
BY_ITEM = {"batch", "preview"}  # what is broken in one of their commands is told in its place, with 200 for all


class Finding(NamedTuple):
    operation: str
    what: str
    request: str

    def __str__(self) -> str:
        return f"{self.operation}: {self.what}\n    {self.request}"


class Told:
    """Names that are known by now, by what they name; those of the last round are the likelier."""

    def __init__(self, names: dict[str, list[str]], dice: random.Random) -> None:
        self.names = {what: list(known) for what, known in names.items()}
        self.fresh: dict[str, list[str]] = {}
        self.dice = dice

    def learn(self, value: Any) -> None:
        if isinstance(value, dict):
            for field, what in (("receipt", "receipt"), ("command_id", "command_id"), ("key", "task")):
                if isinstance(value.get(field), str) and len(self.names[what]) < MOST_KNOWN:
                    self.names[what].append(value[field])
            for part in value.values():
                self.learn(part)
        elif isinstance(value, list):
            for part in value:
                self.learn(part)

    def put_in(self, case: Any) -> None:
        """Put known names where such names stand, and the task of a receipt into the path that it must agree with."""
        for part in (case.path_parameters, case.query, case.body):
            self._put_in(part)
        receipt = case.body.get("receipt") if isinstance(case.body, dict) else None
        if isinstance(receipt, str) and "task" in (case.path_parameters or {}) and self.dice.random() < LIKELY:
            case.path_parameters["task"] = quote(receipt.partition("@")[0], safe="") or "-"

    def _put_in(self, value: Any) -> None:
        if isinstance(value, list):
            for one in value:
                self._put_in(one)
        if not isinstance(value, dict):
            return
        for field, part in value.items():
            if field in self.names and self.dice.random() < LIKELY:
                if isinstance(part, str):
                    value[field] = self._name(field)
                elif isinstance(part, list) and all(isinstance(one, str) for one in part):
                    value[field] = [self._name(field) for _ in part[:3]]
            self._put_in(value[field])

    def _name(self, what: str) -> str:
        fresh = self.fresh.get(what)
        return self.dice.choice(fresh if fresh and self.dice.random() < LIKELY else self.names[what])


def _can_be_broken(operation: Any) -> bool:
    """Any text is good in a path, in a trace and as the tag of a copy; all else has its bounds."""
    said = operation.definition.raw
    beside = {p.get("name") or p["$ref"].rpartition("/")[2] for p in said.get("parameters", ())}
    return "requestBody" in said or bool(beside - {*IN_PATH, "traceparent", "If-None-Match"})


def closed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with answers that may have no other fields than it says: to clients it is open, here it is not."""
    strict = copy.deepcopy(document)
    strict["security"] = []  # the server is open; who may do what is the matrix's to find out
    del strict["components"]["securitySchemes"]
    for name, schema in strict["components"]["schemas"].items():
        if "properties" in schema and not name.endswith(("Body", "Command")):
            schema.setdefault("additionalProperties", False)
    return strict


class Fuzz:
    def __init__(self, url: str, document: dict[str, Any], names: dict[str, list[str]], number: int) -> None:
        self.url = url
        self.schema = schemathesis.openapi.from_dict(closed(document))
        self.schema.config.update(base_url=url)
        refused = self.schema.config.checks.negative_data_rejection
        # 401: of a webhook's delivery nothing is read before its signature is proven, and these have none
        refused.expected_statuses = ["400", "401", "403", "404", "409", "412", "413", "415", "422"]
        self.number = number
        self.told = Told(names, random.Random(number))
        self.session = requests.Session()
        self.findings: list[Finding] = []
        self.statuses: Counter[int] = Counter()
        self.reached: dict[str, Counter[int]] = {}  # by operation
        self.done = 0

    def run(self, cases: int) -> None:
        """So many requests, in passes through all operations: what one leaves behind the next ones find."""
        passes = -(-cases // A_PASS)
        for n in range(1, passes + 1):
            self._pass(cases * n // passes)

    def _pass(self, cases: int) -> None:
        operations = [found.ok() for found in self.schema.get_all_operations()]
        rounds = [(one, GenerationMode.POSITIVE) for one in operations]
        rounds += [(one, GenerationMode.NEGATIVE) for one in operations if _can_be_broken(one)]
        self.told.dice.shuffle(rounds)
        for place, (operation, mode) in enumerate(rounds):
            share = (cases - self.done) // (len(rounds) - place)
            if share > 0:
                self._refresh()
                self._one(operation, mode, share)

    def _refresh(self) -> None:
        """Tasks that are ready, held, completed, paused and dead, since those before were cancelled by now.

        Claiming goes on again, whatever was stopped or limited; the agent is a new one, since the others were ended.
        """
        api = f"{self.url}/api/v1/projects/{PROJECT}"
        agent = f"fresh-{self.done}"
        stopped = self.session.get(api).json()["stopped"]
        tasks = [{"title": f"fresh {n}", "name": f"n{n}", "max_attempts": 1} for n in range(6)]
        *_, made = self._batch(
            api,
            [
                *({"command": "start_line", "scope": scope} for scope in stopped),
                {"command": "define_project", "limits": {}, "default_track": "A"},
                {"command": "plan", "tasks": tasks},
            ],
        )
        keys = [task["key"] for task in made["tasks"]]
        who = {"agent": agent, "session": agent, "lease": 600}
        held = self._batch(api, [{"command": "claim", "task": key, **who} for key in keys[1:]])
        live, done, dead, asks, old = [outcome["receipt"] for outcome in held]
        self._batch(
            api,
            [
                {"command": "submit", "receipt": done},
                {"command": "fail", "receipt": dead},
                {"command": "ask", "receipt": asks, "question": "?"},
                {"command": "release", "receipt": old},
            ],
        )
        self.told.fresh = {
            "task": keys, "receipt": [live], "command_id": [made["command_id"]], "agent": [agent], "session": [agent],
        }  # fmt: skip

    def _batch(self, api: str, commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self.session.post(f"{api}/batch", json={"commands": commands}).json()["outcomes"]
        return answer

    def _one(self, operation: Any, mode: GenerationMode, count: int) -> None:
        @seed(self.number + self.done)
        @settings(
            max_examples=max(2, count),  # the first is always the smallest there is, which says little
            database=None,
            print_blob=False,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def run(case: Any) -> None:
            self._send(case, mode)

        run()

    def _send(self, case: Any, mode: GenerationMode) -> None:
        self.done += 1
        checks: list[Callable[..., Any]] = list(CHECKS)
        if mode is GenerationMode.POSITIVE:
            self.told.put_in(case)
            (case.query or {}).pop("fields", None)  # an answer with some fields is not the whole type
        elif case.operation.definition.raw["operationId"] not in BY_ITEM:
            checks.append(negative_data_rejection)
        if isinstance((case.query or {}).get("wait"), (int, float)) and 0 <= case.query["wait"] <= LONGEST_WAIT:
            case.query["wait"] = 0.01  # one that is good, but nobody has the time
        response = case.call(session=self.session, timeout=30)
        self.statuses[response.status_code] += 1
        self.reached.setdefault(case.operation.definition.raw["operationId"], Counter())[response.status_code] += 1
        try:
            case.validate_response(response, checks=checks)
        except FailureGroup as group:
            for failure in group.exceptions:
                self._note(case, response, failure)
        except Failure as failure:
            self._note(case, response, failure)
        if mode is GenerationMode.POSITIVE and "json" in response.headers.get("content-type", [""])[0]:
            self.told.learn(response.json())

    def _note(self, case: Any, response: Any, failure: Any) -> None:
        where = f"{case.operation.method.upper()} {case.operation.path}"
        said = f"{failure.title}: {failure.message}"[:1500]
        sent = f"{case.path_parameters} {case.query} {case.headers} {str(case.body)[:500]}"
        self.findings.append(Finding(where, said, f"{sent} → {response.status_code} {response.text[:300]}"))
