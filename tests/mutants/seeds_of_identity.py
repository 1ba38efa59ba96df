"""Seeded bugs in who speaks, which receipt is presented, and what is told after a commit: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

KEPT = ("tests/cli/test_identity.py",)
SCRIPTS = ("tests/cli/test_who_am_i.py",)
AFTERWARDS = ("tests/cli/test_after_the_commit.py",)
RECEIPTS = "agents/receipts.py"
RECORDED = "agents/session_records.py"
PENDING = "agents/pending_claims.py"

IDENTITY = (
    # --- whose receipt
    Mutant(
        "identity: receipt of another agent used",
        RECEIPTS,
        "return [safe_name(self.agent)] if self.agent is not None else sorted(_listed(place))",
        "return sorted(_listed(place))",
        KEPT,
    ),
    Mutant(
        "identity: receipt of an older generation used",
        RECEIPTS,
        "if wanted.generation in (kept.generation, *kept.instead_of) and kept.ended",
        "if kept.ended",
        KEPT,
    ),
    Mutant("identity: after a loss no claim is named", RECEIPTS, "        if lost:\n", "        if False:\n", KEPT),
    Mutant(
        "identity: receipts from before are anybody's",
        RECEIPTS,
        "is_plain = all(kept.agent is not None for kept in live)",
        "is_plain = True",
        KEPT,
    ),
    Mutant(
        "identity: own claims of every agent",
        "engine/reads/own_claims.py",
        '"session": session, "agent": agent}',
        '"session": session}',
    ),
    Mutant(
        "identity: own claims for every agent",
        "core/roles.py",
        "principal.agent not in (None, query.agent):",
        "False:",
    ),
    Mutant(
        "identity: no claim was ever lost",
        "core/claims.py",
        "return claim.reason in _OWN_WORDS or (",
        "return True or (",
    ),
    Mutant(
        "identity: every ended claim was lost",
        "core/claims.py",
        "return claim.reason in _OWN_WORDS or (",
        "return False and (",
    ),
    # --- who speaks
    Mutant(
        "identity: joined process ignored",
        "agents/identity.py",
        "return _recognised(environ, agent, session, session_records.nearest_joined(environ))",
        "return _recognised(environ, agent, session, None)",
        SCRIPTS,
    ),
    Mutant(
        "identity: background process bound to its shell",
        RECORDED,
        "return os.getppid() == leader.pid and process_table.is_in_foreground() and not process_table.is_nohup()",
        "return True",
        SCRIPTS,
    ),
    Mutant(
        "identity: session named after its living leader alone",
        RECORDED,
        "if record is None or (leader is not None and leader.start != record.start):",
        "if True:",
        SCRIPTS,
    ),
    Mutant(
        "identity: new leader takes the old session's name",
        RECORDED,
        "if record is None or (leader is not None and leader.start != record.start):",
        "if record is None:",
        SCRIPTS,
    ),
    # --- after the commit
    Mutant(
        "identity: pending claim request not sent again",
        PENDING,
        "left = _left_behind(environ, home, words, within)",
        "left = None",
        AFTERWARDS,
    ),
    Mutant(
        "identity: request of a living process sent again",
        PENDING,
        " and process_table.has_ended(sent.pid, sent.start)",
        "",
        AFTERWARDS,
    ),
    Mutant(
        "identity: an error after the effect says that nothing happened",
        "cli/main.py",
        "    error.definite = False\n",
        "",
        AFTERWARDS,
    ),
    Mutant(
        "identity: a claim that was not told is forgotten",
        "cli/claim.py",
        "        run.untold.append(request.untold)\n",
        "",
        AFTERWARDS,
    ),
)
