"""What must hold at the end of the proof `spending`, and the figures that it ends with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests.reliability import spending_sums as sums
from tests.reliability.spending_plan import SLOW, SLOW_MOST
from tests.reliability.spending_sums import TOKENS, nano

if TYPE_CHECKING:
    from tests.reliability.spending import Proof

TASK, AGENT, MODEL = 0, 2, 3  # places in the key of a claim's sums
ENDS = {  # how the first try ends that goes wrong so
    "fails": ("FAILED", "task"), "invalid": ("FAILED", "invalid_output"), "unmatched": ("FAILED", "invalid_output"),
    "untested": ("SUBMITTED", "invalid_output"), "killed": ("FAILED", "crash"),
    "overruns": ("PAUSED", "budget_exceeded"),
}  # fmt: skip


def wrong(proof: Proof) -> list[str]:
    """What does not hold; empty when everything does."""
    entries = sums.diary(proof.control)
    claims = sums.spent(entries)
    return [
        *_usage(proof, claims), *_budgets(proof, claims), *_projection(proof, claims), *_throttle(proof, claims),
        *_savings(proof, claims), *_lineage(proof), *_models(proof, entries), *_artifacts(proof, entries),
        *_ground(proof),
    ]  # fmt: skip


def _differs(what: str, found: Any, expected: Any) -> Iterator[str]:
    if found != expected:
        yield f"{what}: {found!r}, where {expected!r} is expected"


# --- money --------------------------------------------------------------------------------------------------


def _usage(proof: Proof, claims: Any) -> Iterator[str]:
    """By task, agent and model, each against the diary; and so against each other."""
    for name, place in (("task", TASK), ("agent", AGENT), ("model", MODEL)):
        said = {row[name]: row for row in proof.tenure("usage", "--by", name, "--limit", "1000")}
        expected = sums.by(place, claims)
        yield from _differs(f"usage by {name}", sorted(said), sorted(expected))
        for key in said.keys() & expected.keys():
            found = {kind: said[key][kind] for kind in TOKENS} | {"nano": nano(said[key]["cost_usd"])}
            yield from _differs(f"usage of {name} {key}", found, expected[key])
            yield from _differs(f"what nobody priced of {key}", said[key]["unpriced"], 0)


def _budgets(proof: Proof, claims: Any) -> Iterator[str]:
    found = {budget["id"]: budget for budget in proof.tenure("budget", "list")}
    found |= {f"task:{budget['task']}": budget for budget in proof.tenure("budget", "list", "task")}
    expected = {"project": sums.total(claims), f"agent:{SLOW}-1": sums.total(claims, lambda _, a: a == f"{SLOW}-1")}
    for task in proof.plan["tasks"]:
        if "max_cost_usd" in task.get("constraints", {}):
            key = proof.keys[task["name"]]
            expected[f"task:{key}"] = sums.total(claims, lambda t, _, key=key: t == key)
    yield from _differs("budgets", sorted(found), sorted(expected))
    for id in found.keys() & expected.keys():
        yield from _differs(f"consumed of {id}", nano(found[id]["consumed"]), expected[id])
        yield from _differs(f"reserved of {id}", nano(found[id]["reserved"]), 0)
        left = nano(found[id]["allocated"]) - expected[id]
        yield from _differs(f"what is left of {id}", nano(found[id]["remaining"]), left)


def _projection(proof: Proof, claims: Any) -> Iterator[str]:
    """What was spent in this hour, and no verdict from it."""
    said = proof.tenure("budget", "projection")
    consumed = sums.total(claims)
    yield from _differs("spent", (nano(said["day"]["spent"]), nano(said["week"]["spent"])), (consumed, consumed))
    yield from _differs("decided", (said["decided"], said["days_left"], said["advice"]), (False, None, "CONTINUE"))
    yield from _differs("open tasks", (said["open_tasks"] or {}).get("tasks", 0), 0)


def pauses(proof: Proof, claims: Any) -> list[tuple[int, int]]:
    """Of the throttled agent: from each claim to the next, and how long that had to be; microseconds."""
    agent = f"{SLOW}-1"
    its = sorted(
        (claim["acquired_at"], key, claim["generation"])
        for key in proof.keys.values()
        for claim in proof.client.history(key)
        if claim["agent"] == agent
    )
    allocated = nano(proof.tenure("budget", "show", f"agent:{agent}")["allocated"])
    consumed, found = 0, []
    for (at, key, generation), (then, _, _) in pairwise(its):
        reserved = nano(SLOW_MOST) - _before(claims, key, generation)
        found.append((then - at, sums.spacing(allocated, consumed, reserved) if consumed else 0))
        consumed += sum(used["nano"] for (t, g, *_), used in claims.items() if (t, g) == (key, generation))
    return found


def _before(claims: Any, key: str, generation: int) -> int:
    """What earlier tries of the task have cost: the claim reserves what is left of what it may cost."""
    return sum(used["nano"] for (t, g, *_), used in claims.items() if t == key and g < generation)


def _throttle(proof: Proof, claims: Any) -> Iterator[str]:
    found = pauses(proof, claims)
    if not any(wanted for _, wanted in found):
        yield "no claim had to wait"
    yield from (f"a claim after {was} µs, where {wanted} had to pass" for was, wanted in found if was < wanted)


def _savings(proof: Proof, claims: Any) -> Iterator[str]:
    said = proof.tenure("model", "savings")
    found = {t["tier"]: (nano(t["cost_usd"]), nano(t["middle_usd"])) for t in said["tiers"]}
    expected = sums.savings(claims)
    yield from _differs("savings by tier", found, expected)
    own, middle = (sum(part) for part in zip(*expected.values(), strict=True))
    yield from _differs("saved", (nano(said["saved_usd"]), said["saved"]), (middle - own, (middle - own) / middle))
    yield from _differs("models without a tier", said["unknown"], [])


# --- work ---------------------------------------------------------------------------------------------------


def _lineage(proof: Proof) -> Iterator[str]:
    """First tries ended as they were made to; every task has one accepted result, and a transcript of each try."""
    for task in proof.plan["tasks"]:
        key, first = proof.keys[task["name"]], task["spec"]["script"].get("first")
        lineage = [(claim["release_reason"], claim["error_class"]) for claim in proof.client.history(key)]
        expected = ([ENDS[first]] if first else []) + [("COMPLETED", None)]
        if task.get("output", {}).get("validation") == "test-pass":
            expected[-1] = ("SUBMITTED", None)
        yield from _differs(f"lineage of {key} ({first})", lineage, expected)
        accepted = [result["generation"] for result in proof.client.results(key) if result["accepted"]]
        yield from _differs(f"accepted results of {key}", accepted, [len(expected)])
        kept = {a["generation"] for a in proof.client.artifacts(key) if a["name"] == "transcript.jsonl"}
        yield from _differs(f"transcripts of {key}", kept, set(range(1, len(expected) + 1)))


def _models(proof: Proof, entries: list[dict[str, Any]]) -> Iterator[str]:
    """What does not hang on estimates: critical or large work goes to the top, chores to the small tier."""
    tasks = {proof.keys[task["name"]]: task for task in proof.plan["tasks"]}
    for entry in entries:
        task = tasks[entry["task"]]
        is_top = task["priority"] == "critical" or task["constraints"]["complexity"] > 8
        expected = "top" if is_top else "small" if task.get("type") == "chore" else entry["tier"]
        yield from _differs(f"tier of {entry['task']}", entry["tier"], expected)
        most = task["constraints"].get("max_cost_usd") if entry["form"] == "claude" else None
        yield from _differs(f"what {entry['task']} was told that it may cost", entry["budget"], most)
        headings = ("How the last attempt", "The last result was refused", "Checkpoint of")
        saw = any(said.startswith(headings) for said in entry["saw"])
        yield from _differs(f"{entry['task']} was told of the try before", saw, entry["generation"] > 1)


def _artifacts(proof: Proof, entries: list[dict[str, Any]]) -> Iterator[str]:
    """What was put by the accepted generation is what the next ones had in their hands."""
    made = {}
    for task in proof.plan["tasks"]:
        script = task["spec"]["script"]
        if script.get("puts"):
            key = proof.keys[task["name"]]
            file = proof.control / "made" / f"{key}.{len(proof.client.history(key))}.{script['puts']}"
            made[task["name"]] = (f"{key}/{script['puts']}", hashlib.sha256(file.read_bytes()).hexdigest())
    needs = {proof.keys[task["name"]]: task.get("depends_on", ()) for task in proof.plan["tasks"]}
    for entry in entries:
        if "got" in entry:
            expected = dict(made[name] for name in needs[entry["task"]] if name in made)
            yield from _differs(f"files that {entry['task']} was given", entry["got"], expected)


def _ground(proof: Proof) -> Iterator[str]:
    from tests.processes.marks import marked

    yield from _differs("processes that are left", marked(f"PROOF_MARK={proof.mark}"), [])
    proof.tenure("db", "check", **(proof.place.behind if proof.place else {}))
    yield from (
        f"left in the outbox: {path.name}" for path in proof.work.parent.glob(".local/state/tenure/stores/*/outbox/*")
    )


# --- telling ------------------------------------------------------------------------------------------------


def usd(amount: int) -> str:
    return f"${amount / 10**9:.6f}"


def figures(proof: Proof) -> str:
    claims = sums.spent(sums.diary(proof.control))
    ahead = proof.tenure("budget", "projection")
    by_tier = sums.savings(claims)
    own, middle = (sum(part) for part in zip(*by_tier.values(), strict=True))
    tiers = ", ".join(f"{tier} {usd(cost)} for {usd(instead)}" for tier, (cost, instead) in sorted(by_tier.items()))
    waited = [(was, wanted) for was, wanted in pauses(proof, claims) if wanted]
    was, wanted = [min(part) / 1e6 for part in zip(*waited, strict=True)]
    models = sums.by(MODEL, claims)
    told = "; ".join(f"{model} {usd(used['nano'])}" for model, used in sorted(models.items()))
    tries = sum(len(proof.client.history(key)) for key in proof.keys.values())
    return "\n".join((
        f"{tries} claims, {len(sums.by(AGENT, claims))} agents, {len(models)} models: {told}",
        f"{usd(sums.total(claims))} by diary, task, agent, model and budget alike; no reservations any more",
        f"projection: {usd(nano(ahead['day']['spent']))} in {ahead['day']['seconds']:.0f} s: too early for a verdict",
        f"throttled: {len(waited)} pauses, of {wanted:.2f} s at least; the shortest was {was:.2f} s",
        f"routing: {usd(own)}, all in the middle {usd(middle)}: {(middle - own) / middle:.1%} saved ({tiers})",
        f"on the way: {'; '.join(proof.met)}",
    ))  # fmt: skip
