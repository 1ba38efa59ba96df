"""`./x nightly [STEP …]`: everything that takes too long for `./x check`. A step that fails does not stop the others.

Together with `check` it proves what one long run would: every test with every parameter and in another order, each
interface on each store, every mutant, a longer run of each reliability harness, and the tests on the other versions of
Python and PostgreSQL. Each Debian release has its own pair of versions: see `tests/fresh.py`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests import fresh

ROOT = Path(__file__).resolve().parents[1]
TODAY = datetime.now(UTC).date().isoformat()  # the seed of the tests' order
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# A few minutes each. `./x check` has a short run with one seed, in `tests/{chaos,stateful,runner}`.
HARNESSES = {
    "storm": "--kills 1500",
    "storm on PostgreSQL": "--kills 400 --store postgres",
    "storm on MariaDB": "--kills 400 --store mariadb",
    "storm on Valkey": "--kills 400 --store valkey",
    "server_kills on MariaDB": "--kills 60 --store mariadb",
    "server_kills on Valkey": "--kills 60 --store valkey",
    "server_kills on Redis": "--kills 60 --store redis",
    "server_kills on Galera": "--kills 10 --store galera",
    "power_cuts on MariaDB": "--cuts 20 --store mariadb",
    "power_cuts on Valkey": "--cuts 40 --store valkey",
    "power_cuts on MariaDB, weak": "--cuts 5 --store mariadb --weak",
    "power_cuts on Valkey, weak": "--cuts 5 --store valkey --weak",
    "linearizability": "--histories 4000",
    "linearizability on PostgreSQL": "--histories 400 --store postgres",
    "linearizability on MariaDB": "--histories 400 --store mariadb",
    "linearizability on Valkey": "--histories 400 --store valkey",
    "api": "--cases 3000",
    "api on PostgreSQL": "--cases 1000 --postgres",
    "over_http": "",
    "tenants": "--requests 10000",
    "tenants on PostgreSQL": "--requests 2000 --postgres",
    "past": "",
    "past on PostgreSQL": "--store postgres",
    "tamper": "--tamperings 5000 --untouched 200",
    "tamper on PostgreSQL": "--tamperings 3000 --untouched 200 --store postgres",
    "many_tenants": "--tenants 50 --raised 1000 --idle 300",
    "serving": "--faults 60",
    "model": "--histories 4000",
    "model on PostgreSQL": "--histories 400 --store postgres",
    "model on MariaDB": "--histories 400 --store mariadb",
    "model on Valkey": "--histories 400 --store valkey",
    "run": "--tasks 30",
    "landing": "--kills 200",
    "spending": "--tasks 50",
    "spending on PostgreSQL": "--tasks 50 --store postgres",
    "powerloss": "--images 20000",
    "faults": "--share 0.2",
    "chaos": "--faults 200",
    "failover": "--sync 5 --async 3",
    "failover on Valkey": "--async 10 --store valkey",
    "moves": "--moves 6",
    "churn": "--minutes 3",
    "upgrade": "--tasks 100000",
    "large": "--tasks 300000",
    "mixed": "--seconds 60",
    "schedules": "--ticks 300",
    "schedules on PostgreSQL": "--ticks 300 --store postgres",
    "leaders": "--kills 100",
    "leaders on PostgreSQL": "--kills 100 --store postgres",
    "budgets": "--seconds 30",
    "budgets on PostgreSQL": "--seconds 30 --store postgres",
    "relay to NATS": "--sink nats",
    "relay to NATS, stopped": "--sink nats --events 2000 --stopped 180",
    "relay to Redis, stopped": "--sink redis --events 2000 --stopped 180",
    "relay to RabbitMQ": "--sink rabbitmq",
    "relay to Redis": "--sink redis",
    "broker NATS": "--sink nats",
    "broker RabbitMQ": "--sink rabbitmq --tasks 2000",
    "broker Redis": "--sink redis --tasks 2000",
    "broker NATS, workers of the SDK": "--sink nats --tasks 2000 --worker sdk",
    "fleet": "",
    "fleet on PostgreSQL": "--store postgres",
    "loop": "",
    "loop on PostgreSQL": "--store postgres",
    "webhooks": "",
    "hanging sink": "",
    "alerts": "",
    "strangers": "",
    "alerts of a server with workers": "--workers 2",
    "notices": "",
    "clusters": "",
}


class Step(NamedTuple):
    group: str
    name: str
    action: Callable[[], int | str]  # an exit code, or why the step cannot run here


def steps() -> list[Step]:
    found = [
        Step("tests", "all tests, with coverage", partial(x, "coverage", "--shuffle", TODAY)),
        Step("agents", "all agent CLIs", partial(x, "test", "agents")),
        Step("docs", "the documentation as a site", partial(x, "docs", "--site")),
        Step("mutants", "every mutant", partial(x, "mutants", "--jobs", "2")),
    ]
    for name, options in HARNESSES.items():
        harness = name.partition(" ")[0]
        found.append(Step("reliability", name, partial(x, "reliability", harness, *options.split())))
    found += [Step("pythons", f"Python {version}", partial(on_python, version)) for version in PYTHONS]
    found += [Step("fresh", f"Debian {release}", partial(on_debian, release)) for release in fresh.RELEASES]
    return found


def x(*words: str) -> int:
    return subprocess.run([sys.executable, ROOT / "x", *words], cwd=ROOT, check=False).returncode


def on_python(version: str) -> int | str:
    """Run the tests on another Python, in a copy of the tree: `.venv` belongs to one Python."""
    python = interpreter(version)
    if python is None:
        return f"there is no Python {version} here"
    with tempfile.TemporaryDirectory(prefix=f"tenure-python{version}-") as scratch:
        tree = Path(scratch, "tenure")
        fresh.copy_tree(tree)
        return subprocess.run([python, "x", "test"], cwd=tree, check=False).returncode


def interpreter(version: str) -> Path | None:
    """One on the PATH that starts (a shim of pyenv may not), or one of pyenv's own."""
    places = (*os.environ["PATH"].split(":"), *Path.home().glob(f".pyenv/versions/{version}.*/bin"))
    for program in (Path(place, f"python{version}") for place in places):
        if program.exists() and not subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode:
            return program
    return None


def on_debian(release: str) -> int | str:
    return "only root can make a Debian" if os.geteuid() else fresh.main([release])


def main(argv: list[str]) -> int:
    groups = list(dict.fromkeys(step.group for step in steps()))
    names = [step.name for step in steps()]
    parser = argparse.ArgumentParser(prog="./x nightly", description="Everything that takes too long for `./x check`.")
    parser.add_argument(
        "steps", nargs="*", choices=[[], *groups, *names], metavar="STEP",
        help=f"a group ({', '.join(groups)}) or the name of a step",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="name the steps and run none")
    given = parser.parse_args(argv)
    chosen = [step for step in steps() if not given.steps or {step.group, step.name} & set(given.steps)]
    outcomes: list[tuple[Step, int | str, float]] = []
    for step in chosen:
        print(f"\n=== {step.group}: {step.name}", flush=True)
        if not given.list:
            began = time.monotonic()
            outcomes.append((step, step.action(), time.monotonic() - began))
    for step, outcome, seconds in outcomes:
        said = f"not run: {outcome}" if isinstance(outcome, str) else f"FAILED ({outcome})" if outcome else "ok"
        print(f"{step.group + ': ' + step.name:<45}{seconds:>8.0f} s  {said}")
    return 1 if any(isinstance(outcome, int) and outcome for _, outcome, _ in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
