"""Seeded bugs of agents' health and of forecasts: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

AGENTS = "engine/verbs/agents.py"
TEAM = "core/team.py"
RUN = "core/simulation.py"
FORECAST = "core/forecast.py"
SCHEDULE = "test_a_run_is_the_schedule_of_the_engine"

HEALTH = (
    Mutant(
        "health: people's shells go stale",
        TEAM,
        "    return is_silent(agent, now) and not is_person(agent)",
        "    return is_silent(agent, now)",
        "test_a_persons_shell_goes_home_and_rings_no_alert",
    ),
    Mutant(
        "health: an agent known by its claims is stale after 3 minutes",
        AGENTS,
        "        patience = round(limits.CLI_AGENT_STALE * inputs.SECOND)",
        "        patience = round(limits.AGENT_STALE * inputs.SECOND)",
        "test_an_agent_known_by_its_claims_alone_is_stale_after_30_minutes",
    ),
    Mutant(
        "health: an agent dies with any process of its claims",
        AGENTS,
        "    if not is_same:\n        return False",
        "    if False:\n        return False",
        "test_an_agent_that_lives_elsewhere_does_not_die_with_one_process",
    ),
    Mutant(
        "health: a heartbeat clears what it leaves out",
        AGENTS,
        "    return {name: value for name, value in reported.items() if value is not None}",
        "    return {name: value for name, value in reported.items() if value is not None or name == 'memory_mb'}",
        "test_a_heartbeat_leaves_what_it_does_not_say",
    ),
    Mutant(
        "health: minutes are kept for ever",
        TEAM,
        "now // MINUTE % limits.HEALTH_MINUTES:02d",
        "now // MINUTE:02d",
        "test_the_last_hour_is_kept_one_row_a_minute",
    ),
    Mutant(
        "forecast: a retry needs no delay",
        RUN,
        "            self._push(free.retry_at, _OPENS, job, -1)",
        "            self._push(self.now, _OPENS, job, -1)",
        SCHEDULE,
    ),
    Mutant(
        "forecast: tasks do not age",
        RUN,
        "rank - boost * self.now",
        "rank",
        SCHEDULE,
    ),
    Mutant(
        "forecast: reservations exclude nobody",
        RUN,
        "        return other is not None\n\n    def _hold",
        "        return False\n\n    def _hold",
        SCHEDULE,
    ),
    Mutant(
        "forecast: a task is cancelled twice",
        RUN,
        "                self.over.add(other)\n                held",
        "                held",
        "test_a_task_that_two_failures_cancel_counts_once_for_its_dependents",
    ),
    Mutant(
        "forecast: an unknown cost is free",
        FORECAST,
        "            if attempt.cost is None:",
        "            if False:",
        "test_a_task_without_a_known_cost_is_counted_and_never_free",
    ),
    Mutant(
        "forecast: a held task begins again",
        FORECAST,
        "        if one.elapsed is not None:",
        "        if False:",
        "test_a_held_task_takes_what_is_left_of_longer_ones",
    ),
)
