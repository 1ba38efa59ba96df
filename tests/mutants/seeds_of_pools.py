"""Seeded bugs in pools: too many that may claim, money promised twice, processes and keys that outlive their spawn."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

FLEET = "engine/fleet/fleet.py"
OFFERS = "engine/fleet/offers.py"
RULES = "core/pools.py"
ROWS = "engine/fleet/spawn_rows.py"
CLAIMS = "engine/fleet/spawned_claims.py"
UPKEEP = "engine/fleet/upkeep.py"
TERM_OF_ANSWER = "test_an_answer_needs_the_term"
LOST = "test_a_spawn_that_was_not_heard_of_in_time_is_lost_and_claims_nothing"

POOLS = (
    Mutant(
        "pools: a new leader starts agents before it hears what runs",
        FLEET,
        "        return not is_new or not (self._polls or self._searches)\n",
        "        return True\n",
        "test_a_new_leader_hears_what_runs_before_it_starts_more",
    ),
    Mutant(
        "pools: a new leader waits for a spawner that hangs",
        FLEET,
        "        return not is_new or not (self._polls or self._searches)\n",
        "        return not (self._polls or self._searches)\n",
        "test_a_new_leader_does_not_wait_long_for_a_spawner_that_hangs",
    ),
    Mutant(
        "pools: a claim with a spawn is not judged",
        CLAIMS,
        "    if why is not None:\n",
        "    if why is not None and False:\n",
        LOST,
    ),
    Mutant(
        "pools: an offer that ran out still lets its agent claim",
        RULES,
        "    if not is_live(spawn, now):\n        return f",
        "    if False:\n        return f",
        LOST,
    ),
    Mutant(
        "pools: a spawn serves every session",
        RULES,
        "return None if spawn.session == session else",
        "return None if spawn.session else",
        "test_a_second_process_of_a_spawn_claims_nothing",
    ),
    Mutant(
        "pools: a spawn is good for every agent",
        RULES,
        "    if spawn.agent != agent:\n",
        "    if False:\n",
        "test_a_spawn_is_for_its_agent_and_known_here",
    ),
    Mutant(
        "pools: a place that is gone still claims",
        RULES,
        "    if spawn.place > pool.size:\n",
        "    if False:\n",
        "test_a_smaller_or_removed_pool_refuses_those_who_have_not_called",
    ),
    Mutant(
        "pools: the fast path knows no spawns",
        "engine/runtime/fast_path/next_claims.py",
        " or command.spawn is not None",
        "",
        on("postgres", "test_an_ended_spawn_claims_nothing_though_tasks_are_ready"),
    ),
    Mutant(
        "pools: a place that starts counts as free",
        RULES,
        "    return spawn.state == RUNNING or (spawn.state == STARTING and now < spawn.offer_until)",
        "    return spawn.state == RUNNING",
        "test_places_are_filled_with_the_best_tasks_and_no_more",
    ),
    Mutant(
        "pools: a place that runs counts as free",
        RULES,
        "    return spawn.state == RUNNING or (spawn.state == STARTING and now < spawn.offer_until)",
        "    return spawn.state == STARTING and now < spawn.offer_until",
        "test_a_running_agent_keeps_its_place",
    ),
    Mutant(
        "pools: open offers are not counted as reserved",
        OFFERS,
        "    pending = pools.pending_funds(spawns, project.id, work.now)\n",
        "    pending: dict[tuple[str, str], int] = {}\n",
        "test_no_process_is_started_for_money_that_an_offer_will_reserve",
    ),
    Mutant(
        "pools: open offers do not count for the limit of claims",
        OFFERS,
        "    return held + offered >= most",
        "    return held >= most",
        "test_the_projects_limit_counts_offers",
    ),
    Mutant(
        "pools: no back-off",
        RULES,
        "    return pool.enabled and (pool.wait_until is None or pool.wait_until <= now)",
        "    return pool.enabled",
        "test_a_definite_failure_frees_the_task_at_once_and_the_pool_backs_off",
    ),
    Mutant(
        "pools: an answer is saved without the term",
        FLEET,
        "        ending = led.transact(\n",
        "        ending = self.engine.transact(\n",
        (TERM_OF_ANSWER, "test_a_found_process_needs_the_term"),
    ),
    Mutant(
        "pools: agents are started without the term",
        FLEET,
        "        endings, starts = led.transact((project,), decide)",
        "        endings, starts = self.engine.transact((project,), decide)",
        "test_a_deposed_leader_starts_nothing",
    ),
    Mutant(
        "pools: the process of a late answer lives on",
        UPKEEP,
        "        return Ending(row.spawner, handle) if row is not None else None",
        "        return None",
        "test_a_late_answer_of_a_spawn_that_is_over_ends_its_process",
    ),
    Mutant(
        "pools: a key outlives its spawn",
        ROWS,
        "    revoke_key(work, spawn)\n    _withdraw",
        "    _withdraw",
        (
            "test_a_spawn_has_a_key_for_its_agent_alone_that_ends_with_it",
            "test_the_key_of_a_lost_spawn_ends_with_it",
        ),
    ),
    Mutant(
        "pools: the key of a spawn is good for every agent",
        ROWS,
        "agent=spawn.agent, projects=(spawn.project,), digest",
        "projects=(spawn.project,), digest",
        "test_a_spawn_has_a_key_for_its_agent_alone_that_ends_with_it",
    ),
    Mutant(
        "pools: the claim of a dead process waits for its lease",
        ROWS,
        "    if is_gone:\n",
        "    if False:\n",
        "test_the_claim_of_a_process_that_has_ended_ends_at_once",
    ),
    Mutant(
        "pools: a terminated agent's process lives on",
        RULES,
        "    if facts.is_terminated and not facts.holds:\n",
        "    if False:\n",
        "test_a_terminated_agent_is_ended_through_its_spawner[False]",
    ),
    Mutant(
        "pools: a terminated agent's place is filled again",
        OFFERS,
        "(denied_by_cool_off(self) or denied_by_agent(self) or denied_by_limit(self))",
        "(denied_by_cool_off(self) or denied_by_limit(self))",
        "test_a_terminated_agent_is_ended_through_its_spawner[False]",
    ),
    Mutant(
        "pools: the offer of an agent that was not started stays",
        ROWS,
        "    _withdraw(work, spawn)\n",
        "",
        "test_a_definite_failure_frees_the_task_at_once_and_the_pool_backs_off",
    ),
    Mutant(
        "pools: a process that stops goes on starting agents",
        FLEET,
        "            return False  # a process that stops starts nothing more",
        "            pass",
        "test_a_process_that_stops_starts_nothing_more",
    ),
    Mutant(
        "pools: nobody asks for a process whose handle was not saved",
        FLEET,
        "        self._search(spawns, now)\n",
        "",
        "test_a_process_whose_handle_was_not_saved_is_found",
    ),
    Mutant(
        "pools: a handle is searched for while its answer is being saved",
        RULES,
        "now >= spawn.started_at + UNANSWERED",
        "now >= spawn.started_at",
        "test_a_process_whose_handle_was_not_saved_is_found",
    ),
    Mutant(
        "pools: a call under way is searched for",
        FLEET,
        "(spawn.project, spawn.id) in self._asked or spawn.spawner",
        "spawn.spawner",
        "test_a_call_that_is_under_way_is_not_searched_for",
    ),
    Mutant(
        "pools: the files of another machine prove that there is no process",
        FLEET,
        "return bool(spawn.home) and spawn.home == self._calls.home(spawn.spawner)",
        "return True",
        "test_the_spawner_of_another_place_is_not_asked[another machine]",
    ),
    Mutant(
        "pools: an early answer proves that there is no process",
        FLEET,
        "pools.is_absent(spawn, search.asked_at)",
        "pools.is_absent(spawn, self._searched[name] + POLL)",
        "test_an_early_answer_does_not_prove_that_there_is_no_process",
    ),
    Mutant(
        "pools: no process at once means that none will come",
        RULES,
        "asked_at >= spawn.started_at + limits.SPAWN_ABSENT",
        "asked_at >= spawn.started_at",
        "test_a_spawn_without_a_process_ends_with_its_claims",
    ),
    Mutant(
        "pools: a spawner that does not know proves that there is no process",
        FLEET,
        "elif spawn.id in found and ",
        "elif ",
        "test_a_spawner_that_does_not_know_leaves_the_claim_to_its_lease",
    ),
    Mutant(
        "pools: the claims of a spawn without a process wait for their lease",
        UPKEEP,
        " or facts.is_absent\n",
        "\n",
        "test_a_spawn_without_a_process_ends_with_its_claims",
    ),
    Mutant(
        "pools: one thread starts, asks and ends",
        "engine/fleet/spawner_threads.py",
        "        pool = self._pools.get((name, purpose))\n",
        '        purpose = "all"\n        pool = self._pools.get((name, purpose))\n',
        "tests/engine/test_fleet.py::test_a_terminated_agent_is_ended_while_its_spawner_hangs_in_other_calls",
    ),
    Mutant(
        "pools: offers to other places pass a throttle",
        OFFERS,
        "if any(row.throttle and (row.project, row.id) in pending for row in rows):",
        "if False:",
        "test_the_offers_of_a_throttled_budget_are_spaced_out_over_all_places",
    ),
)
