"""The model's memory of requests: sent again with the same id they have one effect, and the same answer."""

from __future__ import annotations

from typing import Any

from tests.stateful.model_plans import Plans
from tests.stateful.model_rows import HOUR, Answer, Claim, Receipt

HOLDERS = ("start", "progress", "checkpoint", "fail", "release", "ask", "wait", "spawn")
PERSONS_VERBS = ("pause", "resume", "cancel", "edit", "send", "archive", "reset", "retry", "assign", "recover", "plan")
KEPT = 24 * HOUR


class Repeats(Plans):
    def __init__(self, now: int, fraction: float = 0.5) -> None:
        super().__init__(now, fraction)
        self.remembered: dict[str, tuple[Any, Answer, int]] = {}  # what was asked, the answer, when

    def do(self, verb: str, /, request_id: str | None = None, mark: str | None = None, **arguments: Any) -> Answer:
        if request_id is None:
            return super().do(verb, mark=mark, **arguments)
        if verb == "claim":
            return super().do(verb, request_id=request_id, **arguments)
        self.settle()
        asked = (verb, arguments)
        claim = self._shown(arguments["receipt"]) if verb in HOLDERS else None
        if claim is not None:
            first = claim.answers.get(request_id)
        else:
            first = self.remembered.get(request_id) if verb in PERSONS_VERBS else None
            first = first if first and first[2] + KEPT > self.now else None
        if first is not None:
            return first[1] | {"again": True} if first[0] == asked else {"error": "REQUEST_ID_REUSED"}
        answer = super().do(verb, mark=mark, **arguments)
        if answer.get("outcome") in ("OK", "UPDATED", "CREATED") and not answer.get("again"):
            if claim is not None:
                claim.answers[request_id] = (asked, answer, self.now)
            elif verb in PERSONS_VERBS:
                self.remembered[request_id] = (asked, answer, self.now)
        return answer

    def _shown(self, receipt: Receipt) -> Claim | None:
        """The claim whose genuine receipt this is, whatever has become of it since."""
        name, generation, nonce, epoch = receipt or ("", 0, "", 0)
        task = self.tasks.get(name or "")
        claim = task.claims[generation - 1] if task and 0 < generation <= task.generation else None
        return claim if claim and (claim.nonce, claim.epoch) == (nonce, epoch) else None
