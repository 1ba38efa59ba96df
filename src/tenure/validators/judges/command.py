"""A judge that is a command: the question on its stdin, the answer on its stdout. For the CLI of an agent, or a script.

It runs in an empty folder: the agent sees only the work that the question quotes.
"""

from __future__ import annotations

import os
import tempfile

import msgspec

from tenure.validators.commands import PASSED, run
from tenure.validators.judges.judge_config import Answer, Judge
from tenure.validators.port import Undecided, cut


class CommandJudge:
    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def ask(self, system: str, prompt: str) -> Answer:
        judge, program = self._judge, self._judge.argv[0]
        env = {name: os.environ[name] for name in (*PASSED, *judge.env) if name in os.environ}
        with tempfile.TemporaryDirectory(prefix="tenure-judge-") as folder:
            ran = run(
                judge.argv,
                cwd=folder,
                env=env,
                seconds=judge.timeout,
                stdin=f"{system}\n\n{prompt}".encode(),
                keep_stderr=False,
            )
        if ran.limit is not None:
            raise Undecided(f"the judge {program} did not answer within {judge.timeout:g} s", again=True)
        text = ran.output.decode(errors="replace")
        if ran.exit != 0:
            raise Undecided(f"the judge {program} ended with {ran.exit}: {cut(text.strip(), 200)}", again=True)
        return Answer(self._text(text), judge.model or program, {})

    def _text(self, said: str) -> str:
        if not self._judge.field:
            return said
        try:
            envelope = msgspec.json.decode(said)
        except ValueError:
            return said
        text = envelope.get(self._judge.field) if isinstance(envelope, dict) else None
        return text if isinstance(text, str) else said
