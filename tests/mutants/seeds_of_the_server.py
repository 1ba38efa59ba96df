"""Seeded bugs in what the server lets in, keeps open and repeats."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST_DECODING = "tests/core/test_decoding.py"
TEST_COOKIES = "tests/server/auth/test_cookies.py"
TEST_KEYS = "tests/server/auth/test_keys.py"
TEST_LOCAL_TOKEN = "tests/server/auth/test_local_token.py"
TEST_TOKENS = "tests/server/auth/test_tokens.py"
TEST_DOORSTEP = "tests/server/test_connection_limits.py"
TEST_FEED = "tests/server/test_feed.py"
TEST_ON_LOOPBACK = "tests/server/test_on_loopback.py"
HTTP = "client/transports/http.py"
TEST_REMOTE = "tests/client/test_remote.py"
TEST_WAITING_ROOM = "tests/server/test_waiting_claims.py"

ROLES = "core/roles.py"
SESSIONS = "core/keys.py"
AUTHENTICATOR = "server/auth/authenticator.py"

THE_SERVER = (
    # --- verdicts
    Mutant(
        "verdict: by the author's agent",
        ROLES,
        "or principal.agent == claim.agent or",
        "or",
        "test_a_verdict_is_never_the_authors_by_agent_session_or_key",
    ),
    Mutant(
        "verdict: by the author's session",
        ROLES,
        " or principal.session == claim.session",
        "",
        "test_a_verdict_is_never_the_authors_by_agent_session_or_key",
    ),
    Mutant(
        "verdict: by the author's key",
        ROLES,
        "return same_key or",
        "return",
        "test_a_verdict_is_never_the_authors_by_agent_session_or_key",
    ),
    Mutant(
        "verdict: by an agent's key of the author's person",
        ROLES,
        "(is_agents and principal.user == claim.user) or",
        "",
        (
            "test_an_agents_key_judges_no_work_of_its_own_person",
            "test_a_check_that_another_took_is_not_judged_by_a_key_of_the_authors_person",
        ),
    ),
    Mutant(
        "verdict: by the author in the name of another",
        ROLES,
        "(is_agents and principal.user == claim.user) or principal.maker == claim.user",
        "(is_agents and principal.user == claim.user)",
        "test_nobody_judges_their_own_work_in_the_name_of_another",
    ),
    Mutant(
        "verdict: the maker of a key is not named",
        "core/commands/command.py",
        "return self.user if self.maker is None else",
        "return self.user if True else",
        "test_nobody_judges_their_own_work_in_the_name_of_another",
    ),
    Mutant(
        "review: another person is not asked for",
        "engine/checks/validation_verbs.py",
        "    if project.review_other_person:\n",
        "    if False:\n",
        "test_a_project_may_ask_for_the_review_of_another_person",
    ),
    Mutant(
        "review: by the maker of the claim's key",
        "engine/checks/validation_verbs.py",
        "people | (keys.people_of(key) if key else set())",
        "people",
        "test_a_project_may_ask_for_the_review_of_another_person",
    ),
    Mutant(
        "review: by the maker of the reviewer's key",
        ROLES,
        "not {principal.user, principal.maker}.isdisjoint(people)",
        "principal.user in people",
        "test_a_project_may_ask_for_the_review_of_another_person",
    ),
    Mutant(
        "review: by an agent where a person is asked for",
        ROLES,
        """    if principal.role == "agent":
        raise NotAllowed(f"{what}: this project""",
        """    if False:
        raise NotAllowed(f"{what}: this project""",
        "test_a_project_may_ask_for_the_review_of_another_person",
    ),
    Mutant(
        "review: by somebody without a name",
        ROLES,
        "    if principal.user is None or not {",
        "    if not {",
        "test_a_project_may_ask_for_the_review_of_another_person",
    ),
    Mutant(
        "verdict: adopted by the author",
        "engine/verbs/operator_verbs.py",
        "    if task.checked and claim is not None:",
        "    if False:",
        "test_the_author_adopts_no_result_that_waits_for_a_verdict",
    ),
    Mutant(
        "keys: in the name of nobody's member",
        "core/keys.py",
        "    if member is None or member.left_at is not None:\n",
        "    if False:\n",
        "test_who_signed_in_makes_a_key_in_the_name_of_a_member_alone",
    ),
    Mutant(
        "keys: the maker is forgotten over a second key",
        "core/keys.py",
        '(principal.maker or principal.user or "")',
        '(principal.user or "")',
        "test_a_key_in_anothers_name_makes_none_in_the_name_of_a_third",
    ),
    Mutant(
        "keys: in the name of a third by a key of another's making",
        "core/keys.py",
        "    if principal.maker is not None:\n",
        "    if False:\n",
        "test_a_key_in_anothers_name_makes_none_in_the_name_of_a_third",
    ),
    Mutant(
        "keys: who rotates is not the maker",
        "engine/verbs/api_keys.py",
        "        created_by=keys.author_of(work.principal),\n        rotated_at",
        "        rotated_at",
        "test_who_rotates_a_key_has_its_secret_and_is_its_maker",
    ),
    Mutant(
        "verdict: from an agent's session",
        ROLES,
        'if principal.address is None and principal.role == "agent":',
        "if False:",
        "test_an_agents_session_on_this_machine_gives_no_verdicts",
    ),
    Mutant(
        "verdict: without the capability",
        ROLES,
        'if role == "agent" and CHECKER not in',
        'if "x" == CHECKER not in',
        "test_an_agents_key_takes_checks_only_with_the_capability",
    ),
    Mutant(
        "verdict: an author judges what another took",
        "engine/checks/validation_verbs.py",
        '    roles.check_verdict(work.principal, current_claim(work, held.task), f"judge: {held.task.key}")\n',
        "",
        "test_a_check_that_another_took_is_not_judged_by_the_author",
    ),
    Mutant(
        "verdict: the best one may be the author's",
        "engine/checks/validation_verbs.py",
        "return not roles.is_author(who, claim) if",
        "return True if",
        "test_a_verdict_is_never_the_authors_by_agent_session_or_key",
    ),
    Mutant(
        "verdict: signed with a name of one's own",
        "engine/checks/validation_verbs.py",
        "return work.principal.owner or work.principal.name",
        "return work.principal.name",
        "test_a_check_that_another_took_is_not_judged_by_the_author",
    ),
    Mutant(
        "verdict: the claim forgets its key",
        "engine/verbs/claim.py",
        "        key=work.principal.key,\n",
        "",
        "test_a_verdict_is_never_the_authors_by_agent_session_or_key",
    ),
    Mutant(
        "verdict: the fast path forgets the key",
        "engine/runtime/fast_path/next_claims.py",
        "column([p.key for p in principals])",
        "None",
        on("postgres", "test_a_claim_by_key_is_stored_with_the_key[eager]"),
    ),
    # --- repeats
    Mutant(
        "repeat: by anybody",
        "core/commands/command.py",
        " if owner else text",
        " if False else text",
        "test_a_keys_secret_is_not_shown_to_another_who_repeats_the_request",
    ),
    Mutant(
        "repeat: what a header says is proven",
        "core/commands/command.py",
        "if self.is_proven else",
        "if self.agent else",
        "test_a_review_is_a_person_s_word_or_another_agent_s",
    ),
    # --- web sessions
    Mutant(
        "session: outlives its key",
        SESSIONS,
        " and is_live(key, now)",
        "",
        f"{TEST_COOKIES}::test_a_cookie_ends_with_its_key_or_its_time[revoked]",
    ),
    Mutant(
        "session: outlives a rotation",
        SESSIONS,
        "session.key == key.id and hmac.compare_digest(session.key_digest, key.digest)",
        "session.key == key.id",
        f"{TEST_COOKIES}::test_a_cookie_ends_with_its_key_or_its_time[rotated]",
    ),
    Mutant(
        "session: the token itself is kept",
        SESSIONS,
        "hashlib.sha256(token.encode()).hexdigest()",
        "token",
        f"{TEST_COOKIES}::test_reading_the_store_gives_nobody_a_session",
    ),
    Mutant(
        "session: a logout ends nothing",
        "engine/verbs/web_sessions.py",
        "            work.remove(row)\n",
        "            pass\n",
        f"{TEST_COOKIES}::test_logging_out_ends_the_session_on_every_server",
    ),
    # --- the token of the start
    Mutant(
        "token: any token",
        AUTHENTICATOR,
        "hmac.compare_digest(text, self._token)",
        "True",
        f"{TEST_LOCAL_TOKEN}::test_wrong_tokens_do_not_keep_the_right_one_out",
    ),
    Mutant(
        "token: from anywhere",
        AUTHENTICATOR,
        "if not is_ours or not self._is_local(source):",
        "if not is_ours:",
        f"{TEST_LOCAL_TOKEN}::test_the_token_is_good_on_this_host_alone",
    ),
    Mutant(
        "token: not needed",
        AUTHENTICATOR,
        "elif self._is_local(source) and self._token is None:",
        "elif self._is_local(source):",
        f"{TEST_LOCAL_TOKEN}::test_without_it_nobody_is_let_in_on_loopback[said0]",
    ),
    Mutant(
        "token: readable by all",
        "client/local_token.py",
        "os.O_NOFOLLOW, 0o600)",
        "os.O_NOFOLLOW, 0o644)",
        f"{TEST_ON_LOOPBACK}::test_the_users_own_clients_send_the_token_by_themselves",
    ),
    Mutant(
        "token: anybody's file",
        "client/local_token.py",
        "& 0o077:",
        "& 0:",
        f"{TEST_ON_LOOPBACK}::test_a_token_that_others_could_have_written_is_not_sent",
    ),
    # --- the client's retries
    Mutant(
        "client: a lost write is reported as not done",
        HTTP,
        "        self._is_unknown |= trouble.is_sent and not self._request.is_read\n",
        "",
        f"{TEST_REMOTE}::test_once_lost_stays_unknown_although_the_server_is_definite_later",
    ),
    Mutant(
        "client: each try has its own request id",
        HTTP,
        "signed = request._replace(headers=request.headers | credentials.headers)",
        "signed = request._replace(headers=request.headers | credentials.headers"
        ' | {"Idempotency-Key": self._random.token(8).hex()})',
        f"{TEST_REMOTE}::test_a_lost_answer_is_asked_for_again_with_the_same_request_id",
    ),
    Mutant(
        "client: a key over plain HTTP",
        "client/transports/server_address.py",
        "not is_secure and not address.is_loopback",
        "False",
        f"{TEST_REMOTE}::test_a_key_never_crosses_a_network_in_the_clear",
    ),
    # --- ends of credentials
    Mutant(
        "end: who waits is not asked again",
        "server/waiting_claims.py",
        "if not await self._is_still_valid(principal):",
        "if False:",
        f"{TEST_WAITING_ROOM}::test_who_waits_with_a_key_that_has_ended_is_granted_nothing",
    ),
    Mutant(
        "end: no waiting caller is woken",
        "server/waiting_claims.py",
        "_resolve(future, True)\n\n    def start_round",
        "pass\n\n    def start_round",
        f"{TEST_WAITING_ROOM}::test_news_of_a_key_or_a_member_ends_those_who_wait_with_it_at_once[k-key.revoked-details0]",
    ),
    Mutant(
        "end: a removed member goes on waiting",
        "server/waiting_claims.py",
        'if event.kind.startswith("member."):',
        "if False:",
        f"{TEST_WAITING_ROOM}::test_news_of_a_key_or_a_member_ends_those_who_wait_with_it_at_once[jwt:mia-member.removed-details1]",
    ),
    Mutant(
        "end: streams do not check their key again",
        "server/feed.py",
        "        self._beats = True\n",
        "",
        f"{TEST_FEED}::test_news_of_a_key_or_a_member_lets_every_stream_look_up[command0]",
    ),
    Mutant(
        "end: streams do not check their member again",
        "server/feed.py",
        'startswith(("key.", "member."))',
        'startswith("key.")',
        f"{TEST_FEED}::test_news_of_a_key_or_a_member_lets_every_stream_look_up[command1]",
    ),
    Mutant(
        "end: streams that catch up go on",
        "server/app.py",
        "if not await service.is_still_valid(principal):  #",
        "if False:  #",
        f"{TEST_FEED}::test_a_stream_that_catches_up_ends_with_its_key_too",
    ),
    Mutant(
        "end: streams go on",
        "server/app.py",
        "if not await service.is_still_valid(principal):\n                        return\n                    yield",
        "if False:\n                        return\n                    yield",
        f"{TEST_FEED}::test_a_stream_ends_with_the_key_that_began_it",
    ),
    Mutant(
        "end: a body that was sent slowly counts",
        "server/requests.py",
        "if is_late and is_whole and not await",
        "if False and not await",
        "tests/server/test_slow_bodies.py::test_what_a_key_began_to_send_is_not_done_after_its_end[POST-/api/v1/projects/p/tasks-body0-True]",
    ),
    Mutant(
        "end: a slow body reaches a mounted application",
        "server/app.py",
        "await inner(scope, request.receive, request.sent_by(send))",
        "await inner(scope, request._receive, request.sent_by(send))",
        "tests/server/test_slow_bodies.py::test_what_a_key_began_to_send_is_not_done_after_its_end[POST-/inner-anything-True]",
    ),
    Mutant(
        "end: a JWT's stream has none",
        AUTHENTICATOR,
        "return not is_lost and time.time() < float(shown) + LEEWAY",
        "return not is_lost",
        f"{TEST_TOKENS}::test_a_long_answer_ends_with_the_token",
    ),
    Mutant(
        "end: an old secret goes on",
        AUTHENTICATOR,
        "return any(digest.hex()",
        "return keys.is_live(key, now) or any(digest.hex()",
        f"{TEST_KEYS}::test_a_long_answer_ends_when_the_secret_it_was_begun_with_does",
    ),
    Mutant(
        "end: tokens for years",
        "server/auth/tokens.py",
        "> longest + LEEWAY",
        "> 1e12",
        f"{TEST_TOKENS}::test_a_token_that_lives_too_long_is_refused",
    ),
    # --- lockouts
    Mutant(
        "lockout: by address alone",
        AUTHENTICATOR,
        'f"{caller_at(source.address)} {credential}"',
        "caller_at(source.address)",
        f"{TEST_KEYS}::test_a_guesser_is_told_to_wait_and_good_keys_at_its_address_are_not",
    ),
    Mutant(
        "lockout: wrong ones keep genuine ones out",
        "server/delivery_routes.py",
        "        if not signatures.is_signed(headers):\n",
        '        if (wait := self._failures.wait_of(f"{caller} unsigned")) > 0:\n            raise limited(wait)\n'
        "        if not signatures.is_signed(headers):\n",
        "tests/server/test_deliveries.py::test_what_is_not_genuine_is_told_nothing_and_keeps_nothing_genuine_out",
    ),
    Mutant(
        "lockout: retry at once",
        "server/responses.py",
        "max(RETRY_AFTER, ceil(",
        "max(0, int(",
        "tests/server/test_rate_limits.py::test_who_has_to_wait_is_told_a_second_at_least",
    ),
    Mutant(
        "lockout: texts tell a key's state",
        AUTHENTICATOR,
        "            except NotSignedIn:\n                key, now = None, 0\n",
        "            except NotSignedIn:\n                raise\n",
        f"{TEST_KEYS}::test_no_text_tells_an_unknown_key_from_one_that_ended_or_is_wrong",
    ),
    # --- limits of connections
    Mutant(
        "connection: a request without a Host is answered",
        "server/auth/request_source.py",
        'if version != "1.0" and not (hosts and hosts[0]):',
        "if False:",
        f"{TEST_DOORSTEP}::test_a_request_without_a_host_is_refused",
    ),
    Mutant(
        "connection: no answer over TLS asks for TLS",
        "server/app.py",
        '[*message.get("headers", ()), STAY_SECURE]',
        '[*message.get("headers", ())]',
        "tests/server/test_staying_secure.py::test_the_header_comes_with_every_answer_over_tls[https-True]",
    ),
    Mutant(
        "connection: endless headers",
        "server/connection_limits.py",
        "if self._unseen > limits.HEADER_BYTES and",
        "if False and",
        f"{TEST_DOORSTEP}::test_endless_headers_are_not_kept_and_others_are_served",
    ),
    Mutant(
        "connection: many headers",
        "server/connection_limits.py",
        "if self._head > limits.HEADER_BYTES:",
        "if False:",
        f"{TEST_DOORSTEP}::test_headers_end_at_64_kb_in_one_piece_or_in_many",
    ),
    Mutant(
        "connection: any number from an address",
        "server/connection_limits.py",
        "next(iter(mine)).close_now()",
        "pass",
        f"{TEST_DOORSTEP}::test_half_open_connections_are_bounded_and_others_are_served",
    ),
    Mutant(
        "connection: no time limit for headers",
        "server/connection_limits.py",
        "self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)",
        "None",
        f"{TEST_DOORSTEP}::test_who_is_slow_to_send_its_headers_is_sent_away",
    ),
    Mutant(
        "connection: those who are known are sent away",
        "server/app.py",
        '            signed_in(Who(who.tenant or HOME, who.key or ""))  #',
        "            pass  #",
        f"{TEST_DOORSTEP}::test_a_connection_with_somebody_on_it_is_not_closed_for_strangers",
    ),
    # --- what is read
    Mutant(
        "json: the last of two keys wins",
        "core/decoders.py",
        "if len(found) < len(pairs):",
        "if False:",
        f"{TEST_DECODING}::test_a_key_that_stands_twice_is_refused_by_name",
    ),
    Mutant(
        "json: endless integers",
        "core/decoders.py",
        "if len(digits) > limits.INTEGER_DIGITS or not -(2**63) <= int(digits) < 2**64:",
        "if False:",
        f"{TEST_DECODING}::test_an_integer_beyond_64_bits_is_refused_before_it_is_read[111111111111111111111]",
    ),
    Mutant(
        "scope: a body is read for another's project",
        "server/app.py",
        'check_scope(request.principal, request.fields["project"])\n            if endpoint.path',
        "pass\n            if endpoint.path",
        "tests/server/api/test_rows.py::test_each_identity_is_let_at_its_rows_and_at_no_others[batch]",
    ),
    Mutant(
        "the API: the coordinator's status for everybody",
        "core/roles.py",
        'if level_of(principal.role) < level_of("admin"):',
        "if False:",
        "tests/server/test_coordinator.py::test_it_is_for_admins[viewer]",
    ),
    Mutant(
        "the API: a task's ETag is its version alone",
        "server/representation.py",
        "digest = blake2b(answer.body, digest_size=8).hexdigest()",
        'digest = "0" if version is not None else blake2b(answer.body, digest_size=8).hexdigest()',
        "tests/server/api/test_conventions.py::test_a_task_is_sent_again_when_it_has_changed",
    ),
    Mutant(
        "the API: a condition is not compared",
        "server/requests.py",
        'values["version"] = context.version',
        "pass",
        "tests/server/api/test_conventions.py::test_the_etag_of_a_task_guards_an_edit",
    ),
    Mutant(
        "budgets: minutes decide about a day",
        "core/budgets.py",
        "decided = budget.throttle or day.length >= ENOUGH",
        "decided = True",
        "test_minutes_of_work_are_shown_as_they_are_and_decide_nothing",
    ),
    Mutant(
        "counts: an event is added to counts that have it already",
        "engine/reads/task_counts.py",
        "if kept is not None and move.sequence > kept.position:",
        "if kept is not None:",
        "test_an_event_that_was_counted_is_not_added_when_it_is_heard",
    ),
    Mutant(
        "counts: all tasks are of the first track",
        "engine/reads/task_counts.py",
        "if len(used) <= 1:",
        "if used:",
        on("sqlite", "test_counts_by_state_and_track_stay_right"),
    ),
    Mutant(
        "counts: moves heard during the count are lost",
        "engine/reads/task_counts.py",
        "if move.project == project and move.sequence > position:",
        "if False:",
        "test_an_event_heard_while_tasks_are_counted_is_added_once",
    ),
    Mutant(
        "counts: moves that are due and not written are left out",
        "engine/reads/task_counts.py",
        "moves = [move for move in _moves((*behind, *work.events)) if move.project == project]",
        "moves = [move for move in _moves(behind) if move.project == project]",
        "test_kept_counts_are_those_of_the_rows_after_each_step",
    ),
    Mutant(
        "transcripts: a link out of the folder is followed",
        "server/transcript_routes.py",
        "if path.parent != folder:",
        "if False:",
        "tests/server/test_transcripts.py::test_a_link_out_of_the_folder_is_not_followed",
    ),
    Mutant(
        "waiting: what comes while everybody looks is forgotten",
        "server/waiting_claims.py",
        "self._owed = min(self._owed + count - waiting, self.users)",
        "self._owed = 0",
        f"{TEST_WAITING_ROOM}::test_what_comes_between_the_look_of_everybody_and_its_answer_is_not_missed",
    ),
)
