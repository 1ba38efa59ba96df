"""Seeded bugs in what keeps secrets secret at rest."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST_CIPHER = "tests/sealing/test_cipher.py"
TEST_MASTER_KEY = "tests/sealing/test_master_key.py"

OF_COMMANDS = "engine/secrets/of_commands.py"
FOUND = "_secrets_of(work, tasks) | known_to(work, command.project, knowers(agents, keys))"
EVERYWHERE = "test_an_agent_that_prints_its_secret_everywhere_stores_it_nowhere"

TASKS = (
    Mutant(
        "secrets: a task with secrets takes the fast path",
        "core/settle.py",
        "    if task.sealed:  #",
        "    if False:  #",
        "test_a_task_with_secrets_is_never_plain",
    ),
    Mutant(
        "secrets: a result of a holder of secrets takes the fast path with another task",
        "engine/runtime/fast_path/held_claims.py",
        "if project.limited or project.sealed or",
        "if project.limited or",
        on("postgres", "test_another_claim_of_the_holder_is_searched_too"),
    ),
    Mutant(
        "secrets: a view of a task has its sealed values",
        "engine/reads/task_view.py",
        "    if task.sealed:\n",
        "    if False:\n",
        "test_a_secret_is_sealed_and_only_a_claim_opens_it",
    ),
    Mutant(
        "secrets: a repeated claim opens them after its end",
        "engine/verbs/grant_answer.py",
        "if task.sealed and is_live(task, claim):",
        "if task.sealed:",
        "test_only_the_live_claim_opens_it",
    ),
    Mutant(
        "secrets: any receipt opens them",
        "engine/secrets/open_secrets.py",
        "hold = held(work, cmd.project, cmd.receipt)",
        "hold = held(work, cmd.project, cmd.receipt, late=True)",
        "test_only_the_live_claim_opens_it",
    ),
    Mutant(
        "secrets: a receipt alone opens them",
        "engine/secrets/open_secrets.py",
        "    check_opens(work.principal",
        "    str(work.principal",
        "test_a_receipt_alone_opens_nothing_for_another_key",
    ),
    Mutant(
        "secrets: a transcript has what an agent printed",
        "agents/runner/attempt_files.py",
        'self._clean[stream].line(line.decode(errors="replace"))',
        'line.decode(errors="replace")',
        "tests/runner/test_parts.py::test_a_transcript_has_no_secrets",
    ),
    Mutant(
        "secrets: an opened secret is kept with its request",
        "engine/runtime/decision.py",
        "    c.OpenSecrets,  #",
        "    #",
        "test_neither_a_remembered_request_nor_a_preview_has_it",
    ),
    Mutant(
        "secrets: a preview of a claim opens them",
        "engine/runtime/engine.py",
        "    return replace(answer, secrets=None, claims=parts)",
        "    return answer",
        "test_neither_a_remembered_request_nor_a_preview_has_it",
    ),
    Mutant(
        "secrets: a repeat with the same secret is another request",
        "core/commands/command.py",
        '        if "$sealed" in value:',
        "        if False:",
        "test_a_repeat_is_recognised_by_the_digest_of_its_secret",
    ),
    Mutant(
        "secrets: without a master key a marked secret is stored as given",
        OF_COMMANDS,
        "            if not secret.by_name:\n                raise\n",
        "",
        "test_without_a_master_key_a_marked_secret_is_refused_and_a_name_only_warns",
    ),
    Mutant(
        "secrets: a mark outside of context and metadata is stored as given",
        OF_COMMANDS,
        '            check_places(value, f"/{name}")\n',
        "",
        "test_input_that_is_no_secret_is_refused",
    ),
    Mutant(
        "secrets: input may bring a sealed value",
        "core/inputs.py",
        "    if b'\"$sealed\"' in encoded:",
        "    if False:",
        "test_input_that_is_no_secret_is_refused",
    ),
    Mutant(
        "secrets: what a holder writes is not searched",
        OF_COMMANDS,
        "    after = hidden.struct(command, _KEPT)",
        "    after = command",
        EVERYWHERE,
    ),
    Mutant(
        "secrets: the holder of another task is not searched",
        OF_COMMANDS,
        f"    secrets = {FOUND}",
        "    secrets = _secrets_of(work, [task for task in tasks if task.id in getattr(command, 'receipt', '')])",
        "test_another_claim_of_the_holder_is_searched_too",
    ),
    Mutant(
        "secrets: what cannot be searched is stored",
        OF_COMMANDS,
        f"    secrets = {FOUND}",
        f"    try:\n        secrets = {FOUND}\n    except TenureError:\n        return command",
        "test_what_cannot_be_searched_is_not_stored",
    ),
    Mutant(
        "secrets: an edit replaces the secrets of a holder",
        "engine/verbs/edit.py",
        '        guarded.append("metadata")',
        "        pass",
        "test_the_secrets_of_metadata_stay_while_the_task_is_held",
    ),
    Mutant(
        "secrets: a task that cannot be opened blocks the queue",
        "engine/verbs/claim.py",
        "        if task.sealed and self._is_unreadable(task):",
        "        if False:",
        "test_with_another_master_key_a_claim_is_refused_and_the_task_stays",
    ),
    Mutant(
        "secrets: a new master key replaces those before it",
        "sealing/master_key.py",
        "for one in (key, *(known.key for known in keys)))",
        "for one in (key,))",
        f"{TEST_MASTER_KEY}::test_a_new_key_is_put_before_the_others_and_a_running_process_finds_it",
    ),
    Mutant(
        "secrets: two new master keys at once lose one",
        "sealing/master_key.py",
        "        fcntl.flock(handle, fcntl.LOCK_EX)",
        "        pass",
        f"{TEST_MASTER_KEY}::test_a_new_key_waits_for_another_that_is_being_written",
    ),
    Mutant(
        "secrets: a task chooses any variable of the agent",
        "core/task_secrets.py",
        "return VARIABLE + re.sub",
        'return "" + re.sub',
        "tests/core/test_task_secrets.py::test_a_variable_begins_with_the_prefix_whatever_the_name_is",
    ),
    Mutant(
        "secrets: a secret inside of base64 is found only where it begins",
        "core/task_secrets.py",
        "        for before in range(3):",
        "        for before in range(1):",
        "tests/core/test_task_secrets.py::test_a_secret_is_found_inside_of_base64_wherever_it_begins",
    ),
    Mutant(
        "secrets: MCP shows them",
        "mcp/replies.py",
        '        if granted.pop("secrets", None):',
        "        if False:",
        "tests/mcp/test_tools.py::test_no_reply_has_a_secret_and_a_claim_says_where_it_is",
    ),
    Mutant(
        "secrets: a transcript has what the agent printed",
        "agents/runner/attempt.py",
        "        if self.hidden:  #",
        "        if False:  #",
        "tests/runner/test_secrets.py::test_an_agent_gets_them_as_variables_and_what_it_prints_is_kept_without_them",
    ),
)

KNOWN = "engine/secrets/known_secrets.py"
FOR_A_DAY = "test_what_an_agent_writes_after_its_claim_is_searched_for_a_day"
ENCODINGS = "tests/core/test_task_secrets.py::test_of_24_encodings_18_are_found_and_the_others_are_said_not_to_be"
PLAIN_ONES = "test_what_was_stored_without_a_master_key_is_named_and_sealed_later"

AFTERWARDS = (
    Mutant(
        "secrets: nothing is searched for once the claim has ended",
        OF_COMMANDS,
        FOUND,
        "_secrets_of(work, tasks)",
        FOR_A_DAY,
    ),
    Mutant(
        "secrets: a claim does not note who was given them",
        "engine/verbs/grant_answer.py",
        "import given  # most",
        "import opened as given  # most",
        FOR_A_DAY,
    ),
    Mutant(
        "secrets: who opens them by a receipt is not noted",
        "engine/secrets/open_secrets.py",
        "secrets=given(work, hold.task))",
        "secrets=opened(work, hold.task))",
        "test_who_opens_the_secrets_by_a_receipt_knows_them_too",
    ),
    Mutant(
        "secrets: the key of a claim is forgotten with the agent's name",
        KNOWN,
        ' | {Knower("key", name) for name in keys if name}',
        "",
        "test_the_key_and_the_session_of_the_claim_are_searched_under_other_names",
    ),
    Mutant(
        "secrets: another agent in the session of the claim is not searched",
        OF_COMMANDS,
        "    agents |= {session.agent for session in known.values()}\n",
        "",
        "test_the_key_and_the_session_of_the_claim_are_searched_under_other_names",
    ),
    Mutant(
        "secrets: they are searched for from the grant on, not from the end of the claim",
        KNOWN,
        'return work.now if claim.state == "active" else claim.released_at or row.at',
        "return row.at",
        "test_a_claim_of_days_is_known_for_a_day_after_its_end_whatever_was_swept",
    ),
    Mutant(
        "secrets: a sweep forgets them a day after the grant",
        "engine/duties/sweep.py",
        "        if not (request.id.startswith(MARK) and kept_on(work, request)):\n",
        "        if True:\n",
        "test_a_claim_of_days_is_known_for_a_day_after_its_end_whatever_was_swept",
    ),
    Mutant(
        "secrets: those of an archived task are forgotten",
        KNOWN,
        "max(row.at, archived.completed_at or archived.updated_at)",
        "0",
        "test_an_archived_task_is_still_known",
    ),
    Mutant(
        "secrets: what a lost key sealed silences its former holder",
        KNOWN,
        '        if vault.seals.has_key_of(from_value(entry["value"]))\n',
        "",
        "test_what_a_lost_master_key_sealed_stands_in_nobodys_way",
    ),
    Mutant(
        "secrets: a command without texts needs the master key",
        OF_COMMANDS,
        "    if not _has_texts(command, names):\n        return command\n",
        "",
        "test_a_process_that_cannot_open_them_stores_no_text_of_the_agent",
    ),
    Mutant(
        "secrets: an artifact is not searched",
        OF_COMMANDS,
        "    if isinstance(after, c.PutArtifact):\n",
        "    if False:\n",
        "test_an_artifact_with_a_secret_is_refused_and_one_without_is_kept",
    ),
    Mutant(
        "secrets: the next transcript of a runner has those of the task before",
        "agents/runner/shared.py",
        "            return Hidden(self._given)",
        "            return Hidden(secrets)",
        "tests/runner/test_secrets.py::"
        "test_the_next_attempt_of_the_runner_is_searched_for_the_secrets_of_the_one_before",
    ),
    Mutant(
        "secrets: escapes are read once",
        "core/escaped_texts.py",
        "    for _ in range(ROUNDS):\n        before, text",
        "    for _ in range(1):\n        before, text",
        ENCODINGS,
    ),
    Mutant(
        "secrets: escaped ones are not found",
        "core/task_secrets.py",
        "not self._spelled or not may_have_escapes(text):",
        "True:",
        ENCODINGS,
    ),
    Mutant(
        "secrets: `doctor` does not see what was stored as given",
        "cli/doctor/store_checks.py",
        "if seen := plain_values.seen_in(engine):",
        "if seen := ():",
        "tests/cli/test_secrets.py::test_what_was_stored_without_a_key_is_named_by_doctor_and_sealed_by_a_command",
    ),
    Mutant(
        "secrets: `serve` does not see what was stored as given",
        "cli/serve.py",
        "if warns and (seen :=",
        "if not warns and (seen :=",
        "tests/cli/test_secrets.py::test_serve_names_what_was_stored_as_given",
    ),
    Mutant(
        "secrets: sealing what was stored as given leaves the task to the fast path",
        "engine/secrets/reseal.py",
        "            task = replace(task, sealed=True)\n",
        "",
        PLAIN_ONES,
    ),
    Mutant(
        "secrets: sealing changes a task under its holder",
        "engine/secrets/reseal.py",
        "        if is_held(task):\n            return False\n",
        "",
        PLAIN_ONES,
    ),
    Mutant(
        "secrets: sealing gives two secrets of a task one name",
        "engine/secrets/reseal.py",
        "        except InvalidInput:\n            return False\n",
        "        except InvalidInput:\n            pass\n",
        PLAIN_ONES,
    ),
    Mutant(
        "secrets: an argument is not sealed by its mark",
        "client/worker/functions.py",
        "    return {SECRET: value}",
        "    return value",
        "tests/client/test_secret_arguments.py::"
        "test_an_argument_is_sealed_by_its_mark_or_its_name_and_opened_for_the_function",
    ),
    Mutant(
        "secrets: an argument is not sealed by its name",
        "core/task_secrets.py",
        "PLACES = (CONTEXT, ARGUMENTS, METADATA)",
        "PLACES = (CONTEXT, METADATA)",
        "tests/client/test_secret_arguments.py::"
        "test_an_argument_is_sealed_by_its_mark_or_its_name_and_opened_for_the_function",
    ),
    Mutant(
        "secrets: a worker logs them with the error of its function",
        "client/worker/attempt.py",
        "Hidden(secrets).text(trace_of(error))",
        "trace_of(error)",
        "tests/client/test_secret_arguments.py::"
        "test_an_argument_is_sealed_by_its_mark_or_its_name_and_opened_for_the_function",
    ),
)

SECRETS = (
    Mutant(
        "secrets: a sealed value opens in any place",
        "sealing/cipher.py",
        'return msgspec.json.encode(["tenure sealed", *place])',
        'return b"tenure sealed"',
        f"{TEST_CIPHER}::test_a_sealed_value_does_not_open_in_another_place",
    ),
    Mutant(
        "secrets: a data key opens in any project",
        "sealing/cipher.py",
        'return msgspec.json.encode(["tenure data key", tenant, row.project, row.id])',
        'return b"tenure data key"',
        f"{TEST_CIPHER}::test_a_sealed_value_does_not_open_in_another_project_or_tenant_even_with_its_keys",
    ),
    Mutant(
        "secrets: a changed digest is not found",
        "sealing/cipher.py",
        "if value is None or not hmac.compare_digest(self.digest(place.tenant, value, digest_key), sealed.digest):",
        "if value is None:",
        f"{TEST_CIPHER}::test_a_changed_bit_anywhere_is_found",
    ),
    Mutant(
        "secrets: a digest needs no key",
        "sealing/cipher.py",
        'return hmac.digest(self._key(tenant, digest_key), value, "sha256")',
        'return hmac.digest(b"", value, "sha256")',
        f"{TEST_CIPHER}::test_a_digest_cannot_be_computed_without_the_digest_key",
    ),
    Mutant(
        "secrets: rotation changes the digest key",
        "core/sealed.py",
        '            self._sealer.digest(self._tenant, b"", self._rows[DIGEST_KEY])\n',
        "            self._new(DIGEST_KEY)\n",
        f"{TEST_CIPHER}::test_a_new_data_key_seals_and_the_old_one_still_opens",
    ),
    Mutant(
        "secrets: a process with a wrong master key makes it everybody's",
        "core/sealed.py",
        '            self._sealer.digest(self._tenant, b"", self._rows[DIGEST_KEY])\n',
        "            pass\n",
        f"{TEST_CIPHER}::test_a_wrong_master_key_rotates_nothing_and_all_keys_of_a_lost_one_are_known",
    ),
    Mutant(
        "secrets: keys that open are given up",
        "core/sealed.py",
        "            except SecretUnreadable:\n                found.append(row)\n",
        "            finally:\n                found.append(row)\n",
        "test_what_a_lost_master_key_sealed_is_given_up_and_set_again",
    ),
    Mutant(
        "secrets: what was given up cannot be replaced",
        "engine/secrets/of_commands.py",
        "secrets_of(Vault(work, task.project), task, brief, spec, is_whole=False)",
        "secrets_of(Vault(work, task.project), task, brief, spec)",
        "test_what_a_lost_master_key_sealed_is_given_up_and_set_again",
    ),
    Mutant(
        "secrets: a retired key still seals",
        "core/sealed.py",
        "if row.id != DIGEST_KEY and row.retired_at is None]",
        "if row.id != DIGEST_KEY][:1]",
        f"{TEST_CIPHER}::test_a_new_data_key_seals_and_the_old_one_still_opens",
    ),
    Mutant(
        "secrets: input may bring a sealed value in a list",
        "core/sealed.py",
        "elif isinstance(found, (list, tuple)):",
        "elif isinstance(found, tuple):",
        f"{TEST_CIPHER}::test_a_sealed_value_in_input_is_refused_wherever_it_stands",
    ),
    Mutant(
        "secrets: a key file that others can read is taken",
        "sealing/master_key.py",
        "if found.st_mode & 0o077:",
        "if found.st_mode & 0o007:",
        f"{TEST_MASTER_KEY}::test_a_file_that_others_can_reach_is_refused",
    ),
    Mutant(
        "secrets: opening makes a new master key",
        "sealing/master_key.py",
        "            if not make:\n",
        "            if False:\n",
        f"{TEST_MASTER_KEY}::test_opening_never_makes_a_key",
    ),
    Mutant(
        "secrets: a second process replaces the master key",
        "sealing/master_key.py",
        "os.link(new, path)",
        "os.replace(new, path)",
        f"{TEST_MASTER_KEY}::test_a_key_that_another_process_makes_meanwhile_is_kept",
    ),
    Mutant(
        "secrets: a server without a master key makes one",
        "sealing/master_key.py",
        "        if not self._is_embedded:\n",
        "        if False:\n",
        f"{TEST_MASTER_KEY}::test_a_server_makes_no_key",
    ),
    Mutant(
        "secrets: an agent of `run` sees the master key",
        "agents/runner/attempt.py",
        "in without_master_key(options.environ).items()",
        "in options.environ.items()",
        "tests/runner/test_attempts.py::test_an_agent_knows_its_task_and_may_speak_of_it",
    ),
    *TASKS,
    *AFTERWARDS,
)
