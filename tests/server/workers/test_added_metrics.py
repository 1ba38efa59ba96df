"""Families of several workers as one, by the rule of each metric."""

from __future__ import annotations

from pathlib import Path

import msgspec
import prometheus_client as prometheus

from tenure.server.metric_definitions import GAUGE, METRICS, PER_PROCESS
from tenure.server.workers.added_metrics import Family, added, ended_in, families_of, fold


def counter(value: float, **labels: str) -> Family:
    return Family("tenure_results", "counter", "x", [("tenure_results_total", labels, value)])


def gauge(name: str, value: float) -> Family:
    return Family(name, "gauge", "x", [(name, {}, value)])


def value_of(families: list[Family], name: str) -> list[float]:
    return [value for family in families for sample, _, value in family.samples if sample == name]


def test_counters_are_added_by_their_labels_also_those_of_the_dead() -> None:
    found = added(
        [[counter(1, result="OK")], [counter(2, result="OK"), counter(5, result="NO")]], [[counter(10, result="OK")]]
    )
    assert {tuple(labels.values()): value for _, labels, value in found[0].samples} == {("OK",): 13, ("NO",): 5}


def test_gauges_of_the_dead_do_not_count() -> None:
    found = added(
        [[gauge("tenure_held_requests", 1)], [gauge("tenure_held_requests", 2)]], [[gauge("tenure_held_requests", 9)]]
    )
    assert value_of(found, "tenure_held_requests") == [3]


def test_what_was_read_from_the_store_is_that_of_the_worker_that_was_asked() -> None:
    found = added([[gauge("tenure_pending_tasks", 7)], [gauge("tenure_pending_tasks", 3)]], [])
    assert value_of(found, "tenure_pending_tasks") == [7]


def test_the_worst_worker_is_shown_and_the_one_that_leads() -> None:
    ages = "tenure_coordinator_last_cycle_age_seconds"
    for name, shown in (("tenure_coordinator_leader", 1), (ages, 1), ("tenure_store_answer_age_seconds", 0)):
        assert value_of(added([[gauge(name, 0)], [gauge(name, 1)]], []), name) == [shown]


def test_whether_the_store_answers_is_what_the_worker_that_was_asked_has_just_seen() -> None:
    """The other may have looked last during an outage that is over."""
    for asked in (0, 1):
        found = added([[gauge("tenure_store_up", asked)], [gauge("tenure_store_up", 1 - asked)]], [])
        assert value_of(found, "tenure_store_up") == [asked]


def test_every_gauge_of_a_process_has_a_rule() -> None:
    names = {name for name, metric in METRICS.items() if metric.kind == GAUGE and metric.across == PER_PROCESS}
    least = {"tenure_store_up", "tenure_store_answer_age_seconds"}
    for name in names:
        (value,) = value_of(added([[gauge(name, 2)], [gauge(name, 5)]], []), name)
        assert value == (2 if name in least else 5), name


def test_a_histogram_is_added_bucket_by_bucket() -> None:
    def seen(*values: float) -> list[Family]:
        registry = prometheus.CollectorRegistry()
        histogram = prometheus.Histogram("tenure_command_seconds", "x", ["command"], buckets=(1, 2), registry=registry)
        for value in values:
            histogram.labels("add").observe(value)
        return families_of(registry)

    found = added([seen(0.5, 1.5), seen(1.5)], [seen(3)])
    got = {(name, labels.get("le")): value for name, labels, value in found[0].samples if not name.endswith("_created")}
    assert got["tenure_command_seconds_bucket", "1.0"] == 1
    assert got["tenure_command_seconds_bucket", "2.0"] == 3
    assert got["tenure_command_seconds_bucket", "+Inf"] == got["tenure_command_seconds_count", None] == 4
    assert got["tenure_command_seconds_sum", None] == 6.5


def test_those_who_died_are_folded_into_one_file(tmp_path: Path) -> None:
    for number, id in enumerate(("0-10", "1-11", "0-12")):
        told = msgspec.msgpack.encode((id, [counter(number + 1), gauge("tenure_workers", 1)]))
        (tmp_path / f"counts-{id}").write_bytes(told)
        fold(str(tmp_path), id)
    fold(str(tmp_path), "7-77")  # it was never asked
    ended = ended_in(tmp_path)
    assert ended.workers == ["0-10", "1-11", "0-12"]
    assert value_of(ended.families, "tenure_results_total") == [6]
    assert not list(tmp_path.glob("counts-[0-9]*"))
