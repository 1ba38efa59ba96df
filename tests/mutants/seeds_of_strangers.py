"""Seeded bugs in what strangers learn, in what one key takes from others, and in what a client takes of a server."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STRANGERS = "tests/server/test_strangers.py"
COSTLY = "tests/server/test_costly_requests.py"
SIGNED_IN = "tests/server/test_signed_in_connections.py"
ANSWERS = "tests/client/test_bounded_answers.py"
TOKENS_TEST = "tests/server/auth/test_tokens.py"
AWAY = f"{STRANGERS}::test_every_name_gets_the_same_answer_while_a_tenants_own_store_is_away"
HOME_AWAY = f"{STRANGERS}::test_every_name_gets_the_same_answer_while_the_home_store_is_away"
FIRST = f"{STRANGERS}::test_whoever_is_named_first_when_the_home_store_goes_away"
TOLD = f"{STRANGERS}::test_only_the_owner_of_the_deployment_is_told_what_a_store_says"
AUTHENTICATOR = "server/auth/authenticator.py"
DELIVERIES = "server/delivery_routes.py"
LIMITS = "server/connection_limits.py"
SHARES = "server/signed_in_connections.py"
BOUNDED = "client/transports/bounded.py"
TOKENS = "server/auth/tokens.py"

OF_STRANGERS = (
    Mutant(
        "told: every owner reads what a store says",
        "core/roles.py",
        'principal.role == "owner" and is_home and not principal.projects',
        'principal.role == "owner"',
        TOLD,
    ),
    Mutant(
        "told: a stranger reads the code of a store's trouble",
        "core/caller_errors.py",
        "who is not None or error.code in _TO_STRANGERS",
        "True",
        TOLD,
    ),
    Mutant(
        "told: errors go out as they are",
        "server/app.py",
        "shown = for_caller(error, request.principal if request.is_known else None)",
        "shown = error",
        HOME_AWAY,
    ),
    Mutant(
        "strangers: a tenant whose store is away is told apart by a key",
        AUTHENTICATOR,
        "                if self._opened_before(given):\n                    raise\n                rows = None\n",
        "                raise\n",
        AWAY,
    ),
    Mutant(
        "strangers: a tenant whose store is away is told apart by a cookie",
        AUTHENTICATOR,
        "if kept is None or kept.sessions.last(id) is None:",
        "if False:",
        AWAY,
    ),
    Mutant(
        "strangers: a tenant whose store is away is told apart by a token",
        AUTHENTICATOR,
        "if tenant in (claims.tenants or ()) or (",
        "if True or (",
        AWAY,
    ),
    Mutant(
        "strangers: a tenant whose store is away is told apart by a delivery",
        DELIVERIES,
        "            if self._authenticator.is_away(tenant):\n                return None\n",
        "",
        AWAY,
    ),
    Mutant(
        "strangers: a tenant with its own store is told apart while the home store is away",
        AUTHENTICATOR,
        "                self._check_home(self._home.keys, given.id)\n",
        "",
        FIRST,
    ),
    Mutant(
        "strangers: a delivery to a tenant with its own store is told apart while the home store is away",
        DELIVERIES,
        "            if service is None or is_far:\n",
        "            if service is None:\n",
        FIRST,
    ),
    Mutant(
        "strangers: a store that is away is asked by each",
        AUTHENTICATOR,
        "        if (away := self._outages.of(tenant)) is not None:\n",
        "        if (away := None) is not None:\n",
        f"{STRANGERS}::test_a_store_that_is_away_is_not_asked_for_each_stranger",
    ),
    Mutant(
        "strangers: who was known is a stranger while the store is away",
        AUTHENTICATOR,
        "return row is not None and keys.opens(row, given.secret, 0)",
        "return False",
        f"{STRANGERS}::test_who_was_known_in_a_tenant_is_told_that_its_store_is_away",
    ),
    Mutant(
        "strangers: any key is known while the store is away",
        AUTHENTICATOR,
        "return row is not None and keys.opens(row, given.secret, 0)",
        "return row is not None",
        f"{STRANGERS}::test_who_was_known_in_a_tenant_is_told_that_its_store_is_away",
    ),
    Mutant(
        "strangers: a closed tenant's key is told apart",
        AUTHENTICATOR,
        "        row = self._open_row(tenant)\n        assert row is not None  # only the home tenant has none\n",
        "        row = self._row(tenant)\n        if row is None:\n            raise tenants.unknown(tenant)\n",
        f"{STRANGERS}::test_a_closed_tenants_key_is_answered_like_an_unknown_one",
    ),
    Mutant(
        "host: two of them",
        "server/auth/request_source.py",
        "    if len(hosts) > 1:\n",
        "    if False:\n",
        f"{STRANGERS}::test_a_request_with_two_hosts_is_refused",
    ),
    Mutant(
        "coordinator: a tenant's admin learns the host",
        "engine/reads/coordinator_status.py",
        "    owns = owns_deployment(who)\n",
        "    owns = True\n",
        f"{STRANGERS}::test_the_host_of_the_server_is_told_to_the_owner_of_the_deployment_alone",
    ),
    Mutant(
        "token: a time that is a text",
        TOKENS,
        "return isinstance(value, (int, float)) and not",
        "return not",
        f"{TOKENS_TEST}::test_a_signed_token_of_any_form_is_accepted_or_refused_and_breaks_nothing",
    ),
    Mutant(
        "token: a subject that no store keeps",
        TOKENS,
        " or storable(subject, len(subject)) != subject",
        "",
        f"{TOKENS_TEST}::test_a_signed_token_of_any_form_is_accepted_or_refused_and_breaks_nothing",
    ),
    Mutant(
        "mail: of the system, by an agent",
        "core/roles.py",
        'if type == "system":',
        "if False:",
        "test_an_agent_sends_no_mail_of_the_system_and_under_no_name_that_others_obey",
    ),
    Mutant(
        "mail: under a reserved name",
        "core/roles.py",
        "if sender.lower() in RESERVED and not principal.is_proven:",
        "if False:",
        "test_an_agent_sends_no_mail_of_the_system_and_under_no_name_that_others_obey",
    ),
    # --- what one key can take
    Mutant(
        "costly: no gate before queries",
        "engine/reads/query_table.py",
        "is_gated = query.is_costly and",
        "is_gated = False and",
        f"{COSTLY}::test_costly_requests_are_refused_while_others_run_and_all_others_are_answered",
    ),
    Mutant(
        "costly: no gate before plan files and previews",
        "server/service.py",
        "            with gate():\n                return function(*arguments)\n",
        "            return function(*arguments)\n",
        f"{COSTLY}::test_costly_requests_are_refused_while_others_run_and_all_others_are_answered",
    ),
    Mutant(
        "costly: in the threads of everybody",
        "server/service.py",
        "        return await self.threads.costly.run(behind)\n",
        "        return await self._readers.run(behind)\n",
        f"{COSTLY}::test_only_some_run_at_once_some_wait_and_another_key_is_answered_meanwhile",
    ),
    Mutant(
        "connections: no share of a key",
        SHARES,
        "        while len(self._who) >= self._most():\n",
        "        while False:\n",
        f"{SIGNED_IN}::test_a_key_may_have_all_connections_until_another_comes",
    ),
    Mutant(
        "connections: a busy one gives way to its own key",
        SHARES,
        "return idle if idle is not None or most == newcomer else next(iter(theirs))",
        "return idle if idle is not None else next(iter(theirs))",
        f"{SIGNED_IN}::test_a_key_with_the_most_that_is_busy_on_all_is_refused_and_loses_nothing",
    ),
    Mutant(
        "connections: keys of one tenant crowd out another",
        SHARES,
        "        tenant = _largest(tenants, newcomer.tenant)\n",
        "        tenant = min(tenants)\n",
        f"{SIGNED_IN}::test_many_keys_of_one_tenant_do_not_crowd_out_another_tenant",
    ),
    Mutant(
        "connections: those of the server are not counted",
        LIMITS,
        "            self.known.admit(self, who)\n",
        "            pass\n",
        f"{SIGNED_IN}::test_one_key_with_hundreds_of_connections_locks_nobody_out",
    ),
    Mutant(
        "connections: a body may trickle",
        LIMITS,
        "        if self._is_receiving and self._body_timer is None:\n",
        "        if False:\n",
        f"{SIGNED_IN}::test_a_body_that_trickles_ends_its_connection",
    ),
    Mutant(
        "connections: a steady body is ended",
        LIMITS,
        "self._received - self._received_before < limits.BODY_LEAST",
        "True",
        f"{SIGNED_IN}::test_a_body_that_comes_steadily_is_read_to_its_end",
    ),
    # --- what a client takes
    Mutant(
        "answer: of any size",
        BOUNDED,
        "        if self._size > LARGEST:\n",
        "        if False:\n",
        f"{ANSWERS}::test_an_answer_has_a_size",
    ),
    Mutant(
        "answer: packed",
        BOUNDED,
        'if (headers.get("Content-Encoding") or "identity").lower() != "identity":',
        "if False:",
        f"{ANSWERS}::test_an_answer_has_a_size",
    ),
    Mutant(
        "answer: without end",
        BOUNDED,
        "            if time.monotonic() >= self._until:\n",
        "            if False:\n",
        f"{ANSWERS}::test_an_answer_ends_in_time",
    ),
    Mutant(
        "download: more bytes than the artifact has",
        "artifacts/port.py",
        "        if self.left < 0:\n",
        "        if False:\n",
        "tests/client/test_bounded_answers.py::test_a_download_ends_with_the_size_of_its_artifact",
    ),
)
