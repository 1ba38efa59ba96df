"""Alerts fire when they should, and rules and dashboard name only what there is."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tenure.server.metric_definitions import HISTOGRAM, METRICS, SAME
from tests.servers.fixtures import provided
from tests.servers.prometheus import scaled

HERE = Path(__file__).parent
DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"
DASHBOARD = DEPLOY / "grafana" / "tenure.json"
NAME = re.compile(r"\btenure_[a-z0-9_]+\b")
SELECTOR = re.compile(r"\b(tenure_[a-z0-9_]+)\{([^}]*)\}")
# What PromQL's own words around labels look like: `by (job, le)` and `{state="ready"}`.
GROUPED = re.compile(r"\b(?:by|without|on) \(([^)]*)\)")
ADDED = {"job", "instance", "le"}  # by Prometheus
HISTOGRAMS = ("_bucket", "_sum", "_count")


def rules() -> list[dict[str, Any]]:
    document = YAML(typ="safe").load(RULES.read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """Where each stands, and the expression."""
    for rule in rules():
        yield rule.get("alert") or rule["record"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def metric(name: str) -> str:
    """The metric that a series belongs to."""
    for ending in HISTOGRAMS:
        base = name.removesuffix(ending)
        if base != name and base in METRICS and METRICS[base].kind == HISTOGRAM:
            return base
    return name


@pytest.fixture(scope="module")
def promtool() -> Path:
    return provided("promtool")


@pytest.mark.parametrize(
    "asked",
    [("check", "rules", str(RULES)), ("test", "rules", str(HERE / "alerts.yml"))],
    ids=["the rules are right", "the alerts fire when they should"],
)
def test_promtool_agrees(promtool: Path, asked: tuple[str, ...]) -> None:
    done = subprocess.run([promtool, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_can_be_shortened_by_one_factor(promtool: Path, tmp_path: Path) -> None:
    """The drill with a real Prometheus does it: `./x reliability alerts`."""
    assert (
        scaled("for: 5m\nexpr: rate(x[2m] offset 1h) > 60", 30)
        == "for: 10000ms\nexpr: rate(x[4000ms] offset 120000ms) > 60"
    )
    shortened = tmp_path / "rules.yml"
    shortened.write_text(scaled(RULES.read_text(), 30))
    done = subprocess.run([promtool, "check", "rules", shortened], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_shown_to_fire_and_tells_what_to_do() -> None:
    document = YAML(typ="safe").load((HERE / "alerts.yml").read_text())
    fired = {t["alertname"] for test in document["tests"] for t in test.get("alert_rule_test", ()) if t["exp_alerts"]}
    alerts = {rule["alert"]: rule for rule in rules() if "alert" in rule}
    assert fired == alerts.keys()
    for name, rule in alerts.items():
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), name
        assert rule["annotations"].keys() == {"summary", "description"}, name


def test_rules_and_dashboard_name_only_metrics_and_labels_that_there_are() -> None:
    wrong = []
    for where, expression in expressions():
        names = [metric(name) for name in NAME.findall(expression)]
        wrong += [f"{where}: {name}" for name in names if name not in METRICS]
        labels = {label for name in names if name in METRICS for label in METRICS[name].labels} | ADDED
        used = {word.strip() for group in GROUPED.findall(expression) for word in group.split(",") if word.strip()}
        for name, matchers in SELECTOR.findall(expression):
            own = {*METRICS[metric(name)].labels, *ADDED}
            wrong += [f"{where}: {name}{{{m}}}" for m in re.findall(r"(\w+)(?:=~|!~|!=|=)\"", matchers) if m not in own]
        if "tenure:" not in expression:
            wrong += [f"{where}: by {word}" for word in used - labels]
    assert wrong == []


def test_recorded_numbers_are_recorded_somewhere() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    used = {name for _, expression in expressions() for name in re.findall(r"\btenure:[a-z0-9_:]+", expression)}
    assert used <= recorded


def test_what_every_server_reads_from_one_store_is_never_summed_over_servers() -> None:
    """Two servers would make two of each task."""
    same = [name for name, measure in METRICS.items() if measure.across == SAME]
    for where, expression in expressions():
        for name in same:
            for found in re.finditer(rf"\b{name}\b", expression):
                before = expression[: found.start()].rstrip(" (")
                assert re.search(r"\bmax(?: by \([^)]*\))?$", before), f"{where}: {expression}"


def test_the_dashboard_has_a_place_and_words_for_every_panel() -> None:
    places: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, panel["title"]
        assert max(x for x, _ in cells) < 24
        places |= cells
        assert panel["title"]
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
