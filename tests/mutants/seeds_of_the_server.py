"""Seeded bugs in what the server lets in, keeps open and repeats: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

GATE = ("tests/server/auth",)
ROOM = ("tests/server/test_waiting_room.py",)
STEP = ("tests/server/test_doorstep.py",)
HOOKS = ("tests/server/test_deliveries.py",)
LOOPBACK = ("tests/server/test_on_loopback.py",)
CLIENT = ("tests/client/test_remote.py",)
HTTP = "client/transports/http.py"
JSON = ("tests/core/test_decoding.py",)
SHORT_WAY = ("tests/engine/test_on_postgres.py",)
ROLES = "core/roles.py"
SESSIONS = "core/web_sessions.py"
THE_GATE = "server/auth/gate.py"

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
    Mutant("token: any token", THE_GATE, "hmac.compare_digest(text, self._token)", "True", GATE),
    Mutant("token: from anywhere", THE_GATE, "if not is_ours or not self._is_local(who):", "if not is_ours:", GATE),
    Mutant(
        "token: not needed",
        THE_GATE,
        "elif self._is_local(who) and self._token is None:",
        "elif self._is_local(who):",
        GATE,
    ),
    Mutant(
        "token: readable by all",
        "client/local_token.py",
        "os.O_NOFOLLOW, 0o600)",
        "os.O_NOFOLLOW, 0o644)",
        LOOPBACK,
    ),
    Mutant("token: anybody's file", "client/local_token.py", "& 0o077:", "& 0:", LOOPBACK),
    # --- the client's retries
    Mutant(
        "client: a lost write is reported as not done",
        HTTP,
        "        self._is_unknown |= trouble.is_sent and not self._request.is_read\n",
        "",
        CLIENT,
    ),
    Mutant(
        "client: each try has a request id of its own",
        HTTP,
        "signed = request._replace(headers=request.headers | self._credentials.headers)",
        "signed = request._replace(headers=request.headers | self._credentials.headers"
        ' | {"Idempotency-Key": self._chance.token(8).hex()})',
        CLIENT,
    ),
    Mutant("client: a key over plain HTTP", HTTP, "not is_secure and not address.is_loopback", "False", CLIENT),
    # --- ends of credentials
    Mutant(
        "end: who waits is not asked again",
        "server/waiting_room.py",
        "if not await self._is_still_good(principal):",
        "if False:",
        ROOM,
    ),
    Mutant(
        "end: nobody is woken",
        "server/waiting_room.py",
        "_resolve(future, True)\n\n    def let_in",
        "pass\n\n    def let_in",
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
        "if not await service.is_still_good(principal):",
        "if False:",
        ("tests/server/test_feed.py",),
    ),
    Mutant("end: a JWT's stream has none", THE_GATE, "return time.time() < float(shown) + LEEWAY", "return True", GATE),
    Mutant(
        "end: an old secret goes on",
        THE_GATE,
        "return any(digest.hex()",
        "return keys.is_live(key, now) or any(digest.hex()",
        GATE,
    ),
    Mutant("end: tokens for years", "server/auth/tokens.py", "> longest + LEEWAY", "> 1e12", GATE),
    # --- lockouts
    Mutant(
        "lockout: by address alone",
        THE_GATE,
        'f"{caller_at(who.address)} {credential}"',
        "caller_at(who.address)",
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
        "server/answers.py",
        "max(RETRY_AFTER, ceil(",
        "max(0, int(",
        ("tests/server/test_limits.py",),
    ),
    Mutant(
        "lockout: texts tell a key's state",
        THE_GATE,
        "                raise _not_accepted() from None\n",
        "                raise\n",
        GATE,
    ),
    # --- the doorstep
    Mutant(
        "doorstep: endless headers", "server/doorstep.py", "if self._unseen > LARGEST_HEAD and", "if False and", STEP
    ),
    Mutant("doorstep: many headers", "server/doorstep.py", "if self._head > LARGEST_HEAD:", "if False:", STEP),
    Mutant("doorstep: any number from an address", "server/doorstep.py", "next(iter(mine)).send_away()", "pass", STEP),
    Mutant(
        "doorstep: all the time in the world",
        "server/doorstep.py",
        "self.loop.call_later(TO_SEND, self.transport.abort)",
        "None",
        STEP,
    ),
    Mutant(
        "doorstep: those who are known are sent away",
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
