"""A judge that is a command: the question on its stdin, the answer on its stdout. For the CLI of an agent, or a script.

It runs in an empty folder: the agent sees only the work that the question quotes. What it writes to stderr is kept with
the verdict, and is the reason where there is none.
"""

from __future__ import annotations

import os
import tempfile

import msgspec

from tenure.core import limits
from tenure.core.child_environments import ChildKind, for_child
from tenure.core.redaction import without_secrets
from tenure.validators.commands import PASSED, run
from tenure.validators.judges.judge_config import Answer, Judge
from tenure.validators.port import Undecided, cut

SHOWN = 400  # characters of it in a reason


def stderr_text(output: bytes) -> str:
    """The end of what a judge wrote to stderr, on one line, without secrets."""
    text = without_secrets(" ".join(output.decode(errors="replace").split()))
    return text if len(text) <= limits.JUDGE_STDERR else "…" + text[1 - limits.JUDGE_STDERR :]


class CommandJudge:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def ask(self, system: str, prompt: str) -> Answer:
        judge, program = self._judge, self._judge.argv[0]
        passed = {name: os.environ[name] for name in (*PASSED, *judge.env) if name in os.environ}
        with tempfile.TemporaryDirectory(prefix="tenure-judge-") as folder:
            ran = run(
                judge.argv,
                cwd=folder,
                env=for_child(ChildKind.CHECK, passed),
                seconds=judge.timeout,
                stdin=f"{system}\n\n{prompt}".encode(),
                splits_stderr=True,
            )
        text, stderr = ran.output.decode(errors="replace"), stderr_text(ran.stderr)
        why = f": {cut(stderr, SHOWN)}" if stderr else ""
        if ran.limit is not None:
            raise Undecided(f"the judge {program} did not answer within {judge.timeout:g} s{why}", again=True)
        if ran.exit != 0:
            why = why or f": {cut(text.strip(), SHOWN)}"
            raise Undecided(f"the judge {program} ended with {ran.exit}{why}", again=True)
        return Answer(self._text(text), judge.model or program, {}, stderr)

    def _text(self, output: str) -> str:
        if not self._judge.field:
            return output
        try:
            envelope = msgspec.json.decode(output)
        except ValueError:
            return output
        text = envelope.get(self._judge.field) if isinstance(envelope, dict) else None
        return text if isinstance(text, str) else output
