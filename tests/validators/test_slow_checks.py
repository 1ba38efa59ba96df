"""While hostile outputs are checked to their limit, claims of the same process go on. Figures with `-s`."""

import threading
import time
from pathlib import Path

from tenure import Client, NewTask
from tenure.validators.commands import TestPass
from tenure.validators.patterns import Regex
from tenure.validators.port import Output
from tenure.validators.schemas import JsonSchema
from tenure.validators.workers import Workers
from tests.validators.test_commands import IGNORES, python
from tests.validators.test_schemas import many_errors, never_ending

TASKS = 1500


def claimed(client: Client, until: threading.Event | None, most: int) -> list[float]:
    """Seconds that each claim took, until the event or the last task."""
    took = []
    while len(took) < most and not (until and until.is_set()):
        began = time.monotonic()
        assert client.claim().outcome == "GRANTED"
        took.append(time.monotonic() - began)
    return took


def figures(name: str, took: list[float]) -> str:
    ordered = sorted(took)
    at = {part: ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000 for part in (0.5, 0.99)}
    longest = ordered[-1] * 1000
    return f"{name}: {len(took)} claims, median {at[0.5]:.1f} ms, p99 {at[0.99]:.1f} ms, longest {longest:.1f} ms"


def test_claims_go_on_while_hostile_outputs_are_checked(tmp_path: Path) -> None:
    client = Client(str(tmp_path / ".tenure" / "tenure.db"), "shop", agent="ann", session="s", create=True)
    client.init()
    client.plan([NewTask(title=f"task {n}") for n in range(TASKS)])
    pool, is_over = Workers(), threading.Event()
    schemas, regex = JsonSchema(pool), Regex(pool)
    schemas.judge({"schema": True}, Output(1))
    alone = claimed(client, None, 200)
    hostile = [
        threading.Thread(target=schemas.judge, args=({"schema": never_ending()}, Output(8))),
        threading.Thread(target=schemas.judge, args=({"schema": many_errors(4, 9)}, Output(8))),
        threading.Thread(target=regex.judge, args=({"pattern": "(a+)+$"}, Output("a" * 5_000_000 + "!"))),
        threading.Thread(target=schemas.judge, args=({"schema": True}, Output("x" * 50_000_000))),
        threading.Thread(
            target=TestPass(python(IGNORES, timeout=1.0)).judge,
            args=({"command": "it"}, Output(None, folder=str(tmp_path))),
        ),
    ]

    def run() -> None:
        for thread in hostile:
            thread.start()
        for thread in hostile:
            thread.join()
        is_over.set()

    began = time.monotonic()
    running = threading.Thread(target=run)
    running.start()
    meanwhile = claimed(client, is_over, TASKS - 200)
    lasted = time.monotonic() - began
    running.join()
    pool.close()
    client.close()
    print(figures("alone", alone))
    print(figures(f"meanwhile ({lasted:.1f} s)", meanwhile))
    assert len(meanwhile) > 20
    assert max(meanwhile) < 1.0  # the engine never waits for a check
