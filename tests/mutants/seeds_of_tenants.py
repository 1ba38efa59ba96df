"""Seeded bugs in tenants: who is let in, who grants what, and limits that count over projects."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST = "tests/server/auth/test_tenants.py"
APART = "tests/server/test_tenants_apart.py"

RULES = "core/tenants.py"
LIMITS = "core/tenant_limits.py"
KEYS = "core/keys.py"
GATE = "server/auth/authenticator.py"
MEMBERS = "engine/verbs/members.py"
ROWS = "engine/verbs/tenants.py"
SHARES = "engine/verbs/claim_shares.py"

TENANTS = (
    # --- who is let in
    Mutant(
        "tenant: a key of another tenant opens",
        GATE,
        "            if given.tenant != self.tenant:\n                raise _not_accepted()\n",
        "",
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
        '        if wanted not in (None, self.tenant):\n            raise tenants.unknown(wanted or "")\n',
        "",
        f"{TEST}::test_another_tenant_is_unknown_to_a_known_caller_whether_it_exists_or_not[path]",
    ),
    Mutant(
        "tenant: a name is refused before the caller is known",
        GATE,
        '        check_host(source, self.policy)\n        text = source.header(b"authorization")\n',
        "        check_host(source, self.policy)\n        self._check_tenant(source, named)\n"
        '        text = source.header(b"authorization")\n',
        f"{TEST}::test_who_is_not_signed_in_learns_nothing_by_naming_a_tenant",
    ),
    Mutant(
        "tenant: closed ones are open",
        GATE,
        "        if not tenants.is_open(row):\n            raise tenants.unknown(self.tenant)\n",
        "",
        f"{TEST}::test_a_closed_tenant_is_unknown_to_its_own",
    ),
    Mutant(
        "tenant: a session is signed in below another tenant's path",
        GATE,
        "        key, _ = await self._resolved(lambda: self._by_key(source, text))\n"
        "        await self._resolved(lambda: self._check_tenant(source, named))\n",
        "        key, _ = await self._resolved(lambda: self._by_key(source, text))\n",
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
        '    if tenant != HOME:\n        raise NotAllowed(f"{verb}: only',
        '    if False:\n        raise NotAllowed(f"{verb}: only',
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
        "level_of(wanted) > level_of(ADMIN_GRANTS)",
        "False",
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
        '    tenants.check_key_of(work.get(Member, "", cmd.user or cmd.name), cmd.role, cmd.projects)\n',
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
        "    free = most - taken - max(room, held)\n",
        "    free = most - max(room, held)\n",
        on("memory", "test_the_101st_claim_of_a_default_tenant_is_refused_over_two_projects"),
    ),
    Mutant(
        "limit: shares change without the tenant's lock",
        SHARES,
        "    work.need_locks(STORE, lasting=False)\n    others",
        "    others",
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
        "        if (denial := denied_by_limit(work, claimant)) is not None:\n            break\n",
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
    Mutant(
        "limit: sessions are counted in one project",
        "engine/verbs/agents.py",
        "    if sessions_of_all(work) >= most:\n",
        "    if active_sessions(work, project.id) >= most:\n",
        on("memory", "test_sessions_count_over_all_projects"),
    ),
    Mutant(
        "limit: changes are never read",
        "engine/runtime/tenancy.py",
        "        if row is not None:\n            self._values = of_tenant(row)\n",
        "",
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
        '    tenants.check_home(work.context.tenant, verb)\n    row = work.get(Tenant, "", name)',
        '    row = work.get(Tenant, "", name)',
        on("memory", "test_the_owner_of_another_tenant_manages_no_tenants"),
    ),
)
