"""Seeded bugs in tenants: who is let in, who grants what, and limits that count over projects."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST = "tests/server/auth/test_tenants.py"
APART = "tests/server/test_tenants_apart.py"
QUERIES = "tests/server/test_queries_apart.py"
WEBHOOKS = "tests/server/test_tenant_webhooks.py"
HANGING = "tests/server/test_hanging_instance.py::test_a_store_that_hangs_is_its_own_tenants_trouble_alone"
INSTANCES = "tests/server/test_tenant_instances.py"
SCHEMAS = "tests/server/test_tenant_schemas.py"
MEMORY = "tests/engine/test_on_memory.py::TestOnMemory"

RULES = "core/tenants.py"
ROUNDS = "engine/duties/tenant_rounds.py"
LIMITS = "core/tenant_limits.py"
KEYS = "core/keys.py"
GATE = "server/auth/authenticator.py"
MEMBERS = "engine/verbs/members.py"
ROWS = "engine/verbs/tenants.py"
SHARES = "engine/verbs/claim_shares.py"

TENANTS = (
    # --- its end
    Mutant(
        "tenant: who was in it goes on in a closed one",
        "engine/runtime/tenancy.py",
        "        if not self._is_open:\n            raise",
        "        if False:\n            raise",
        f"{MEMORY}::test_who_was_in_a_tenant_when_it_was_closed_does_nothing_more_in_it",
    ),
    Mutant(
        "tenant: streams and long polls of a closed one stay open",
        "server/assembly.py",
        'if event.kind in ("tenant.closed", "tenant.moved"):',
        "if False:",
        "tests/server/test_many_tenants.py::test_whoever_waits_or_follows_in_a_tenant_ends_with_it[one process]",
    ),
    # --- what callers are told
    Mutant(
        "tenant: a session that nobody has is listed",
        GATE,
        'return self._key_of_session(self._rows(one.tenant), session_id(one.token) or "") is not None',
        "return True",
        f"{TEST}::test_a_caller_is_told_of_the_tenants_it_may_open_and_of_no_other",
    ),
    Mutant(
        "tenant: everybody reads the events of members and keys",
        "core/roles.py",
        "    return ADMIN_KINDS if level_of(principal.role) >= level_of(QUERIES_NEED[q.Members]) else STORE_KINDS\n",
        "    return ADMIN_KINDS\n",
        "test_who_may_see_members_reads_their_events_and_nobody_else_does",
    ),
    Mutant(
        "tenant: a change is answered with an error where the tenant's row was read long ago",
        GATE,
        "        rows = self._kept(principal.tenant or HOME)\n        if rows is not None and isinstance(",
        "        rows = self._rows(principal.tenant or HOME)\n        if rows is not None and isinstance(",
        f"{TEST}::test_a_change_in_a_tenant_whose_row_was_read_long_ago_is_heard[member]",
    ),
    # --- who is let in
    Mutant(
        "tenant: a key of another tenant opens",
        GATE,
        "                key, now = (rows or self._home).keys.find(given.id)",
        "                key, now = next(iter([*self._tenants.values(), self._home])).keys.find(given.id)",
        f"{TEST}::test_a_key_of_equal_id_and_secret_opens_its_own_tenant_alone",
    ),
    Mutant(
        "tenant: keys from before tenants open every tenant",
        KEYS,
        "return Given(match[1] or HOME,",
        "return Given(match[1] or 'acme',",
        f"{TEST}::test_a_key_from_before_tenants_is_the_home_tenants",
    ),
    Mutant(
        "tenant: the header is not compared",
        "server/auth/request_source.py",
        '    by_header = source.header(b"tenure-tenant")\n',
        "    by_header = None\n",
        f"{TEST}::test_another_tenant_is_unknown_to_a_known_caller_whether_it_exists_or_not[header]",
    ),
    Mutant(
        "tenant: another tenant in the path or header is ignored",
        GATE,
        '        if wanted not in (None, tenant):\n            raise tenants.unknown(wanted or "")\n',
        "",
        f"{TEST}::test_another_tenant_is_unknown_to_a_known_caller_whether_it_exists_or_not[path]",
    ),
    Mutant(
        "tenant: a name is refused before the caller is known",
        GATE,
        '        check_host(source, self.policy)\n        text = source.header(b"authorization")\n',
        "        check_host(source, self.policy)\n        self._open_row(wanted or HOME)\n"
        '        text = source.header(b"authorization")\n',
        f"{TEST}::test_who_is_not_signed_in_learns_nothing_by_naming_a_tenant",
    ),
    Mutant(
        "tenant: closed ones are open",
        GATE,
        "        if row is None or not tenants.is_open(row):\n            raise tenants.unknown(name)\n",
        "        if row is None:\n            raise tenants.unknown(name)\n",
        f"{TEST}::test_a_key_of_a_closed_tenant_is_refused_like_one_of_a_tenant_that_does_not_exist",
    ),
    Mutant(
        "tenant: a session is signed in below another tenant's path",
        GATE,
        "        tenant, key = await self._resolved(lambda: self._by_key(source, text))\n"
        "        await self._resolved(lambda: self._check_wanted(tenant, wanted))\n",
        "        tenant, key = await self._resolved(lambda: self._by_key(source, text))\n",
        f"{TEST}::test_a_session_is_of_its_tenant_alone",
    ),
    Mutant(
        "tenant: a token is good where it names nothing",
        RULES,
        "        if not is_named:\n            raise unknown(tenant)\n        return Reach(role",
        "        return Reach(role",
        (
            f"{TEST}::test_a_token_is_good_in_the_tenants_that_it_names",
            f"{TEST}::test_a_token_that_names_no_tenant_is_good_for_members",
        ),
    ),
    Mutant(
        "tenant: who has left gets in by a token",
        RULES,
        "    if not is_in(member):\n        raise unknown(tenant)\n    where",
        "    where",
        f"{TEST}::test_a_removed_member_is_out_with_every_token[jwt0]",
    ),
    Mutant(
        "tenant: a membership does not bound the role of a token",
        RULES,
        "lower_of(role or member.role, member.role)",
        "role or member.role",
        f"{TEST}::test_a_membership_bounds_a_token_that_names_the_tenant",
    ),
    Mutant(
        "tenant: a membership does not bound the projects of a token",
        RULES,
        "        where = tuple(name for name in projects if name in member.projects)\n",
        "        where = projects\n",
        f"{TEST}::test_a_membership_bounds_a_token_that_names_the_tenant",
    ),
    Mutant(
        "tenant: a stream goes on after its member was lowered",
        GATE,
        "not tenants.covers(member, principal.role, principal.projects)",
        "False",
        f"{TEST}::test_a_removed_member_is_out_with_every_token[jwt1]",
    ),
    Mutant(
        "tenant: a secret is left in texts after the tenant's name",
        "core/redaction.py",
        "(?:[0-9a-z-]{1,40}_)?",
        "",
        "tests/core/test_redaction.py::test_the_secret_of_a_key_is_taken_out",
    ),
    Mutant(
        "tenant: the memory store keeps all in one",
        "stores/memory.py",
        "        return MemoryTransaction(self._of(tenant), write)\n",
        "        return MemoryTransaction(self, write)\n",
        (f"{APART}::test_no_route_tells_of_another_tenant[2]",),
    ),
    # --- who grants what
    Mutant(
        "tenant: an owner of any tenant manages tenants",
        RULES,
        '    if tenant != HOME:\n        raise NotAllowed(\n            f"only',
        '    if False:\n        raise NotAllowed(\n            f"only',
        on("memory", "test_the_owner_of_another_tenant_manages_no_tenants"),
    ),
    Mutant(
        "tenant: an admin manages tenants",
        "core/commands/tenant_commands.py",
        '    declaration: ClassVar = Declaration("tenants", "owner", "POST", "/tenants")\n',
        '    declaration: ClassVar = Declaration("tenants", "admin", "POST", "/tenants")\n',
        "test_only_an_owner_manages_or_lists_tenants[admin]",
    ),
    Mutant(
        "member: an admin gives every role",
        RULES,
        "    if level_of(wanted) > level_of(_highest_granted(role)):\n",
        "    if False:\n",
        "test_an_admin_neither_gives_nor_takes_a_role_above_member[admin]",
    ),
    Mutant(
        "member: an admin takes every role away",
        MEMBERS,
        "    tenants.check_grant(work.principal.role, work.principal.projects, row.role, row.projects)\n"
        "    return row\n",
        "    return row\n",
        "test_an_admin_neither_gives_nor_takes_a_role_above_member[admin]",
    ),
    Mutant(
        "member: the last owner may go",
        MEMBERS,
        "    if any(owner.id != row.id for owner in owners):\n",
        "    if owners:\n",
        "test_a_tenant_keeps_its_last_owner",
    ),
    Mutant(
        "member: keys outlive a membership",
        MEMBERS,
        "        revoked(work, key)\n",
        "        pass\n",
        "test_who_is_removed_loses_every_key",
    ),
    Mutant(
        "member: an invitation revokes any key",
        MEMBERS,
        "        keys.check_project(work.principal.role, work.principal.projects, key.role, key.projects)\n",
        "",
        "test_an_invitation_revokes_no_key_that_its_author_could_not",
    ),
    Mutant(
        "member: a key may reach further than its member",
        "engine/verbs/api_keys.py",
        "    tenants.check_key_of(member, cmd.role, cmd.projects)\n",
        "",
        "test_a_key_reaches_no_further_than_its_member",
    ),
    Mutant(
        "member: members are managed with a key for some projects",
        "core/roles.py",
        "OF_ALL_PROJECTS = (*_RELAYS, *_TENANTS, *_MEMBERS)",
        "OF_ALL_PROJECTS = (*_RELAYS, *_TENANTS)",
        "test_an_admin_of_some_projects_manages_no_members",
    ),
    # --- limits
    Mutant(
        "limit: a tenant's claims are counted in one project",
        SHARES,
        "    return _Shares(most - taken - own, unused, live)\n",
        "    return _Shares(most - own, unused, live)\n",
        on("memory", "test_the_101st_claim_of_a_default_tenant_is_refused_over_two_projects"),
    ),
    Mutant(
        "limit: shares change without the tenant's lock",
        SHARES,
        "    work.need_locks(STORE, lasting=False)\n    found",
        "    found",
        on("memory", "test_a_share_changes_only_under_the_locks_that_it_needs"),
    ),
    Mutant(
        "limit: a share is taken from a project without its lock",
        SHARES,
        "        work.need_locks(STORE, share.project, lasting=False)",
        "        work.need_locks(STORE, lasting=False)",
        on("memory", "test_a_share_changes_only_under_the_locks_that_it_needs"),
    ),
    Mutant(
        "limit: unused shares stay where they are",
        SHARES,
        "        free += _taken_back(",
        "        free += 0 * _taken_back(",
        on("memory", "test_the_101st_claim_of_a_default_tenant_is_refused_over_two_projects"),
    ),
    Mutant(
        "limit: a share of a former limit counts",
        SHARES,
        "own is not None and own.whole == most",
        "own is not None",
        on("memory", "test_a_lowered_limit_counts_what_is_held_and_a_raised_one_applies_soon"),
    ),
    Mutant(
        "limit: a batch of claims goes past the tenant's limit",
        "engine/verbs/claim.py",
        "        if (denial := denied_by_limit(claimant)) is not None:\n            break\n",
        "",
        on("memory", "test_a_batch_of_claims_ends_at_the_limit"),
    ),
    Mutant(
        "limit: a project raises the limits of its tenant",
        LIMITS,
        "max(one, other) if name == _LOWEST else min(one, other)",
        "min(one, other) if name == _LOWEST else max(one, other)",
        on("memory", "test_a_project_lowers_a_limit_and_never_raises_it"),
    ),
    # --- one server and one leader for all
    Mutant(
        "tenant: the engine serves a request of another tenant",
        "core/roles.py",
        "    if principal.tenant is not None and principal.tenant != tenant:\n",
        "    if False:\n",
        on("memory", "test_an_engine_refuses_a_request_that_signed_in_to_another_tenant"),
    ),
    Mutant(
        "tenant: a leader of an earlier term takes a tenant back",
        "core/team.py",
        "        if leader.store_term > store_term:\n            return None\n",
        "",
        on("memory", "test_a_leader_of_an_earlier_term_never_takes_a_tenant_back"),
    ),
    Mutant(
        "tenant: the next leader waits for the lease in a tenant",
        "core/team.py",
        "            leader = replace(leader, until=min(leader.until, now))\n",
        "            pass\n",
        on(
            "memory",
            "test_the_next_leader_takes_a_tenant_at_once_and_the_one_before_writes_nothing_more",
        ),
    ),
    Mutant(
        "tenant: its rate is each key's",
        GATE,
        "            self._of_tenants.take(tenant, 1",
        "            self._of_tenants.take(principal.key or '', 1",
        f"{TEST}::test_the_rate_of_a_tenant_is_of_all_its_keys_and_of_no_other_tenant",
    ),
    Mutant(
        "tenant: a metrics page has the series of all tenants",
        "server/metrics_page.py",
        "        elif label in _LABELS.findall(line):\n",
        "        else:\n",
        "tests/server/observability/test_metrics_page.py::test_a_tenants_page_has_its_own_series_alone",
    ),
    Mutant(
        "tenant: a log has the notes of other tenants",
        "engine/reads/coordinator_status.py",
        " and note.tenant == engine.tenant\n",
        "\n",
        on("memory", "test_the_log_of_a_tenant_has_its_own_notes_alone"),
    ),
    Mutant(
        "tenant: batches mix tenants",
        "engine/runtime/batcher.py",
        "    def append(self, tenant: str, caller: Hashable) -> None:\n",
        "    def append(self, tenant: str, caller: Hashable) -> None:\n        tenant = ''\n",
        "tests/engine/test_gathering.py::test_a_batch_is_of_one_tenant_and_tenants_take_turns",
    ),
    Mutant(
        "limit: sessions are counted in one project",
        "engine/verbs/agents.py",
        "sessions_of_all(work) < most:\n",
        "active_sessions(work, project.id) < most:\n",
        on("memory", "test_sessions_count_over_all_projects"),
    ),
    Mutant(
        "limit: changes are never read",
        "engine/runtime/tenancy.py",
        "self._values, self._is_open = of_tenant(row), tenants.is_open(row)",
        "self._is_open = tenants.is_open(row)",
        on("memory", "test_a_lowered_limit_counts_what_is_held_and_a_raised_one_applies_soon"),
    ),
    Mutant(
        "limit: the fast path passes the limits of a tenant",
        "engine/runtime/engine.py",
        "context.fast_path and context.limits is None and FAST_PATH",
        "context.fast_path and FAST_PATH",
        on("postgres", "test_the_101st_claim_of_a_default_tenant_is_refused_over_two_projects"),
    ),
    Mutant(
        "limit: a tenant sets its own limits",
        ROWS,
        '    tenants.check_home(work.context.tenant)\n    row = work.get(Tenant, "", name)',
        '    row = work.get(Tenant, "", name)',
        on("memory", "test_the_owner_of_another_tenant_manages_no_tenants"),
    ),
    # --- tenants apart in each store: a statement or key without its tenant
    Mutant(
        "tenant: memory keeps all tenants in one place",
        "stores/memory.py",
        "return MemoryTransaction(self._of(tenant), write)",
        "return MemoryTransaction(self, write)",
        f"{QUERIES}::test_no_query_tells_of_another_tenant",
    ),
    Mutant(
        "tenant: a metrics page of one tenant shows all",
        "server/assembly.py",
        "self._scrapes.page(None if tenant == HOME else tenant)",
        "self._scrapes.page(None)",
        f"{QUERIES}::test_metrics_of_a_tenant_are_the_same_with_and_without_another[memory]",
    ),
    # --- tenants without work
    Mutant(
        "tenant: a new leader looks at every tenant at once",
        ROUNDS,
        "((changed if one.is_changed else RARELY) * fraction() if is_first else 0.0)",
        "0.0",
        f"{MEMORY}::test_a_tenant_without_work_is_not_asked",
    ),
    Mutant(
        "tenant: a new leader does not ask what is due",
        ROUNDS,
        "look_at = slow_at if one.at is None else min(slow_at, here + max(0, one.at - now) / 1e6)",
        "look_at = slow_at",
        f"{MEMORY}::test_a_new_leader_looks_at_what_changed_while_nobody_led",
    ),
    Mutant(
        "tenant: the due times of a new leader leave out schedules",
        "stores/tenants_due.py",
        "(*tasks, *schedules)",
        "(*tasks,)",
        "tests/stores/test_memory.py::TestMemory::test_tenants_with_something_for_a_leader_are_named_with_its_time",
    ),
    Mutant(
        "tenant: a read of its due times that was torn once counts as work",
        "stores/tenants_due.py",
        "range(TRIES)",
        "range(1)",
        "tests/stores/test_torn_reads.py::TestEveryReadIsTornOnce::test_a_tenant_without_work_is_not_asked",
    ),
    # --- webhooks
    Mutant(
        "tenant: one with its own store sends no webhooks",
        "server/assembly.py",
        "coordinator if self._leading is None else",
        "coordinator if self._leading is None or coordinator.engine.tenant != HOME else",
        f"{WEBHOOKS}::test_each_receiver_gets_the_events_of_its_own_tenant",
    ),
    Mutant(
        "tenant: one whose store was away is not asked again",
        "agents/tenant_parts.py",
        "        again: float | None = PAUSE  # after",
        "        again: float | None = None  # after",
        f"{WEBHOOKS}::test_a_tenant_is_asked_again_after_its_store_was_unavailable",
    ),
    # --- a store that hangs
    Mutant(
        "tenant: tools read a store that hangs in the event loop",
        "mcp/http.py",
        "await anyio.to_thread.run_sync(self._callers.find, asked, limiter=calls)",
        "self._callers.find(asked)",
        HANGING,
    ),
    Mutant(
        "tenant: tools that wait for a store that hangs keep the threads of all",
        "mcp/http.py",
        "        if tenant is None or not self._callers.is_apart(tenant):\n",
        "        if True:\n",
        HANGING,
    ),
    Mutant(
        "tenant: sign-ins in a store that hangs keep the threads of all",
        "server/auth/lookups.py",
        "else (self._apart, lookup.tenant)",
        "else (self._read_in_thread, lookup.tenant)",
        HANGING,
    ),
    Mutant(
        "tenant: one whose store is away takes the metrics of all",
        "server/metrics_page.py",
        "for one in others if one.store is not home.store}",
        "for one in others if False}",
        "tests/server/observability/test_metrics_page.py::test_a_tenant_whose_own_store_is_away_is_left_out",
    ),
    # --- the store of a new tenant
    Mutant(
        "tenant: one whose store cannot be opened is added",
        ROWS,
        "        evidence.check_store(work, cmd.store)",
        "        pass",
        f"{INSTANCES}::test_a_tenant_whose_store_cannot_be_opened_is_not_added",
    ),
    Mutant(
        "tenant: the preview of a new one makes tables in its store",
        "engine/runtime/engine.py",
        "replace(work.context, open_store=None)",
        "work.context",
        f"{INSTANCES}::test_the_store_of_a_new_tenant_is_opened_before_it_is_added_and_by_no_preview",
    ),
    # --- tenants in schemas
    Mutant(
        "tenant: one in a schema has its rows in the tables of all",
        "engine/runtime/tenancy.py",
        "return row.isolation != tenants.LOGICAL",
        "return row.isolation == tenants.INSTANCE",
        f"{SCHEMAS}::test_a_server_keeps_the_rows_of_each_tenant_where_it_says",
    ),
    Mutant(
        "tenant: the role may not use a schema that the owner made",
        "stores/postgres/schema.py",
        "if grants and owning is not connection:",
        "if grants and owning is connection:",
        f"{SCHEMAS}::test_under_policies_the_owner_makes_the_schema_and_the_role_uses_it",
    ),
)
