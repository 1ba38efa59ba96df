"""Seeded bugs in signed submissions."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

SIGNATURES = "engine/checks/signatures.py"
FORM = "core/signed_results.py"
TEST_FORM = "tests/core/test_signed_results.py"
FAST = "test_claims_of_sessions_that_sign_never_take_the_fast_path"
REFUSED = "test_what_is_not_signed_or_signed_by_another_is_refused_and_the_claim_stays"

SIGNING = (
    Mutant(
        "signing: a result without a signature is accepted",
        SIGNATURES,
        "    if given is None:\n        raise",
        "    if given is None:\n        return hold\n        raise",
        REFUSED,
    ),
    Mutant(
        "signing: any signature is good",
        SIGNATURES,
        "not is_signature(given.value) or not evidence.of_signature(work, key, given.value, covered)",
        "not is_signature(given.value)",
        REFUSED,
    ),
    Mutant(
        "signing: a signature of a session without a key is ignored",
        SIGNATURES,
        "    if key is None:\n        raise",
        "    if key is None:\n        return hold\n        raise",
        "test_a_signature_of_a_session_without_a_key_is_refused",
    ),
    Mutant(
        "signing: the artifacts that are there are not compared",
        SIGNATURES,
        "    if {row.name: row.digest for row in rows} != given.artifacts:",
        "    if False:",
        "test_artifacts_are_covered_by_their_digests",
    ),
    Mutant(
        "signing: only a current receipt must be signed",
        "engine/verbs/submit.py",
        "    if hold.verdict.genuine and (hold.project.signs",
        "    if hold.refusal is None and not hold.is_late and (hold.project.signs",
        "test_a_late_result_and_a_stale_one_must_be_signed_too",
    ),
    Mutant(
        "signing: the epoch is not covered",
        FORM,
        "task, generation, epoch, *digests",
        'task, generation, "", *digests',
        f"{TEST_FORM}::test_every_part_is_covered",
    ),
    Mutant(
        "signing: the generation is not covered",
        FORM,
        "task, generation, epoch, *digests",
        "task, 0, epoch, *digests",
        f"{TEST_FORM}::test_every_part_is_covered",
    ),
    Mutant(
        "signing: a session takes another key",
        "engine/verbs/agents.py",
        '        raise InvalidInput(f"session {session.id} has another key", "a new key is a new session: --session")',
        "        pass",
        "test_a_key_is_registered_once_and_before_the_first_claim",
    ),
    Mutant(
        "signing: a session that begins again has no key",
        "engine/verbs/agents.py",
        "        key = session.public_key if session else None  # a name that signed once always signs",
        "        key = None",
        "test_a_session_that_signed_signs_after_its_end_too",
    ),
    Mutant(
        "signing: a task of a session that signs is plain, and its result takes the fast path",
        "engine/verbs/claim.py",
        "    if reserved or claimant.session.public_key is not None:",
        "    if reserved:",
        on("postgres", FAST),
    ),
    Mutant(
        "signing: a session that signs claims by the fast path",
        "engine/runtime/fast_path/next_claims.py",
        " or project.set_aside or project.signs:",
        " or project.set_aside:",
        on("postgres", FAST),
    ),
)
