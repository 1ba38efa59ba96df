"""Seeded bugs in keys, in how far a principal reaches, and in the server's gate: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

GATE = ("tests/server/auth",)
SHORT_WAY = ("tests/engine/test_on_postgres.py",)
ROLES = "core/roles.py"
KEYS = "core/keys.py"
HANDLING = "engine/verbs/api_keys.py"

SIGNING_IN = (
    # --- keys
    Mutant("key: any secret opens", KEYS, "found |= hmac.compare_digest(presented, digest)", "found = True"),
    Mutant("key: revoked ones open", KEYS, "key.revoked_at is None and ", ""),
    Mutant("key: no end of time", KEYS, "now < key.expires_at", "True"),
    Mutant("key: grace without end", KEYS, "and now < key.previous_until", ""),
    Mutant("key: grace outlives the secret", HANDLING, "until = min(until, before.expires_at)", "pass"),
    Mutant("key: an admin makes owners", KEYS, "if level_of(wanted) > level_of(role):", "if False:"),
    Mutant(
        "key: digest in the log",
        "core/records.py",
        'frozenset({"digest", "previous", "used_at"})',
        'frozenset({"used_at"})',
    ),
    Mutant("key: a repeat cuts the grace", HANDLING, 'return _renewed(work, again, "UPDATED")', "pass"),
    Mutant("key: anothers can be revoked", HANDLING, "if keys.is_within(who.projects, k.projects)]", "]"),
    # --- reach
    Mutant("reach: every project", ROLES, "if principal.projects and project not in principal.projects:", "if False:"),
    Mutant(
        "reach: the store's coordinator for one project's key",
        ROLES,
        "if is_of_store:\n            check",
        "if False:\n            check",
    ),
    Mutant("reach: an agent speaks for others", ROLES, "getattr(command, field) != principal.agent:", "False:"),
    Mutant(
        "reach: others' sessions and claims", ROLES, "agent != principal.agent:\n        raise", "False:\n        raise"
    ),
    Mutant("reach: others' mail", ROLES, "principal.agent != query.agent:", "False:"),
    Mutant(
        "reach: mail for viewers",
        "core/queries.py",
        '"member", "GET", PROJECT + "/messages"',
        '"viewer", "GET", PROJECT + "/messages"',
    ),
    Mutant("reach: checkpoints for viewers", ROLES, 'level_of(principal.role) > level_of("viewer")', "True"),
    Mutant("reach: all projects are listed", "engine/duties/sweep.py", "if not only or p.id in only", ""),
    Mutant(
        "reach: the short way goes by the receipt alone",
        "engine/runtime/fast_path/held_claims.py",
        "    _check_holders(asking, done)\n",
        "",
        SHORT_WAY,
    ),
    Mutant(
        "reach: one principal's leave is another's",
        "engine/runtime/fast_path/command_run.py",
        "if principal.projects or principal.is_proven:",
        "if False:",
        SHORT_WAY,
    ),
    # --- the gate
    Mutant("gate: any Host", "server/auth/origins.py", "is_loopback_name(name) or name in policy.hosts", "True", GATE),
    Mutant(
        "gate: any Origin",
        "server/auth/origins.py",
        "if origin is not None and not _is_ours(origin, source):",
        "if False:",
        GATE,
    ),
    Mutant(
        "gate: pages of other sites", "server/auth/origins.py", 'site in (b"cross-site", b"same-site")', "False", GATE
    ),
    Mutant(
        "gate: cookies without an Origin",
        "server/auth/origins.py",
        "if is_by_cookie and not source.is_reading",
        "if False",
        GATE,
    ),
    Mutant("gate: any proxy is believed", "server/auth/request_source.py", "or not is_in(peer, proxies)", "", GATE),
    Mutant("gate: a proxied visit is local", "server/auth/request_source.py", " and not is_proxied)", ")", GATE),
    Mutant(
        "gate: keys over plain HTTP", "server/auth/authenticator.py", "if not source.is_private:", "if False:", GATE
    ),
    Mutant("gate: a header raises the role", ROLES, "level_of(role) <= level_of(other)", "False", GATE),
    Mutant(
        "gate: the header's agent wins",
        "server/auth/authenticator.py",
        "agent if agent is not None else named",
        "named or agent",
        GATE,
    ),
    Mutant(
        "gate: guessers go on", "server/auth/authenticator.py", "        self._failures.take(self._name)\n", "", GATE
    ),
    Mutant(
        "gate: any algorithm",
        "server/auth/tokens.py",
        "BY_SECRET if self._keys is None else",
        "jwt.algorithms.get_default_algorithms() or",
        GATE,
    ),
    Mutant(
        "gate: tokens for others",
        "server/auth/tokens.py",
        "audience=settings.audience,",
        'audience=["tenure", "others"],',
        GATE,
    ),
    Mutant(
        "gate: an empty list is everywhere",
        "server/auth/tokens.py",
        "isinstance(projects, list) and projects and",
        "isinstance(projects, list) and",
        GATE,
    ),
    Mutant(
        "gate: a changed key is kept", "server/auth/row_cache.py", "if forgotten != self._forgotten:", "if False:", GATE
    ),
    Mutant("gate: every guess is looked for", "server/auth/row_cache.py", "self._unknown[id] = at", "pass", GATE),
    Mutant("gate: a session has no end", "core/web_sessions.py", "and now < session.expires_at ", "", GATE),
    Mutant(
        "gate: open to all who bind elsewhere",
        "server/auth/policy.py",
        "is_loopback_name(self.host) and not self.proxies",
        "not self.proxies",
        GATE,
    ),
    Mutant(
        "gate: listens without keys",
        "server/auth/policy.py",
        "if not has_keys and policy.jwt is None:",
        "if False:",
        GATE,
    ),
    Mutant("gate: a repository says who gets in", "server/auth/policy.py", ".name == SHARED:", ".name == 'x':", GATE),
)
