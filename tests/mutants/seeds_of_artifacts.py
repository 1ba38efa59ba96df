"""Seeded bugs in artifacts: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

RULES = ("tests/core/test_artifacts.py",)
CLIENTS = ("tests/client/test_artifacts.py",)
SERVED = ("tests/server/test_artifacts.py",)
RUNS = ("tests/runner/test_continuation.py",)
WORKS = ("tests/client/test_worker_goes_on.py",)
FUSED = ("tests/engine/test_on_postgres.py",)  # only there is there a short way
CORE, PUT = "core/artifacts.py", "engine/artifacts/artifact_verbs.py"

ARTIFACTS = (
    # --- the fence
    Mutant(
        "artifact: a zombie's is named",
        PUT,
        "if hold.refusal is not None and not is_same and not rules.may_tell_late(name, hold.verdict.code):",
        "if hold.refusal is not None and not hold.verdict.genuine:",
    ),
    Mutant("artifact: anything may come late", CORE, "return name == TRANSCRIPT and code in", "return code in"),
    Mutant(
        "artifact: a transcript may come after the next claim",
        CORE,
        '_NOT_OVERTAKEN = ("NO_CLAIM",',
        '_NOT_OVERTAKEN = ("STALE_GENERATION", "NO_CLAIM",',
    ),
    Mutant(
        "artifact: not asked before the bytes come",
        PUT,
        "            return hold.refusal\n        return Ready",
        "            pass\n        return Ready",
    ),
    # --- what is handed on
    Mutant("artifact: earlier runs are handed on", CORE, "if run is None or row.run == run:", "if True:"),
    Mutant("artifact: transcripts are handed on", CORE, " if row.name != TRANSCRIPT)", ")"),
    Mutant(
        "artifact: the first of a name wins",
        CORE,
        "key=lambda row: row.generation):",
        "key=lambda row: -row.generation):",
    ),
    Mutant("artifact: tasks with some are plain", "core/plain_tasks.py", " or task.artifacts:", ":", FUSED),
    # --- the bytes
    Mutant("artifact: bytes go at once", CORE, "KEPT_IDLE = limits.ARTIFACT_IDLE", "KEPT_IDLE = 0"),
    Mutant("artifact: a sweep's word is not heeded", CORE, "content.dropped_at + GOING >= since", "False"),
    Mutant(
        "artifact: a sweep takes its time",
        CORE,
        "content.dropped_at + GOING >= since",
        "content.dropped_at >= since",
        RULES,
    ),
    Mutant("artifact: a put may take days", CORE, "    if now - since >= KEPT_IDLE:\n        return True\n", "", RULES),
    Mutant("artifact: forgotten too soon", CORE, "content.dropped_at + GOING + KEPT_IDLE <= now", "True", RULES),
    Mutant(
        "artifact: replaced bytes are still counted",
        PUT,
        "        let_go(work, cmd.project, {mine.digest: 1})",
        "        pass",
    ),
    Mutant(
        "artifact: pruned ones are still counted", "engine/archive/mover.py", "            _let_go(work, row)\n", ""
    ),
    Mutant(
        "artifact: names that no folder could hold", PUT, "    rules.check_beside(", "    0 and rules.check_beside("
    ),
    Mutant("artifact: no bound on their size", PUT, "    rules.check_size(hold.project, cmd.size)\n", ""),
    # --- on the way
    Mutant(
        "artifact: handed out to be shown",
        "server/artifact_routes.py",
        'f"attachment; filename',
        'f"inline; filename',
        SERVED,
    ),
    Mutant(
        "artifact: the end of a wrong content is handed out",
        "artifacts/port.py",
        "self._hash is not None and self._hash.hexdigest() != self._digest",
        "False",
        CLIENTS,
    ),
    # --- hung work
    Mutant(
        "hung: the runner takes it again",
        "agents/runner/held_claim.py",
        '== "SUPERSEDED" and ending.get("error_class") == "timeout"',
        '== "NEVER"',
        RUNS,
    ),
    Mutant("hung: the worker takes it again", "client/worker/hold.py", "return is_hung or ", "return ", WORKS),
)
