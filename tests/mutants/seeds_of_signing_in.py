"""Seeded bugs in keys, in how far a principal reaches, and in the server's gate."""

from __future__ import annotations

from tests.mutants.mutant import HOT, Mutant, on

TEST_COOKIES = "tests/server/auth/test_cookies.py"
TEST_KEYS = "tests/server/auth/test_keys.py"
TEST_LOOPBACK = "tests/server/auth/test_loopback.py"
TEST_POLICY = "tests/server/auth/test_policy.py"
TEST_TOKENS = "tests/server/auth/test_tokens.py"

ROLES = "core/roles.py"
KEYS = "core/keys.py"
FUNCTIONS = "stores/postgres/migrations/0011_row_security.sql"
HANDLING = "engine/verbs/api_keys.py"

SIGNING_IN = (
    # --- keys
    Mutant(
        "key: any secret opens",
        KEYS,
        "found |= hmac.compare_digest(presented, digest)",
        "found = True",
        "test_another_secret_opens_nothing",
    ),
    Mutant(
        "key: revoked ones open",
        KEYS,
        "key.revoked_at is None and ",
        "",
        "test_a_revoked_key_is_void_for_ever",
    ),
    Mutant(
        "key: no end of time",
        KEYS,
        "now < key.expires_at",
        "True",
        "test_a_key_ends_when_its_time_is_over",
    ),
    Mutant(
        "key: grace without end",
        KEYS,
        "and now < key.previous_until",
        "",
        "test_a_rotated_key_takes_the_old_secret_until_the_grace_is_over",
    ),
    Mutant(
        "key: grace outlives the secret",
        HANDLING,
        "until = min(until, before.expires_at)",
        "pass",
        "test_no_grace_outlives_the_secret_itself",
    ),
    Mutant(
        "key: an admin makes owners",
        KEYS,
        "if level_of(wanted) > level_of(role):",
        "if False:",
        "test_an_admin_touches_no_owners_key",
    ),
    Mutant(
        "key: digest in the log",
        "core/records.py",
        'frozenset({"digest", "previous", "used_at"})',
        'frozenset({"used_at"})',
        "test_a_key_is_shown_once_and_kept_as_a_digest",
    ),
    Mutant(
        "key: a repeat cuts the grace",
        HANDLING,
        'return _renewed(work, again, "UPDATED")',
        "pass",
        "test_a_rotation_that_is_repeated_does_not_cut_the_grace_short",
    ),
    Mutant(
        "key: anothers can be revoked",
        HANDLING,
        "if keys.is_within(who.projects, k.projects)]",
        "]",
        "test_an_admin_of_one_project_hands_out_no_more_than_that",
    ),
    # --- reach
    Mutant(
        "reach: every project",
        ROLES,
        "if principal.projects and project not in principal.projects:",
        "if False:",
        "test_another_project_looks_unknown_to_every_command[viewer]",
    ),
    Mutant(
        "reach: the store's coordinator for one project's key",
        ROLES,
        "if is_of_store:\n            check",
        "if False:\n            check",
        "test_one_projects_admin_does_not_coordinate_the_store",
    ),
    Mutant(
        "reach: an agent speaks for others",
        ROLES,
        "named != principal.agent:",
        "False:",
        "test_an_agent_speaks_for_no_other[proven]",
    ),
    Mutant(
        "reach: others' sessions and claims",
        ROLES,
        "agent != principal.agent:\n        raise",
        "False:\n        raise",
        "test_an_agents_key_takes_no_others_session",
    ),
    Mutant(
        "reach: the fast path does not ask whose session it is",
        HOT,
        " AND t.agent = s.agent AND t.ended_at IS NULL",
        " AND t.ended_at IS NULL",
        on("postgres", "test_a_claim_in_anothers_session_is_refused_whether_or_not_there_is_work[1]"),
    ),
    Mutant(
        "reach: others' mail",
        ROLES,
        "principal.agent != query.agent:",
        "False:",
        "test_an_agent_reads_no_others_mail",
    ),
    Mutant(
        "reach: mail for viewers",
        "core/queries.py",
        'Declaration("tasks", "agent", "GET", PROJECT + "/agents/{agent}/inbox")',
        'Declaration("tasks", "viewer", "GET", PROJECT + "/agents/{agent}/inbox")',
        "test_a_viewer_reads_neither_mail_nor_checkpoints",
    ),
    Mutant(
        "reach: checkpoints for viewers",
        ROLES,
        'level_of(principal.role) > level_of("viewer")',
        "True",
        "test_a_viewer_reads_neither_mail_nor_checkpoints",
    ),
    Mutant(
        "reach: all projects are listed",
        "engine/duties/sweep.py",
        "if not only or p.id in only",
        "",
        "test_of_the_projects_only_its_own_are_listed",
    ),
    Mutant(
        "reach: the fast path goes by the receipt alone",
        HOT,
        "AND (f.only_of IS NULL OR t.agent = f.only_of) AND",
        "AND",
        "tests/stores/test_postgres_guards.py::test_a_holder_is_asked_for_all_that_its_receipt_says[narrow-agent]",
    ),
    Mutant(
        "reach: one principal's leave is another's",
        "engine/runtime/fast_path/command_run.py",
        "if principal.projects or principal.is_proven:",
        "if False:",
        on("postgres", "test_the_short_way_of_claims_asks_for_the_project_of_each"),
    ),
    # --- the gate
    Mutant(
        "gate: any Host",
        "server/auth/request_source.py",
        "is_loopback_name(name) or name in policy.hosts",
        "True",
        f"{TEST_LOOPBACK}::test_where_all_sign_in_any_name_will_do_unless_names_are_listed",
    ),
    Mutant(
        "gate: any Origin",
        "server/auth/request_source.py",
        "if origin is not None and not _is_ours(origin, source):",
        "if False:",
        f"{TEST_LOOPBACK}::test_a_page_of_another_origin_gets_nowhere",
    ),
    Mutant(
        "gate: pages of other sites",
        "server/auth/request_source.py",
        'site in (b"cross-site", b"same-site")',
        "False",
        f"{TEST_LOOPBACK}::test_a_page_of_another_site_gets_nowhere_without_an_origin_too[cross-site]",
    ),
    Mutant(
        "gate: cookies without an Origin",
        "server/auth/request_source.py",
        "if is_by_cookie and not source.is_reading",
        "if False",
        f"{TEST_COOKIES}::test_a_write_by_cookie_says_whose_page_it_is[POST]",
    ),
    Mutant(
        "gate: any proxy is believed",
        "server/auth/request_source.py",
        "or not is_in(peer, proxies)",
        "",
        "tests/server/auth/test_proxies.py::test_the_visitor_is_the_last_that_no_proxy_of_ours_is",
    ),
    Mutant(
        "gate: a proxied visit is local",
        "server/auth/request_source.py",
        " and not is_proxied)",
        ")",
        f"{TEST_LOOPBACK}::test_what_a_proxy_passed_on_is_not_local[x_forwarded_for]",
    ),
    Mutant(
        "gate: keys over plain HTTP",
        "server/auth/request_source.py",
        "if not source.is_private:",
        "if False:",
        f"{TEST_TOKENS}::test_a_token_over_plain_http_is_refused_off_loopback",
    ),
    Mutant(
        "gate: a header raises the role",
        ROLES,
        "level_of(role) <= level_of(other)",
        "False",
        f"{TEST_KEYS}::test_a_header_only_lowers_the_role[admin]",
    ),
    Mutant(
        "gate: the header's agent wins",
        "server/auth/principals.py",
        "agent if agent is not None else named",
        "named or agent",
        f"{TEST_TOKENS}::test_a_token_says_who_it_is",
    ),
    Mutant(
        "gate: guessers go on",
        "server/auth/authenticator.py",
        "        self._failures.take(name)\n",
        "",
        f"{TEST_TOKENS}::test_a_guesser_of_tokens_is_stopped",
    ),
    Mutant(
        "gate: any algorithm",
        "server/auth/tokens.py",
        "BY_SECRET if self._keys is None else",
        "jwt.algorithms.get_default_algorithms() or",
        f"{TEST_TOKENS}::test_only_the_algorithm_that_is_set_up_is_good",
    ),
    Mutant(
        "gate: tokens for others",
        "server/auth/tokens.py",
        "audience=settings.audience,",
        'audience=["tenure", "others"],',
        f"{TEST_TOKENS}::test_a_token_that_does_not_say_it_right_is_refused",
    ),
    Mutant(
        "gate: an empty list is everywhere",
        "server/auth/tokens.py",
        "isinstance(projects, list) and projects and",
        "isinstance(projects, list) and",
        f"{TEST_TOKENS}::test_a_token_that_does_not_say_it_right_is_refused",
    ),
    Mutant(
        "gate: a changed key is kept",
        "server/auth/row_cache.py",
        "if forgotten != self._forgotten:",
        "if False:",
        f"{TEST_KEYS}::test_a_look_that_was_under_way_when_a_key_changed_is_not_kept",
    ),
    Mutant(
        "gate: every guess is queried",
        "server/auth/row_cache.py",
        "self._unknown[id] = at",
        "pass",
        f"{TEST_KEYS}::test_an_unknown_key_costs_one_look",
    ),
    Mutant(
        "gate: a session has no end",
        "core/keys.py",
        "and now < session.expires_at ",
        "",
        f"{TEST_COOKIES}::test_a_cookie_ends_with_its_key_or_its_time[old]",
    ),
    Mutant(
        "gate: open to all who bind elsewhere",
        "server/auth/policy.py",
        "is_loopback_name(self.host) and not self.proxies",
        "not self.proxies",
        f"{TEST_POLICY}::test_elsewhere_somebody_must_be_able_to_sign_in[0.0.0.0]",
    ),
    Mutant(
        "gate: listens without keys",
        "server/auth/policy.py",
        "if not has_keys and policy.jwt is None:",
        "if False:",
        f"{TEST_POLICY}::test_elsewhere_somebody_must_be_able_to_sign_in[0.0.0.0]",
    ),
    Mutant(
        "gate: a repository says who gets in",
        "server/auth/policy.py",
        "if settings.is_shared(key):",
        "if False:",
        f"{TEST_POLICY}::test_a_repositorys_own_file_does_not_say_who_gets_in",
    ),
)
