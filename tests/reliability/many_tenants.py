"""Many tenants on one server: all are drained, limits count exactly, and those without work cost next to nothing.

`drain`: each of 200 tenants has 20 tasks of the same keys; one server hands all of them out and takes all results, and
no agent ever gets a task of another tenant. `limits`: the 101st live claim of a default tenant is refused over two
projects; an enterprise tenant that was raised to 10,000 holds 10,000. `idle`: what 1,000 tenants without work add to
the memory and the processor time of a server that leads them.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tenure import Client
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.engine import Engine
from tenure.engine.duties.tenant_rounds import SPREAD
from tenure.engine.runtime.tenancy import TenantEngines
from tests.reliability import results
from tests.servers.postgres import PostgresServer
from tests.servers.tenure import TenureServer

SECOND_HALF = "q"
PARTS = ("drain", "limits", "idle")
BEGINS = 10.0  # seconds until a server leads


def added(url: str, count: int, tier: str = "default") -> dict[str, Engine]:
    """That many tenants, each with a project."""
    home = Client(url, "default", create=True).engine
    for number in range(count):
        home.do(c.AddTenant(project="", tenant=f"t{number}", tier=tier))
    engines = TenantEngines(home, time.monotonic)
    made = {row.id: engines.of(row) for row in engines.rows()}
    for engine in made.values():
        engine.do(c.DefineProject(project="p"))
    return made


def key_of(engine: Engine) -> str:
    made = engine.do(c.CreateKey(project="", name="agent", role="owner"))
    assert made.secret is not None
    return made.secret


# --- drain ----------------------------------------------------------------------------------------------------


def drain(url: str, tenants: int, tasks: int, options: Sequence[str] = ()) -> dict[str, Any]:
    engines = added(url, tenants)
    keys = {name: key_of(engine) for name, engine in engines.items()}
    for name, engine in engines.items():
        new = [c.Add(project="p", task=NewTask(title=name)) for _ in range(tasks)]
        assert all(getattr(answer, "ok", False) for answer in engine.run(new))
    got: Counter[str] = Counter()
    foreign: list[str] = []
    lock = threading.Lock()
    began = time.monotonic()
    with TenureServer(url, *options, settings={"TENURE_SERVE_AUTH": "required"}) as server:

        def work(name: str) -> None:
            client = Client(server.url, "p", key=keys[name], agent="agent", session="s")
            try:
                while (claimed := client.claim(lease="5m")).ok:
                    with lock:
                        got[name] += 1
                        if (claimed.task or {}).get("title") != name:
                            foreign.append(name)
                    assert client.submit(claimed.receipt, {"of": name}).ok
            finally:
                client.close()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, keys))
        seconds = time.monotonic() - began
    left = sum(
        len(engine.read(lambda tx: [t for t in tx.find(_task(), {"project": "p"}) if t.state != "completed"]))
        for engine in engines.values()
    )
    wrong = [name for name in engines if got[name] != tasks]
    return {
        "tenants": tenants, "tasks": tenants * tasks, "drained": sum(got.values()), "left": left,
        "wrong_tenants": len(wrong), "foreign": len(foreign), "seconds": round(seconds, 1),
    }  # fmt: skip


def _task() -> Any:
    from tenure.core.records import Task

    return Task


# --- limits ---------------------------------------------------------------------------------------------------


def claimed(engine: Engine, project: str, count: int) -> int:
    """Claim so many tasks of the project at most; how many were granted."""
    granted = 0
    while granted < count:
        answer = engine.do(
            c.ClaimNext(project=project, agent="a", session="s", n=min(100, count - granted), lease=3600)
        )
        if not answer.ok:
            return granted
        granted += len(answer.claims or (answer,))
    return granted


def limited(url: str, raised: int) -> dict[str, Any]:
    engines = added(url, 2)
    home = Client(url, "default").engine
    home.do(c.ChangeTenant(project="", tenant="t1", tier="enterprise", limits={"max_concurrent_claims": raised}))
    engines["t1"] = TenantEngines(home, time.monotonic).find("t1")
    for engine, count in ((engines["t0"], 80), (engines["t1"], raised // 2 + 1)):
        engine.do(c.DefineProject(project=SECOND_HALF))
        for project in ("p", SECOND_HALF):
            for start in range(0, count, 200):
                size = min(200, count - start)
                engine.run([c.Add(project=project, task=NewTask(title="t")) for _ in range(size)])
    small = [claimed(engines["t0"], project, 60) for project in ("p", SECOND_HALF)]
    refused = engines["t0"].do(c.ClaimNext(project=SECOND_HALF, agent="a", session="s", lease=3600))
    large = [claimed(engines["t1"], project, raised // 2) for project in ("p", SECOND_HALF)]
    beyond = engines["t1"].do(c.ClaimNext(project="p", agent="a", session="s", lease=3600))
    return {
        "default_held": sum(small), "default_101st": refused.outcome, "enterprise_held": sum(large),
        "enterprise_next": beyond.outcome,
    }  # fmt: skip


# --- idle -----------------------------------------------------------------------------------------------------


def measured(server: TenureServer, seconds: float) -> tuple[float, float]:
    """The server's memory in MB, and the share of a processor that it uses."""
    assert server.process is not None
    pid = server.process.pid
    before, began = _cpu(pid), time.monotonic()
    time.sleep(seconds)
    share = (_cpu(pid) - before) / (time.monotonic() - began)
    rss = next(
        int(line.split()[1]) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line[:5] == "VmRSS"
    )
    return rss / 1024, share


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(url: str, tenants: int, settle: float | None, seconds: float) -> dict[str, Any]:
    Client(url, "default", create=True).close()
    with TenureServer(url) as server:
        time.sleep(BEGINS)
        memory, share = measured(server, seconds)
    added(url, tenants)  # while nobody leads: the next leader looks at each of them once
    with TenureServer(url) as server:
        time.sleep(BEGINS)
        first_share = measured(server, seconds)[1]
        time.sleep(tenants * SPREAD if settle is None else settle)
        more_memory, more_share = measured(server, seconds)
    return {
        "tenants": tenants, "memory_mb": round(more_memory - memory, 1), "cpu_percent": round(100 * more_share, 2),
        "cpu_percent_first": round(100 * first_share, 2), "cpu_percent_before": round(100 * share, 2),
    }  # fmt: skip


