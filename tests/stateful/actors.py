"""Two that read the same steps: the player acts them on the model, the clerk writes them as commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, get_args

from tenure.core import commands
from tenure.core.land_request import LandRequest
from tenure.core.outcomes import Outcome
from tenure.core.records import RetryPolicy
from tests.stateful.model import World
from tests.stateful.model_landings import LANDING
from tests.stateful.model_rows import SECOND, Answer, Receipt

Step = tuple[str, dict[str, Any]]
Turn = tuple[Any, ...]
History = list[Turn]

RECEIPTED = ("renew", "start", "progress", "checkpoint", "submit", "fail", "release", "ask", "wait", "spawn",
             "reserve", "usage", "submit_to_land")  # fmt: skip
ALONE = ("renew_reservation", "unreserve")  # by the receipt of a reservation
BY_TAG = {kind.__struct_config__.tag: kind for kind in get_args(commands.AnyCommand)}
KINDS: dict[str, type[commands.Command]] = {
    "reserve_alone": commands.Reserve,
    "limit_generations": commands.DefineProject,
    "submit_to_land": commands.Submit,
    "take_landing": commands.TakeValidation,
    "record_landing": commands.Land,
    "settle_landing": commands.Judge,
    "block_landing": commands.Undecide,
}


class Player:
    """Plays turns on the model. A step that names what was never made is left out: it gives no answer."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.start = world.now

    def play(self, turn: Turn) -> Iterator[tuple[Step, Answer]]:
        kind, *rest = turn
        if kind == "advance":
            self.world.advance(rest[0])
        elif kind == "jump_back":
            self.world.jump_back(rest[0])
        elif kind == "new_epoch":
            self.world.new_epoch()
        elif kind == "do":
            for verb, arguments in rest[0]:
                ready = self._resolved(verb, arguments)
                if ready is not None:
                    yield (verb, arguments), self.world.do(verb, **ready)

    def _resolved(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        resolved = dict(arguments)
        named = [arguments.get("task"), arguments.get("parent")]
        if "needs" in arguments:
            named += [needed for needed, _ in arguments["needs"]] if verb == "add" else [arguments["needs"]]
        if verb == "plan":
            local = {task["name"] for task in arguments["tasks"]}
            named += [n for task in arguments["tasks"] for n, _ in task.get("needs", ()) if n not in local]
        if any(name and name != "nobody" and name not in self.world.tasks for name in named):
            return None
        if verb == "edit" and "text" in arguments and self._state(arguments["task"]) in ("completed", "cancelled"):
            return None
        if not self._is_modelled(verb, arguments):
            return None
        if verb == "undo" and not self.world.is_clear(arguments["of"]):
            return None
        if verb == "send" and arguments["to"] == "@all" and any(a.was_terminated for a in self.world.agents.values()):
            return None  # who of those is there is another matter
        if verb == "send" and arguments["to"][0] != "@" and arguments["to"] not in self.world.agents:
            return None
        if verb in (*RECEIPTED, *ALONE):
            receipt = self.receipt(*arguments["receipt"])
            if receipt == ():
                return None
            resolved["receipt"] = receipt
        for field in ("deadline", "not_before"):
            if field in arguments:
                resolved[field] = arguments[field] + self.start
        return resolved

    def _is_modelled(self, verb: str, arguments: dict[str, Any]) -> bool:
        """What is done with results that are to be landed; of edits, adoptions and resets beside them nothing is."""
        if verb in LANDING[1:] and arguments["taker"] not in self.world.takers:
            return False
        if verb == "submit_to_land":
            task = self.world.tasks.get((self.world.receipts.get(arguments["receipt"][0]) or ("",))[0] or "")
            self.world.settle()
            return task is not None and task.held and not task.claims[-1].goes_on
        if verb in ("adopt", "reset", "undo", "edit", "retry"):
            return not any(task.has_waited for task in self.world.tasks.values()) or (
                verb == "retry" or (verb == "edit" and "priority" in arguments)
            )
        return True

    def _state(self, name: str) -> str:
        self.world.settle()
        return self.world.tasks[name].state if name in self.world.tasks else ""

    def receipt(self, name: str, forgery: str) -> Receipt | tuple[()]:
        genuine = self.world.receipts.get(name)
        if genuine is None:
            return ()
        task, generation, nonce, epoch = genuine
        forged: dict[str, Receipt] = {
            "": genuine,
            "future": (task, generation + 1, nonce, epoch),
            "nonce": (task, generation, "another", epoch),
            "epoch": (task, generation, nonce, -1),
            "nowhere": (None, generation, nonce, epoch),
            "malformed": None,
        }
        return forged[forgery]


class Clerk:
    """Writes the same steps as commands, and remembers which receipt the engine gave for which name."""

    def __init__(self, project: str, start: int, refs: Callable[[str], str]) -> None:
        self.project = project
        self.start = start
        self.refs = refs
        self.receipts: dict[str, str] = {}
        self.marked: dict[str, str] = {}  # ids of commands that may be undone

    def command(self, verb: str, arguments: dict[str, Any]) -> commands.Command:
        made = {field: value for field, value in arguments.items() if field != "mark"}
        for field in ("lease", "retry_after"):
            if field in made:
                made[field] = made[field] / SECOND
        if "taker" in made and verb != "take_landing":
            made["receipt"] = (made.pop("taker"), "")
        if "receipt" in made and verb != "claim":
            made["receipt"] = self._receipt(*made["receipt"])
        if "task" in made:
            made["task"] = self.refs(made["task"])
        writer = getattr(self, f"_{verb}", None)
        made = writer(made) if writer else made
        kind = KINDS.get(verb) or BY_TAG[verb]
        return kind(project=self.project, **made)

    def learn(self, step: Step, outcome: Outcome) -> None:
        verb, arguments = step
        if "mark" in arguments and outcome.command_id:
            self.marked[arguments["mark"]] = outcome.command_id
        if verb == "take_landing" and outcome.receipt:
            self.receipts[arguments["taker"]] = outcome.receipt
        if verb == "claim" and outcome.receipt:
            self.receipts[arguments["receipt"]] = outcome.receipt
        elif verb == "reserve_alone" and outcome.receipt:
            self.receipts[arguments["hold"]] = outcome.receipt
        elif verb == "claim_next":
            for name, claim in zip(arguments["receipts"], outcome.claims or (outcome,), strict=False):
                if claim.receipt:
                    self.receipts[name] = claim.receipt

    def _receipt(self, name: str, forgery: str) -> str:
        text = self.receipts[name]
        if not forgery:
            return text
        task, generation, token = re.split("[@]|:(?=[^:]*$)", text)
        if forgery == "future":
            return f"{task}@{int(generation) + 1}:{token}"
        if forgery == "nonce":
            return f"{task}@{generation}:{token[:-1]}{'0' if token[-1] != '0' else '1'}"
        if forgery == "epoch":
            return f"{task}@{generation}:{'0' if token[0] != '0' else '1'}{token[1:]}"
        return f"Q-404@{generation}:{token}" if forgery == "nowhere" else f"{task}@{generation}:{token[:-2]}"

    @staticmethod
    def _submit_to_land(made: dict[str, Any]) -> dict[str, Any]:
        return {**made, "land": LandRequest(commit="c" * 40, onto="main")}

    @staticmethod
    def _take_landing(made: dict[str, Any]) -> dict[str, Any]:
        del made["taker"]
        return {**made, "phase": "land"}

    @staticmethod
    def _record_landing(made: dict[str, Any]) -> dict[str, Any]:
        new = made.pop("new").removeprefix("n").rjust(40, "0")
        return {**made, "branch": "main", "old": "a" * 40, "new": new}

    @staticmethod
    def _settle_landing(made: dict[str, Any]) -> dict[str, Any]:
        how = made.pop("how")
        return {**made, "ok": how == "ok", "conflict": how == "conflict", "reasons": () if how == "ok" else ("no",)}

    @staticmethod
    def _block_landing(made: dict[str, Any]) -> dict[str, Any]:
        return {**made, "reason": "lib.py is changed"}

    @staticmethod
    def _claim(made: dict[str, Any]) -> dict[str, Any]:
        del made["receipt"]
        return made

    @staticmethod
    def _claim_next(made: dict[str, Any]) -> dict[str, Any]:
        return {"n": len(made.pop("receipts")), **made}

    @staticmethod
    def _reserve(made: dict[str, Any]) -> dict[str, Any]:
        """Whoever shows a claim's receipt is its holder, whatever it calls itself."""
        return {"agent": "ann", "session": "s1", **made, "patterns": tuple(made["patterns"])}

    @staticmethod
    def _reserve_alone(made: dict[str, Any]) -> dict[str, Any]:
        del made["hold"]
        return {**made, "patterns": tuple(made["patterns"])}

    @staticmethod
    def _checkpoint(made: dict[str, Any]) -> dict[str, Any]:
        return {**made, "data": {"next": "go on"}}

    @staticmethod
    def _ask(made: dict[str, Any]) -> dict[str, Any]:
        return {**made, "question": "which one?"}

    @staticmethod
    def _answer(made: dict[str, Any]) -> dict[str, Any]:
        return {**made, "text": "that one"}

    @staticmethod
    def _spawn(made: dict[str, Any]) -> dict[str, Any]:
        names = made.pop("names")
        return {**made, "tasks": tuple(commands.NewTask(title=name, name=name) for name in names)}

    @staticmethod
    def _register(made: dict[str, Any]) -> dict[str, Any]:
        return {"max_concurrent_tasks": made.pop("most", None), **made}

    def _edit(self, made: dict[str, Any]) -> dict[str, Any]:
        changes: dict[str, Any] = {"priority": made.pop("priority")} if "priority" in made else {}
        if "text" in made:
            changes["description"] = f"text {made.pop('text')}"
        if made.pop("spec", False):
            changes["spec"] = {"prompt": f"another text, as {len(str(made))} says"}
        return {**made, "changes": changes}

    def _link(self, made: dict[str, Any]) -> dict[str, Any]:
        return {**made, "needs": self.refs(made["needs"])}

    _unlink = _link

    def _undo(self, made: dict[str, Any]) -> dict[str, Any]:
        return {"command_id": self.marked[made.pop("of")], **made}

    @staticmethod
    def _usage(made: dict[str, Any]) -> dict[str, Any]:
        return {"model": "m", "cost_usd": f"{made.pop('cents') / 100:.2f}", **made}

    @staticmethod
    def _limit_generations(made: dict[str, Any]) -> dict[str, Any]:
        return {"limits": {"max_generations_per_task": made["most"]}}

    @staticmethod
    def _set_budget(made: dict[str, Any]) -> dict[str, Any]:
        return {"usd": f"{made['cents'] / 100:.2f}", "default_estimate": f"{made['estimate'] / 100:.2f}"}

    def _plan(self, made: dict[str, Any]) -> dict[str, Any]:
        local = {task["name"] for task in made["tasks"]}
        tasks = [
            commands.NewTask(
                title=task["name"],
                name=task["name"],
                priority=task.get("priority", 50),
                depends_on=tuple(
                    commands.Dependency(task=name if name in local else self.refs(name), on_failure=how)
                    for name, how in task.get("needs", ())
                ),
            )
            for task in made["tasks"]
        ]
        made["name"] = made.pop("plan")
        return {**made, "tasks": tuple(tasks)}

    def _add(self, made: dict[str, Any]) -> dict[str, Any]:
        new: dict[str, Any] = {"title": made.pop("name")}
        constraints: dict[str, Any] = {}
        for field, value in made.items():
            if field == "needs":
                new["depends_on"] = tuple(
                    commands.Dependency(task=self.refs(name), on_failure=on_failure) for name, on_failure in value
                )
            elif field == "requires":
                constraints["required_capabilities"] = value
            elif field == "region":
                constraints["region"] = value
            elif field == "max_duration":
                constraints["max_duration"] = value // SECOND
            elif field == "touches":
                new["touches"] = tuple(pattern for pattern in value if ":" not in pattern)
                constraints["needs"] = [pattern for pattern in value if ":" in pattern]
            elif field in ("deadline", "not_before"):
                new[field] = value + self.start
            elif field == "boost":
                new[field] = value / 100
            elif field == "parent":
                new[field] = self.refs(value)
            else:
                new[field] = RetryPolicy(**value) if field == "retry" else value
        return {"task": commands.NewTask(**new, constraints=constraints)}
