"""The engine's shipped suite with every command sent over HTTP: what holds in a process holds behind a server.

Left out are the parts that speak to the engine itself: sweeps, archive, the coordinator, both ways.
"""

from __future__ import annotations

import subprocess
import sys

from tenure.testing.engine.endings import Endings
from tenure.testing.engine.graphs import Graphs
from tenure.testing.engine.landings import Landings
from tenure.testing.engine.operators import Operators
from tenure.testing.engine.receipts import Receipts
from tenure.testing.engine.repeats import Repeats
from tenure.testing.engine.spending import Spending
from tenure.testing.engine.team import Team
from tenure.testing.engine.timelines import Timelines
from tenure.testing.engine.undo import Undo
from tests.server.test_engine_suite import OnServer


class TestOverHttp(OnServer, Timelines, Endings, Receipts, Graphs, Operators, Repeats, Team, Spending, Landings, Undo):
    pass


def main(argv: list[str]) -> int:
    # In a process of its own: the suites must not be imported before pytest rewrites their asserts.
    return subprocess.call([sys.executable, "-m", "pytest", __file__, "-q", "-p", "no:cacheprovider", *argv])
