"""Clients that others generate from the document work with a real server, and linters have nothing against it."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from tenure.server.docs_page import operations
from tenure.server.openapi import document
from tests.servers import npm
from tests.servers.tenure import TenureServer

OPERATIONS = {str(one.spec["operationId"]) for one in operations(document())}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("document") / "openapi.json"
    file.write_bytes(msgspec.json.format(msgspec.json.encode(document())))
    return file


def test_no_enum_has_fractions_or_several_types() -> None:
    """Generators leave out an operation with such a one."""
    todo: list[Any] = [document()]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            kinds = {type(one) for one in value.get("enum", ())} if isinstance(value.get("enum"), list) else set()
            assert kinds - {type(None)} in (set(), {str}), value
            todo += value.values()
        elif isinstance(value, list):
            todo += value


# --- Python ---


@pytest.fixture(scope="module")
def generated(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A package of `openapi-python-client`, without a word of warning."""
    folder = tmp_path_factory.mktemp("python")
    settings = folder / "settings.yml"
    settings.write_text("post_hooks: []\n")
    argv = ["generate", "--path", page, "--output-path", folder / "made", "--meta", "none", "--config", settings]
    script = "from openapi_python_client.cli import app; app()"
    said = subprocess.run(
        [sys.executable, "-c", script, *argv, "--fail-on-warning"], check=False, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stdout + said.stderr
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("made")
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "made"]:
            del sys.modules[name]


@pytest.mark.nightly
def test_a_generated_python_client_has_every_operation(generated: ModuleType) -> None:
    folder = Path(str(generated.__file__)).parent / "api"
    found = {file.stem.rstrip("_") for file in folder.glob("*/*.py") if file.stem != "__init__"}
    assert found == {re.sub(r"\W", "_", name) for name in OPERATIONS}


@pytest.mark.nightly
def test_a_generated_python_client_takes_a_task_to_its_result(generated: ModuleType, api: str) -> None:
    folder = Path(str(generated.__file__)).parent / "api"
    models = importlib.import_module("made.models")
    with generated.Client(base_url=api) as client:

        def call(name: str, *arguments: Any, **options: Any) -> Any:
            theme = next(file.parent.name for file in folder.glob(f"*/{name}.py"))
            made = importlib.import_module(f"made.api.{theme}.{name}")
            response = made.sync_detailed(*arguments, client=client, **options)
            assert response.status_code < 300, (name, response.content)
            return response.parsed

        call("define_project", "generated", body=models.DefineProjectBody())
        made = call("add", "generated", body=models.NewTask(title="From a generated client", boost=0.1, tags=["made"]))
        key = made.task.key
        assert call("add", "generated", body=models.AddBody(task=models.NewTask(title="wrapped"))).outcome == "CREATED"
        claim = call("claim", "generated", key, body=models.ClaimTaskBody(agent="gen", session="gen-1"))
        call("progress", "generated", key, body=models.ProgressBody(receipt=claim.receipt, percent=50))
        done = call("submit", "generated", key, body=models.SubmitBody(receipt=claim.receipt, data={"answer": 42}))
        assert done.outcome == "ACCEPTED"
        assert call("show", "generated", key).state == "completed"
        listed = call(
            "tasks",
            "generated",
            tag=["made"],
            state=[models.TasksStateItem.COMPLETED],
            sort=models.TasksSort("-priority"),
        )
        assert ([task.key for task in listed.items], listed.next_) == ([key], None)
        assert call("log", "generated", limit=5).items[-1].text
        assert call("agent_health", "generated", "gen").status == "idle"


# --- TypeScript ---

PROGRAM = """
import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

const client = createClient<paths>({ baseUrl: process.argv[2]! });
const project = "typed";
await client.PUT("/api/v1/projects/{project}", { params: { path: { project } }, body: {} });
const made = await client.POST("/api/v1/projects/{project}/tasks", {
  params: { path: { project } }, body: { title: "From TypeScript", tags: ["ts"] },
});
const task = made.data!.task!.key;
const path = { project, task };
const claim = await client.POST("/api/v1/projects/{project}/tasks/{task}/claim", {
  params: { path }, body: { agent: "ts", session: "ts-1" },
});
const receipt: string = claim.data!.receipt!;
const done = await client.POST("/api/v1/projects/{project}/tasks/{task}/submit", {
  params: { path }, body: { receipt, data: { answer: 42 } },
});
const listed = await client.GET("/api/v1/projects/{project}/tasks", {
  params: { path: { project }, query: { state: ["completed"], tag: ["ts"] } },
});
const refused = await client.POST("/api/v1/projects/{project}/tasks", {
  // @ts-expect-error a field that there is not
  params: { path: { project } }, body: { titel: "typo" },
});
console.log(JSON.stringify({
  outcome: done.data?.outcome, keys: listed.data!.items.map((one) => one.key), task,
  status: refused.response.status, code: (refused.error as { code: string }).code,
}));
"""
TSCONFIG = {
    "compilerOptions": {
        "strict": True, "noEmit": True, "target": "es2022", "module": "nodenext", "moduleResolution": "nodenext",
        "allowImportingTsExtensions": True, "lib": ["es2022", "dom", "dom.iterable"], "types": [],
    },
    "files": ["program.ts", "globals.d.ts"],
}  # fmt: skip


@pytest.mark.nightly
def test_a_typescript_client_is_checked_and_takes_a_task_to_its_result(page: Path, api: str, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(npm.installed() / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "program.ts").write_text(PROGRAM)
    (tmp_path / "globals.d.ts").write_text("declare const process: { argv: string[] };\n")
    (tmp_path / "tsconfig.json").write_text(json.dumps(TSCONFIG))
    said = npm.run("openapi-typescript/bin/cli.js", page, "-o", tmp_path / "api.d.ts", cwd=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr
    said = npm.run("typescript/bin/tsc", "-p", tmp_path, cwd=tmp_path)
    assert said.returncode == 0, said.stdout + said.stderr
    said = npm.run(tmp_path / "program.ts", api, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert (told["outcome"], told["keys"]) == ("ACCEPTED", [told["task"]])
    assert (told["status"], told["code"]) == (400, "INVALID_INPUT")


# --- linters ---


@pytest.mark.nightly
def test_redocly_finds_no_error(page: Path, tmp_path: Path) -> None:
    said = npm.run("@redocly/cli/bin/cli.js", "lint", page, "--format", "json", cwd=tmp_path)
    found = json.loads(said.stdout)
    assert [one["message"] for one in found["problems"] if one["severity"] == "error"] == []
    assert (said.returncode, found["totals"]["errors"]) == (0, 0)


@pytest.mark.nightly
def test_spectral_finds_nothing(page: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text('extends: ["spectral:oas"]\n')
    argv = ("lint", page, "--ruleset", rules, "--format", "json", "--fail-severity", "hint", "--quiet")
    said = npm.run("@stoplight/spectral-cli/dist/index.js", *argv, cwd=tmp_path)
    assert (said.returncode, json.loads(said.stdout)) == (0, []), said.stdout[:2000] + said.stderr


def test_the_server_that_is_tested_serves_this_document(rich_server: tuple[TenureServer, Any], api: str) -> None:
    import urllib.request

    with urllib.request.urlopen(f"{api}/openapi.json") as response:
        assert json.loads(response.read()) == msgspec.json.decode(msgspec.json.encode(document()))
