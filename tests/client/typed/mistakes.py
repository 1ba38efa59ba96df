"""Mistakes that a type checker must see: each line that ends in `# wrong` is an error, and no other."""

from __future__ import annotations

import tenure
from tenure import AsyncClient, Client, Context, Worker

worker = Worker("memory://typed", "shop")


@worker.task("resize")
def resize(ctx: Context, image: str, width: int = 100) -> dict[str, int]:
    return {image: width}


def sync(client: Client) -> None:
    client.add("x", priorty="high")  # wrong
    client.add("x", deadline=3.5j)  # wrong
    client.claim(track="A")  # wrong
    client.claim(lease=[1])  # wrong
    client.update("A-001", titel="y")  # wrong
    client.set_budget("project", usd=5, perod="day")  # wrong
    client.register(capabilites=["python"])  # wrong
    client.claim().receipt.upper()  # wrong
    client.claim().check().receipt.upper()
    print(client.add("x").task["kee"])  # wrong
    print(client.add("x").recept)  # wrong
    client.submit("receipt", summry="done")  # wrong
    print(client.show("A-001")["titel"])  # wrong
    print(client.status()["taks"])  # wrong
    print([task["kee"] for task in client.tasks()])  # wrong
    print(client.log()[0]["sequence"].upper())  # wrong
    print(client.webhook("hook")["ulr"])  # wrong
    print(client.tasks(stat="ready"))  # wrong
    print(client.tasks(state=5), client.tasks(limit=5))  # wrong
    print(client.log(levl="info"))  # wrong
    print(client.log(after="first"))  # wrong
    print(client.agents(stat="active"))  # wrong
    print(client.forecast(runs="many"))  # wrong
    Client("shop.db", "shop", creat=True)  # wrong
    print(client.why("A-001")["reasons"][0].upper(), tenure.as_datetime(client.show("A-001")["created_at"]).year)


def functions() -> None:
    resize.enqueue("a.png", width="wide")  # wrong
    resize.enqueue(img="a.png")  # wrong
    resize.enqueue()  # wrong
    resize.configure(prio=1)  # wrong
    resize.enqueue("a.png").result().append(1)  # wrong
    resize.enqueue("a.png").result()["a.png"].bit_length()


async def loop(client: AsyncClient, ctx: tenure.AsyncContext) -> None:
    client.add("x")  # wrong
    client.wait("A-001")  # wrong
    ctx.progress(50)  # wrong
    (await client.claim()).check().receipt.upper()
    await client.add("x", priorty="high")  # wrong
    print((await client.budget())["alocated"])  # wrong
    print((await client.budget())["allocated"])
