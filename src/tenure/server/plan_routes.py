"""`/api/v1/projects/{project}/plan-files`: reads the text of a plan file, and creates nothing.

The answer has the plans of the file as bodies of `POST /projects/{project}/dags`, or its findings with their lines: so
a page can show the errors of a file, and apply it by the same command as everybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tenure.client.routes import PLAN_FILES, PREFIX
from tenure.core.commands import NewTask, NewTrack, Principal, Template
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.queries import Plans
from tenure.engine.reads.query_table import read_query
from tenure.plans import apply, files
from tenure.server import responses
from tenure.server.app import Endpoint
from tenure.server.requests import PlanText, Request, decode_plan
from tenure.server.responses import Response
from tenure.server.service import Service


def routes() -> Iterator[Endpoint]:
    async def read(request: Request) -> Response:
        service = request.service
        given = decode_plan(await request.body())
        project = request.fields["project"]
        return responses.of_value(await service.costly_in_thread(_read, service, project, given, request.principal))

    yield Endpoint("POST", PREFIX + PLAN_FILES, read, is_costly=True)


def _read(service: Service, project: str, given: PlanText, principal: Principal) -> dict[str, Any]:
    now = service.engine.read(lambda tx: tx.now)
    reading = files.read(given.text, given.path, now)
    return {
        "plans": [_command(service, project, plan, principal) for plan in reading.plans],
        "findings": [msgspec.to_builtins(finding) for finding in reading.findings],
    }


def _command(service: Service, project: str, plan: files.PlanFile, principal: Principal) -> dict[str, Any]:
    name = plan.name or files.name_for(plan.path)
    if name is None:
        raise InvalidInput("the plan has no name, so it could not be recognised later", "add `name:` to it")

    def stored() -> Any:
        try:
            return read_query(service.engine, Plans(project=project, plan=name), principal)
        except NotFound:
            return ()

    tasks = apply.settled(plan, stored)
    fields = {
        "name": name, "title": plan.title, "tasks": [_without_defaults(task) for task in tasks],
        "tracks": [msgspec.to_builtins(track) for track in plan.tracks], "budget": plan.budget,
        "on_end": {end: _without_defaults(template) for end, template in plan.on_end.items()},
    }  # fmt: skip
    return {field: value for field, value in fields.items() if value}


def _without_defaults(value: NewTask | NewTrack | Template) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(value)
    defaults = {field.name: field.default for field in msgspec.structs.fields(type(value))}
    if isinstance(value, Template):
        fields["tasks"] = [_without_defaults(task) for task in value.tasks]
    return {
        name: encoded
        for name, encoded in fields.items()
        if getattr(value, name) != defaults[name] and encoded not in ({}, [])
    }
