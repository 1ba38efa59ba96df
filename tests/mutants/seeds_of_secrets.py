"""Seeded bugs in what keeps secrets secret at rest."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

TEST_CIPHER = "tests/sealing/test_cipher.py"
TEST_MASTER_KEY = "tests/sealing/test_master_key.py"

OF_COMMANDS = "engine/secrets/of_commands.py"
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
        "    for agent in agents - {None}:",
        "    for agent in ():",
        "test_another_claim_of_the_holder_is_searched_too",
    ),
    Mutant(
        "secrets: what cannot be searched is stored",
        OF_COMMANDS,
        "    hidden = hidden_of(work, tasks.values())",
        "    try:\n        hidden = hidden_of(work, tasks.values())\n    except TenureError:\n        return command",
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
        "        if is_lost:\n",
        "        if True:\n",
        f"{TEST_CIPHER}::test_a_new_data_key_seals_and_the_old_one_still_opens",
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
)
