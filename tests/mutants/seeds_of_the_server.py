"""Seeded bugs in what the server lets in, keeps open and repeats: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

GATE = ("tests/server/auth",)
ROOM = ("tests/server/test_waiting_claims.py",)
STEP = ("tests/server/test_connection_limits.py",)
HOOKS = ("tests/server/test_deliveries.py",)
LOOPBACK = ("tests/server/test_on_loopback.py",)
JSON = ("tests/core/test_decoding.py",)
SHORT_WAY = ("tests/engine/test_on_postgres.py",)
ROLES = "core/roles.py"
SESSIONS = "core/web_sessions.py"
AUTHENTICATOR = "server/auth/authenticator.py"

THE_SERVER = (
    # --- verdicts
    Mutant("verdict: by the author's agent", ROLES, "or principal.agent == claim.agent or", "or"),
    Mutant("verdict: by the author's session", ROLES, " or principal.session == claim.session", ""),
    Mutant("verdict: by the author's key", ROLES, "return same_key or", "return"),
    Mutant(
        "verdict: from an agent's session",
        ROLES,
        'if principal.address is None and principal.role == "agent":',
        "if False:",
    ),
    Mutant(
        "verdict: without the capability", ROLES, 'if role == "agent" and CHECKER not in', 'if "x" == CHECKER not in'
    ),
    Mutant(
        "verdict: an author judges what another took",
        "engine/checks/validation_verbs.py",
        '    roles.check_verdict(work.principal, current_claim(work, held.task), f"judge: {held.task.key}")\n',
        "",
    ),
    Mutant(
        "verdict: the best one may be the author's",
        "engine/checks/validation_verbs.py",
        "if roles.is_author(work.principal, current_claim(work, task)):",
        "if False:",
    ),
    Mutant(
        "verdict: signed with a name of one's own",
        "engine/checks/validation_verbs.py",
        "return work.principal.owner or work.principal.name",
        "return work.principal.name",
    ),
    Mutant("verdict: the claim forgets its key", "engine/verbs/claim.py", ", key=work.principal.key", ""),
    Mutant(
        "verdict: the short way forgets the key",
        "engine/runtime/fast_path/next_claims.py",
        "principal.address, principal.key,",
        "principal.address, None,",
        SHORT_WAY,
    ),
    # --- repeats
    Mutant("repeat: by anybody", "core/digests.py", " if owner else text", " if False else text"),
    Mutant(
        "repeat: what a header says is proven",
        "core/commands/command.py",
        "if self.is_proven else",
        "if self.agent else",
    ),
    # --- web sessions
    Mutant("session: outlives its key", SESSIONS, " and keys.is_live(key, now)", "", GATE),
    Mutant(
        "session: outlives a rotation",
        SESSIONS,
        "session.key == key.id and hmac.compare_digest(session.key_digest, key.digest)",
        "session.key == key.id",
        GATE,
    ),
    Mutant("session: the token itself is kept", SESSIONS, "hashlib.sha256(token.encode()).hexdigest()", "token", GATE),
    Mutant(
        "session: a logout ends nothing",
        "engine/verbs/web_sessions.py",
        "            work.remove(row)\n",
        "            pass\n",
        GATE,
    ),
    # --- the token of the start
    Mutant("token: any token", AUTHENTICATOR, "hmac.compare_digest(text, self._token)", "True", GATE),
    Mutant(
        "token: from anywhere", AUTHENTICATOR, "if not is_ours or not self._is_local(source):", "if not is_ours:", GATE
    ),
    Mutant(
        "token: not needed",
        AUTHENTICATOR,
        "elif self._is_local(source) and self._token is None:",
        "elif self._is_local(source):",
        GATE,
    ),
    Mutant(
        "token: readable by all",
        "client/ways/local_token.py",
        "os.O_NOFOLLOW, 0o600)",
        "os.O_NOFOLLOW, 0o644)",
        LOOPBACK,
    ),
    Mutant("token: anybody's file", "client/ways/local_token.py", "& 0o077:", "& 0:", LOOPBACK),
    # --- ends of credentials
    Mutant(
        "end: who waits is not asked again",
        "server/waiting_claims.py",
        "if not await self._is_still_valid(principal):",
        "if False:",
        ROOM,
    ),
    Mutant(
        "end: nobody is woken",
        "server/waiting_claims.py",
        "_resolve(future, True)\n\n    def start_round",
        "pass\n\n    def start_round",
        ROOM,
    ),
    Mutant(
        "end: streams do not look up",
        "server/feed.py",
        "        self._beats = True\n",
        "",
        ("tests/server/test_feed.py",),
    ),
    Mutant(
        "end: streams go on",
        "server/app.py",
        "if not await service.is_still_valid(principal):",
        "if False:",
        ("tests/server/test_feed.py",),
    ),
    Mutant(
        "end: a JWT's stream has none", AUTHENTICATOR, "return time.time() < float(shown) + LEEWAY", "return True", GATE
    ),
    Mutant(
        "end: an old secret goes on",
        AUTHENTICATOR,
        "return any(digest.hex()",
        "return keys.is_live(key, now) or any(digest.hex()",
        GATE,
    ),
    Mutant("end: tokens for years", "server/auth/tokens.py", "> longest + LEEWAY", "> 1e12", GATE),
    # --- lockouts
    Mutant(
        "lockout: by address alone",
        AUTHENTICATOR,
        'f"{caller_at(source.address)} {credential}"',
        "caller_at(source.address)",
        GATE,
    ),
    Mutant(
        "lockout: wrong ones keep genuine ones out",
        "server/delivery_routes.py",
        "        if not signatures.is_signed(headers):\n",
        '        if (wait := self._failures.wait_of(f"{caller} unsigned")) > 0:\n            raise limited(wait)\n'
        "        if not signatures.is_signed(headers):\n",
        HOOKS,
    ),
    Mutant(
        "lockout: retry at once",
        "server/responses.py",
        "max(RETRY_AFTER, ceil(",
        "max(0, int(",
        ("tests/server/test_rate_limits.py",),
    ),
    Mutant(
        "lockout: texts tell a key's state",
        AUTHENTICATOR,
        "                raise _not_accepted() from None\n",
        "                raise\n",
        GATE,
    ),
    # --- limits of connections
    Mutant(
        "connection: endless headers",
        "server/connection_limits.py",
        "if self._unseen > LARGEST_HEAD and",
        "if False and",
        STEP,
    ),
    Mutant(
        "connection: many headers", "server/connection_limits.py", "if self._head > LARGEST_HEAD:", "if False:", STEP
    ),
    Mutant(
        "connection: any number from an address",
        "server/connection_limits.py",
        "next(iter(mine)).close_now()",
        "pass",
        STEP,
    ),
    Mutant(
        "connection: all the time in the world",
        "server/connection_limits.py",
        "self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)",
        "None",
        STEP,
    ),
    Mutant(
        "connection: those who are known are sent away",
        "server/app.py",
        "            signed_in()  #",
        "            pass  #",
        STEP,
    ),
    # --- what is read
    Mutant("json: the last of two keys wins", "core/decoders.py", "if len(found) < len(pairs):", "if False:", JSON),
    Mutant(
        "json: endless integers",
        "core/decoders.py",
        "if len(digits) > LONGEST_INTEGER or not -(2**63) <= int(digits) < 2**64:",
        "if False:",
        JSON,
    ),
    Mutant(
        "scope: a body is read for another's project",
        "server/app.py",
        'check_scope(request.principal, request.fields["project"])\n        return',
        "pass\n        return",
        ("tests/server/api/test_rows.py",),
    ),
)
