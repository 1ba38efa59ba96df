"""Seeded bugs in what keeps secrets secret at rest."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_CIPHER = "tests/sealing/test_cipher.py"
TEST_MASTER_KEY = "tests/sealing/test_master_key.py"

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
)
