"""`./x bench relay [PART …]`: from the log to brokers and webhooks: events a second, lag, and what it costs claims.

nats, rabbitmq, redis: a log of real tasks is relayed to a real broker; beside it the sink alone. webhooks: the same to
a receiver in another process. lag: from an event's time to its acknowledgement at 1,000 events a second. claims:
processor time of a claim and submit with a relay beside it and without, by turns. hang: claims, a lease's end and
another sink while a broker is frozen.
"""

from __future__ import annotations

import argparse
import sys

from bench.relay import beside, end_to_end, sinks
from bench.report import Figure, show

PARTS = (*sinks.BROKERS, "webhooks", "lag", "claims", "hang")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench relay", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them, where none is named")
    parser.add_argument("--events", type=int, default=10_000, help="in one round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="that a sink hangs; of the lag half as many")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    for part in options.parts or PARTS:
        if part in sinks.BROKERS:
            with sinks.running(part) as url:
                figures += end_to_end.relayed(part, url, options.events, options.rounds)
                with sinks.opened(part, url) as sink:
                    figures += sinks.measured(part, sink, options.events, options.rounds)
        elif part == "webhooks":
            figures += end_to_end.delivered(options.events // 4, options.rounds)
        elif part == "lag":
            figures += end_to_end.lagging(options.seconds / 2)
        elif part == "claims":
            figures += beside.claimed(options.rounds, options.events // 40)
        else:
            figures += beside.hanging(options.seconds)
    show(figures, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
