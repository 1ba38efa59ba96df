"""A program as a user writes it: mypy --strict and pyright accept it without an assert or an ignore."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import tenure
from tenure import AsyncClient, Cancel, Client, Context, Handle, NewTask, Worker

worker = Worker(sys.argv[1], "shop", agent="scout", lease="5m", create=True)


@worker.task("resize")
def resize(ctx: Context, image: str, width: int = 100) -> dict[str, int]:
    ctx.progress(50, "half way")
    return {image: width}


@worker.task("greet")
async def greet(ctx: tenure.AsyncContext, name: str) -> str:
    await ctx.progress(10, "thinking")
    return f"hello {name}"


def by_functions() -> int:
    handle: Handle[dict[str, int]] = resize.configure(priority="high", deadline="2h").enqueue("a.png", width=3)
    greeting = greet.enqueue(name="mia")
    worker.run(until_empty=True)
    sizes = handle.result(timeout=timedelta(seconds=20))
    return sizes["a.png"] + len(greeting.result())


def by_hand(client: Client) -> str:
    added = client.add("Write it up", tags=["docs"], not_before=datetime.now(UTC), max_attempts=2)
    grant = client.claim(added.task["key"], lease=timedelta(minutes=5)).check()
    client.checkpoint(grant.receipt, {"page": 1}).check()
    answer = client.submit(grant.receipt, {"pages": 3}, "done").check()
    return f"{grant.task['title']}, attempt {grant.attempt}: {answer.outcome}"


def report(client: Client) -> str:
    slow = [task["key"] for task in client.tasks(state="completed") if "done_at" in task]
    whole = client.show(slow[0]) if slow else client.show("A-001")
    age = datetime.now(UTC) - tenure.as_datetime(whole["created_at"])
    spent = {row.get("operation", ""): row["cost_usd"] for row in client.spent("operation")}
    last = client.log(limit=1)[-1]["kind"]
    return f"{whole['title']} {client.status()['tasks']} {age < timedelta(hours=1)} {len(spent)} {last.count('.')}"


def refused(client: Client) -> str:
    try:
        client.claim().check()
    except tenure.NothingToClaim as nothing:
        return nothing.code
    return "claimed"


async def in_a_loop(url: str) -> int:
    async with AsyncClient(url, "shop", agent="leo") as client:
        by = datetime.now(UTC) + timedelta(hours=1)
        lines = await client.add_many([NewTask(title=f"Part {n}", type="part", deadline=by) for n in range(3)])
        grant = (await client.claim(types=["part"], wait="1s")).check()
        (await client.fail(grant.receipt, "no", "permanent")).check()
        await client.do(Cancel(project="shop", task=lines[1]["id"]))
        ended = await client.wait(grant.task["id"], timeout=20)
        agents = [agent["name"] for agent in await client.agents()]
        return len(lines) if not ended.ok and "leo" in agents else 0


def main() -> None:
    with Client(sys.argv[1], "shop", agent="mia", create=True) as client:
        print(by_functions(), by_hand(client), refused(client), asyncio.run(in_a_loop(sys.argv[1])))
        print(report(client))
    worker.close()


main()
