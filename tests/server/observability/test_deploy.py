"""The examples of how to run a server name only settings, flags and paths that there are, and agree on the port."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tenure import config
from tenure.cli.main import function_of, parser_of
from tenure.cli.verbs import VERBS
from tenure.sinks.open_sink import open_sink
from tests.servers.fixtures import provided

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
PORT = config.SETTINGS["serve.port"].default
SETTINGS = {"TENURE_" + key.upper().replace(".", "_") for key in config.SETTINGS}
LARGEST = 100  # lines of an example
PROBES = {"/health", "/ready"}


def yaml(path: Path) -> list[Any]:
    return [part for part in YAML(typ="safe").load_all(path.read_text()) if part is not None]


def texts() -> Iterator[Path]:
    return (path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".json")


def test_examples_are_small() -> None:
    assert [p.name for p in texts() if p.name != "rules.yml" and len(p.read_text().splitlines()) > LARGEST] == []


def test_every_setting_in_the_examples_is_one() -> None:
    for path in texts():
        assert set(re.findall(r"\bTENURE_[A-Z_]*[A-Z]\b", path.read_text())) <= SETTINGS, path


def test_every_verb_and_flag_in_the_examples_is_one() -> None:
    compose = yaml(DEPLOY / "docker" / "compose.yaml")[0]
    (container,) = yaml(DEPLOY / "kubernetes" / "deployment.yaml")[0]["spec"]["template"]["spec"]["containers"]
    docker = (DEPLOY / "docker" / "Dockerfile").read_text()
    unit = (DEPLOY / "systemd" / "tenure.service").read_text()
    (cmd,) = re.findall(r"^CMD \[(.*)\]$", docker, re.MULTILINE)
    asked = [
        container["args"],
        [part.strip('" ') for part in cmd.split(",")],
        re.findall(r"^ExecStart=\S+/tenure (.*)$", unit, re.MULTILINE)[0].split(),
        *(line.split(">")[0].split() for line in _tenure_lines(compose["services"]["first"]["command"])),
    ]
    for words in asked:
        check_command(words)
    assert len(asked) == 5


def _tenure_lines(scripts: Iterable[str]) -> list[str]:
    return [found for script in scripts for found in re.findall(r"(?:^|\|\| )tenure (.*)$", script, re.MULTILINE)]


def check_command(words: list[str]) -> None:
    verb = " ".join(words[:2]) if " ".join(words[:2]) in VERBS else words[0]
    parser = parser_of(verb, function_of(VERBS[verb].where))
    parser.parse_args(words[len(verb.split()) :])  # exits where it knows a word not


def test_ports_and_probes_agree() -> None:
    compose = yaml(DEPLOY / "docker" / "compose.yaml")[0]
    scraped = yaml(DEPLOY / "docker" / "prometheus.yml")[0]["scrape_configs"][0]
    (container,) = yaml(DEPLOY / "kubernetes" / "deployment.yaml")[0]["spec"]["template"]["spec"]["containers"]
    service, budget = yaml(DEPLOY / "kubernetes" / "service.yaml")
    servers = [name for name in compose["services"] if name.startswith("serve-")]
    assert scraped["static_configs"][0]["targets"] == [f"{name}:{PORT}" for name in servers]
    assert all(compose["services"][name]["ports"][0].endswith(f":{PORT}") for name in servers)
    assert f"EXPOSE {PORT}\n" in (DEPLOY / "docker" / "Dockerfile").read_text()
    assert f'"{PORT}"' in (DEPLOY / "docker" / "healthy.py").read_text()
    assert f"TENURE_SERVE_PORT={PORT}\n" in (DEPLOY / "systemd" / "tenure.env").read_text()
    assert [port["containerPort"] for port in container["ports"]] == [PORT]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    probes = [container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert {probe["path"] for probe in probes} == PROBES
    assert {probe["port"] for probe in probes} == {container["ports"][0]["name"]}
    labels = yaml(DEPLOY / "kubernetes" / "deployment.yaml")[0]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"] == labels


def test_a_secret_is_not_applied_by_accident() -> None:
    """`kubectl apply -f deploy/kubernetes/` would write the example over the real one."""
    for path in (DEPLOY / "kubernetes").glob("*.y*ml"):
        assert [part["kind"] for part in yaml(path) if part["kind"] == "Secret"] == []
    (secret,) = yaml(DEPLOY / "kubernetes" / "secret.yaml.example")
    (container,) = yaml(DEPLOY / "kubernetes" / "deployment.yaml")[0]["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}]


def test_the_image_is_nobodys_and_has_what_its_extras_bring() -> None:
    docker = (DEPLOY / "docker" / "Dockerfile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = re.findall(r"--extra ([a-z0-9]+)", docker)
    assert asked
    assert set(asked) <= extras.keys()
    (user,) = re.findall(r"^USER (\d+)$", docker, re.MULTILINE)
    assert int(user) > 0
    (pod,) = yaml(DEPLOY / "kubernetes" / "deployment.yaml")
    assert pod["spec"]["template"]["spec"]["securityContext"]["fsGroup"] == int(user)
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", docker, re.MULTILINE)
    allowed = (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text().splitlines()
    for name in (name for line in copied for name in line.split()):
        assert (ROOT / name).exists(), name
        assert f"!{name}" in allowed


class Answering(BaseHTTPRequestHandler):
    """A server that answers everything with one status."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("status", "ends"), [(200, 0), (503, 1), (None, 1)])
