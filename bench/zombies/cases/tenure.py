"""tenure: a lease that a thread renews, and a receipt with every write. Runs in our venv, on SQLite or PostgreSQL."""

from __future__ import annotations

import threading

from bench.zombies.stage import LEASE, Ending, act, me, place, run, say
from tenure import Client

PROJECT = "zombies"


def client() -> Client:
    where = place()
    return Client(where.get("postgres") or f"{where['folder']}/tenure.db", PROJECT, agent=me(), create=True)


def set_up() -> None:
    client().init()


def enqueue() -> None:
    client().add("the job")


def work() -> None:
    ending = Ending()
    own = client()
    while not ending.is_asked:
        claim = own.claim(lease=LEASE, wait=0.5)
        if not claim.ok or claim.receipt is None:
            continue
        is_done = threading.Event()
        renewing = threading.Thread(target=renew, args=(claim.receipt, is_done), daemon=True)
        renewing.start()
        result = act()
        is_done.set()
        renewing.join()
        outcome = own.submit(claim.receipt, data=result)
        say(f"submit answered {outcome.outcome}: {outcome.message}")


def renew(receipt: str, is_done: threading.Event) -> None:
    own = client()
    while not is_done.wait(LEASE * 0.4):
        own.renew(receipt)


def records() -> dict[str, object]:
    own = client()
    (task,) = own.tasks()
    accepted = [r["data"] for r in own.results(task["key"]) if r["accepted"]]
    history = own.history(task["key"])
    return {
        "is_finished": task["state"] == "completed",
        "result": accepted[0] if accepted else None,
        "rows": [
            {
                "generation": h["generation"], "agent": h["agent"], "reason": h["release_reason"],
                "is_accepted": h["result_accepted"] is True,
            }
            for h in history
        ],
        "trace": "; ".join(
            f"generation {h['generation']}: {h['agent']}, {h['release_reason']}"
            + "".join(f", its result refused ({r['reason']}) and kept" for r in h["refused"])
            for h in history
        ),
        "refused": [{"agent": r["agent"], "reason": r["reason"]} for h in history for r in h["refused"]],
    }  # fmt: skip


if __name__ == "__main__":
    run({"set_up": set_up, "enqueue": enqueue, "work": work, "records": records})
