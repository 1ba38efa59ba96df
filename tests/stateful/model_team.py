"""The model's team: holds on things that are not tasks, and mail."""

from __future__ import annotations

from tests.stateful.model_fence import Fence
from tests.stateful.model_rows import SECOND, Agent, Alone, Answer, Mail, Receipt, Refused


class Team(Fence):
    # --- reservations -------------------------------------------------------------------------------------

    def reserve(self, receipt: Receipt, patterns: list[str], mode: str = "exclusive") -> Answer:
        """With a claim, for as long as it lives, or with a reservation, on its lease. The mode is as it was last asked
        for: who asks for exclusive has it exclusive, or is refused."""
        if receipt is not None and receipt[0] in self.alone:
            return self._reserve_more(receipt, patterns, mode)
        task, claim, refusal = self._check(receipt, "reserve")
        if refusal:
            return refusal
        if self._in_the_way(patterns, mode, task, claim.session):
            return {"outcome": "DENIED_CONFLICT"}
        claim.holds |= dict.fromkeys(patterns, mode)
        self._go_on(task, claim)
        return {"outcome": "GRANTED"}

    def _reserve_more(self, receipt: Receipt, patterns: list[str], mode: str) -> Answer:
        hold, refusal = self._check_alone(receipt)
        if refusal:
            return refusal
        if self._in_the_way(patterns, mode, None, hold.session):
            return {"outcome": "DENIED_CONFLICT"}
        hold.holds |= dict.fromkeys(patterns, mode)
        return {"outcome": "GRANTED", "lease_until": hold.until}

    def reserve_alone(
        self, hold: str, patterns: list[str], agent: str, session: str, mode: str = "exclusive", lease: int = 0
    ) -> Answer:
        """Alone, on a lease of its own: 30 minutes unless it says otherwise."""
        self.agents.setdefault(agent, Agent())
        if self._in_the_way(patterns, mode, None, session):
            return {"outcome": "DENIED_CONFLICT"}
        lease = lease or 1800 * SECOND
        self.alone[hold] = Alone(dict.fromkeys(patterns, mode), session, lease, self.now + lease)
        self.receipts[hold] = (hold, 1, hold, self.epoch)
        return {"outcome": "GRANTED", "generation": 1, "lease_until": self.now + lease}

    def renew_reservation(self, receipt: Receipt, lease: int | None = None) -> Answer:
        hold, refusal = self._check_alone(receipt)
        if refusal:
            return refusal
        hold.lease = lease or hold.lease
        hold.until = self.now + hold.lease
        return {"outcome": "RENEWED", "lease_until": hold.until}

    def unreserve(self, receipt: Receipt) -> Answer:
        hold, refusal = self._check_alone(receipt)
        if refusal:
            return refusal
        hold.until = self.now
        return {"outcome": "OK"}

    def _check_alone(self, receipt: Receipt) -> tuple[Alone, Answer | None]:
        if receipt is None:
            raise Refused("INVALID_INPUT")
        name, generation, nonce, epoch = receipt
        hold = self.alone.get(name or "")
        if hold is None or hold.until <= self.now:
            return Alone({}, "", 0, 0), {"outcome": "NOT_FOUND"}
        if epoch != self.epoch:
            return hold, {"outcome": "STALE_EPOCH"}
        if generation != 1:
            return hold, {"outcome": "FUTURE_GENERATION"}
        if nonce != name:
            return hold, {"outcome": "SESSION_MISMATCH"}
        return hold, None

    # --- mail ---------------------------------------------------------------------------------------------

    def send(self, sender: str, to: str, text: str) -> Answer:
        """One copy for each recipient, as they are when it is sent; never for the sender, unless it is named."""
        if to == "@all":
            found = set(self.agents) - {sender}
        elif to.startswith("@track:"):
            at_work = [t for t in self.tasks.values() if t.held and t.track == to.removeprefix("@track:")]
            found = {t.claims[-1].agent for t in at_work} - {sender}
        elif to.startswith("@"):
            raise Refused("INVALID_INPUT")
        else:
            found = {to}
        self.mail.append(Mail(text, set(found)))
        return {"outcome": "CREATED", "recipients": found}

    def read(self, agent: str) -> Answer:
        found = [mail for mail in self.mail if agent in mail.unread_by]
        for mail in found:
            mail.unread_by.discard(agent)
        return {"outcome": "OK", "mail": len(found), "texts": sorted(mail.text for mail in found)}