def test_a_container_is_healthy_while_its_server_answers(status: int | None, ends: int) -> None:
    handler = type("Handler", (Answering,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if status is None:
            server.socket.close()
        else:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        environ = {"TENURE_SERVE_PORT": str(server.server_port)}
        healthy = [sys.executable, DEPLOY / "docker" / "healthy.py"]
        done = subprocess.run(healthy, env=environ, capture_output=True, text=True, check=False)
        if status is not None:
            server.shutdown()
    assert done.returncode == ends, done.stderr


def test_compose_starts_from_files_that_are_there() -> None:
    compose = yaml(DEPLOY / "docker" / "compose.yaml")[0]
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            place = volume.split(":")[0]
            assert place in compose["volumes"] or (DEPLOY / "docker" / place).exists(), place
        for other in service.get("depends_on", {}):
            assert other in compose["services"]
    build = compose["services"]["serve-1"]["build"]
    assert (DEPLOY / "docker" / build["context"] / build["dockerfile"]).samefile(DEPLOY / "docker" / "Dockerfile")


def test_the_brokers_of_compose_are_those_that_its_server_sends_to() -> None:
    compose = yaml(DEPLOY / "compose.messaging.yml")[0]
    serve = compose["services"]["serve"]
    (script,) = serve["command"]
    sinks = tomllib.loads(script.partition("<<'END'\n")[2].partition("END\n")[0])["sinks"]
    for name, sink in sinks.items():
        assert open_sink(sink["url"]).identity  # its extra is installed, its URL is understood
        assert re.search(r"://(?:\S+@)?(\w+):(\d+)", sink["url"]).group(1) in compose["services"], name  # type: ignore[union-attr]
    assert {*sinks, "serve"} == set(compose["services"])
    docker = (DEPLOY / "docker" / "Dockerfile").read_text()
    assert all(f"--extra {extra}" in docker for extra in ("nats", "rabbitmq", "redis"))
    for words in _tenure_lines([script.replace("exec ", "")]):
        check_command(words.split())
    for service in compose["services"].values():
        assert {volume.split(":")[0] for volume in service["volumes"]} <= set(compose["volumes"])
    assert (DEPLOY / serve["build"]["context"] / serve["build"]["dockerfile"]).is_file()


def test_promtool_can_read_how_compose_scrapes() -> None:
    promtool = provided("promtool")
    path = DEPLOY / "docker" / "prometheus.yml"
    done = subprocess.run(
        [promtool, "check", "config", "--syntax-only", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that is there."""
    provided("systemd-analyze")
    program = tmp_path / "tenure"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (DEPLOY / "systemd" / "tenure.service").read_text()
    path = tmp_path / "tenure.service"
    path.write_text(text.replace("/opt/tenure/bin/tenure", str(program)))
    return path


def test_systemd_understands_the_unit(unit: Path) -> None:
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_leaves_little_to_whoever_breaks_in(unit: Path) -> None:
    """2.0 is systemd's own bound of what it calls OK."""
    asked = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", unit]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:]
