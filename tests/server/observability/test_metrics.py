"""What is counted, in which words, and that nobody's names fill the memory."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tenure.core import commands as c
from tenure.core.commands import OWNER, Command, Principal
from tenure.core.errors import InvalidInput, NotFound, OutcomeUnknown, StoreUnavailable, TenureError
from tenure.core.outcomes import Outcome
from tenure.engine.duties.coordinator import Cycle
from tenure.server.metric_definitions import COUNTER, HISTOGRAM, METRICS, STORE_GAUGES
from tenure.server.metrics import MOST_PROJECTS, Metrics
from tests.server.observability.samples import Told

CLAIM = c.ClaimTask(project="p", task="A-001", agent="ann", session="s")
AGENT = Principal(role="agent", agent="ann")


@pytest.fixture
def told() -> Told:
    return Told(Metrics(version="1.2"))


def answered(
    told: Told, command: Command, outcome: str | TenureError, by: Principal = AGENT, seconds: float = 0.01
) -> None:
    answer = outcome if isinstance(outcome, TenureError) else Outcome(outcome=outcome)
    told.metrics.observe(command, by, answer, seconds)


def test_the_names_labels_and_buckets_are_those_that_were_promised() -> None:
    """Dashboards and alerts of users name them: a change here breaks theirs."""
    where = ("tenant", "project")
    for name in ("tenure_claims_total", "tenure_results_total", "tenure_lease_renewals_total"):
        assert METRICS[name].labels == (*where, "result")
    for name in ("tenure_lease_expirations_total", "tenure_generation_increments_total"):
        assert (METRICS[name].kind, METRICS[name].labels) == (COUNTER, where)
    for name in ("tenure_active_claims", "tenure_pending_tasks", "tenure_completed_tasks"):
        assert STORE_GAUGES[name].labels == where
    assert METRICS["tenure_connection_errors_total"].labels == ("target",)
    assert METRICS["tenure_claim_duration_seconds"].buckets == (1, 5, 15, 60, 300, 900, 3600)
    assert METRICS["tenure_task_completion_seconds"].buckets == (10, 60, 300, 900, 3600, 7200)
    assert METRICS["tenure_generations_per_task"].buckets == (1, 2, 3, 5, 10, 20, 50)


def test_a_name_says_what_it_counts() -> None:
    for name, measure in METRICS.items():
        assert name.startswith("tenure_")
        assert name.endswith("_total") == (measure.kind == COUNTER), name
        assert bool(measure.buckets) == (measure.kind == HISTOGRAM), name
        assert not name.endswith("_ms"), name


def test_a_claim_counts_by_its_outcome(told: Told) -> None:
    for outcome in ("GRANTED", "GRANTED", "DENIED_ACTIVE_CLAIM", "NO_TASK"):
        answered(told, CLAIM, outcome)
    assert told["tenure_claims_total", "p", "GRANTED"] == 2
    assert told["tenure_claims_total", "p", "DENIED_ACTIVE_CLAIM"] == 1
    assert told["tenure_claim_conflicts_total", "p", "DENIED_ACTIVE_CLAIM"] == 1
    assert told["tenure_claims_total", "p", "NO_TASK"] == 1
    assert told.total("tenure_claim_conflicts_total") == 1
    assert told["tenure_commands_total", "claim", "agent", "GRANTED"] == 2


def test_each_task_that_one_command_takes_counts(told: Told) -> None:
    three = Outcome(outcome="GRANTED", claims=(Outcome(outcome="GRANTED"),) * 3)
    told.metrics.observe(c.ClaimNext(project="p", agent="a", session="s", n=5), AGENT, three, 0.1)
    assert told["tenure_claims_total", "p", "GRANTED"] == 3
    assert told.total("tenure_commands_total") == 1


def test_results_and_renewals_count_by_their_outcomes(told: Told) -> None:
    answered(told, c.Submit(project="p", receipt="r"), "ACCEPTED")
    answered(told, c.Submit(project="p", receipt="r"), "STALE_GENERATION")
    answered(told, c.Renew(project="p", receipt="r"), "RENEWED")
    assert told["tenure_results_total", "p", "ACCEPTED"] == 1
    assert told["tenure_results_total", "p", "STALE_GENERATION"] == 1
    assert told["tenure_lease_renewals_total", "p", "RENEWED"] == 1


def test_every_command_counts_and_takes_its_time(told: Told) -> None:
    answered(told, c.StopLine(project="p", scope="project:"), "OK", OWNER, 0.2)
    answered(told, c.Heartbeat(project="p", agent="ann"), "OK")
    assert told["tenure_commands_total", "stop_line", "owner", "OK"] == 1
    assert told["tenure_commands_total", "heartbeat", "agent", "OK"] == 1
    assert told["tenure_command_seconds_sum", "stop_line"] == 0.2


def test_a_store_that_is_away_is_an_error_of_a_connection_too(told: Told) -> None:
    answered(told, CLAIM, StoreUnavailable("gone"))
    answered(told, CLAIM, OutcomeUnknown("perhaps"))
    answered(told, CLAIM, InvalidInput("no"))
    assert told["tenure_store_errors_total", "STORE_UNAVAILABLE"] == 1
    assert told["tenure_store_errors_total", "OUTCOME_UNKNOWN"] == 1
    assert told["tenure_connection_errors_total", "store"] == 2
    assert told.total("tenure_store_errors_total") == 2
    assert told["tenure_claims_total", "other", "INVALID_INPUT"] == 1


def test_requests_count_by_route_and_status(told: Told) -> None:
    told.metrics.request("/api/v1/projects/{project}/claims", "POST", 200, 0.003)
    told.metrics.request("/api/v1/projects/{project}/claims", "BREW", 405, 0.003)
    assert told["tenure_http_requests_total", "POST", "/api/v1/projects/{project}/claims", "200"] == 1
    assert told["tenure_http_requests_total", "other", "/api/v1/projects/{project}/claims", "405"] == 1


def test_requests_that_wait_are_counted_while_they_do(told: Told) -> None:
    with told.metrics.waiting_request("claims"), told.metrics.waiting_request("claims"):
        assert told["tenure_held_requests", "claims"] == 2
    assert told["tenure_held_requests", "claims"] == 0


# --- bounds -------------------------------------------------------------------------------------------------


def test_projects_beyond_the_bound_are_counted_together(told: Told) -> None:
    for n in range(MOST_PROJECTS + 50):
        answered(told, c.ClaimTask(project=f"p{n}", task="t", agent="a", session="s"), "GRANTED")
    assert told["tenure_claims_total", "other", "GRANTED"] == 50
    assert told.total("tenure_claims_total") == MOST_PROJECTS + 50
    assert len(told.series("tenure_claims_total")) == MOST_PROJECTS + 1


def test_whoever_invents_projects_takes_no_place_of_a_real_one(told: Told) -> None:
    for n in range(MOST_PROJECTS * 2):
        answered(
            told, c.ClaimTask(project=f"invented{n}", task="t", agent="a", session="s"), NotFound("no such project")
        )
    answered(told, CLAIM, "GRANTED")
    assert told["tenure_claims_total", "p", "GRANTED"] == 1
    assert told["tenure_claims_total", "other", "NOT_FOUND"] == MOST_PROJECTS * 2


def test_an_invented_role_is_no_label(told: Told) -> None:
    answered(told, CLAIM, "GRANTED", Principal(role="wizard"))
    assert told["tenure_commands_total", "claim", "other", "GRANTED"] == 1


# --- the coordinator ----------------------------------------------------------------------------------------


def test_cycles_tell_who_leads_and_how_long_ago_the_last_good_one_was() -> None:
    now = 100.0
    told = Told(Metrics(monotonic=lambda: now))
    now = 107.0
    assert told["tenure_coordinator_last_cycle_age_seconds",] == 7
    told.metrics.cycle(Cycle(0.25, settled=10, failed=1, ok=True), 3)
    now = 110.0
    told.metrics.cycle(Cycle(0.5, settled=0, failed=0, ok=False), None)
    assert told["tenure_coordinator_last_cycle_age_seconds",] == 3
    assert told["tenure_coordinator_leader",] == 0
    assert told["tenure_coordinator_term",] == 3
    assert told["tenure_settled_total",] == 10
    assert told["tenure_unsettled_total",] == 1
    assert told["tenure_coordinator_cycles_total", "ok"] == told["tenure_coordinator_cycles_total", "failed"] == 1
    assert told["tenure_coordinator_cycle_seconds_sum",] == 0.75


def test_the_page_can_be_read_and_has_the_process_too(told: Told) -> None:
    text = generate_latest(told.metrics.registry).decode()
    families = {family.name for family in text_string_to_metric_families(text)}
    assert "process_resident_memory_bytes" in families
    assert told["tenure_build", "1.2", *told.metrics_python()] == 1
    assert "_created" not in text