def too_much(told: dict[str, Any]) -> bool:
    """Whether tenants without work cost more than they may."""
    before = told["cpu_percent_before"]
    return bool(
        told["memory_mb"] > 50 or told["cpu_percent"] > before + 1.0 or told["cpu_percent_first"] > before + 5.0
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability many_tenants", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--tenants", type=int, default=200, help="of `drain`")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--raised", type=int, default=10_000)
    parser.add_argument("--idle", type=int, default=1000, help="tenants without work")
    parser.add_argument("--settle", type=float, default=None, help="seconds before the measurement of idle tenants")
    parser.add_argument("--seconds", type=float, default=30.0, help="of that measurement")
    options = parser.parse_args(argv)
    figures: dict[str, Any] = {}
    faults: list[str] = []
    with PostgresServer() as server:
        if options.only in (None, "drain"):
            told = drain(server.create("drain"), options.tenants, options.tasks)
            if told["drained"] != told["tasks"] or told["left"] or told["wrong_tenants"] or told["foreign"]:
                faults.append(f"not all tenants got just their tasks: {told}")
            figures |= told
        if options.only in (None, "limits"):
            told = limited(server.create("limits"), options.raised)
            if told["default_held"] != 100 or told["enterprise_held"] != options.raised:
                faults.append(f"limits do not count exactly: {told}")
            figures |= told
        if options.only in (None, "idle"):
            told = idle(server.create("idle"), options.idle, options.settle, options.seconds)
            if too_much(told):
                faults.append(f"tenants without work cost too much: {told}")
            figures |= {f"idle_{name}": value for name, value in told.items()}
    print(figures)
    results.tell("many_tenants", figures, variant="")
    for fault in faults:
        print(f"FAILED: {fault}")
    return 1 if faults else 0
