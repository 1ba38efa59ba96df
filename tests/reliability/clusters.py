"""A NATS or RabbitMQ cluster of three loses each of its nodes once, under load: no message is lost."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from nats.errors import Error as NatsError

from tenure.sinks import names
from tenure.sinks.nats import NatsSink
from tenure.sinks.port import Message, Sink, SinkUnavailable
from tenure.sinks.rabbitmq import RabbitSink
from tenure.testing.suites.sink import TIMEOUT, message, numbers
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.servers.nats import NatsCluster, NatsServer
from tests.servers.rabbitmq import RabbitNode, RabbitServer
from tests.sinks import test_nats, test_rabbitmq

T = TypeVar("T")
PREFIX = "team"
AFTER = 0.02  # seconds: a page is sent, and not yet acknowledged
TRIES = 20  # until the nodes that are left have elected their leader


def sent_while_nodes_die(sink: Sink, nodes: Sequence[NatsServer] | Sequence[RabbitNode], events: int) -> int:
    """The nodes are killed in their turn and started again; of all three one is the leader. How many were killed."""
    done, killed, page = 0, 0, min(500, events // 12)
    while done < events:
        if killed < len(nodes) and done >= (killed + 1) * events // 4:
            blow = threading.Timer(AFTER, nodes[killed].kill)  # while a page is under way
            blow.start()
            killed += 1
            for _ in range(TRIES):  # the others go on without it
                try:
                    done += sink.send([message(number) for number in range(done, done + page)], TIMEOUT)
                    break
                except SinkUnavailable:
                    continue
            blow.join()
            nodes[killed - 1].start()
        try:
            done += sink.send([message(number) for number in range(done, min(events, done + page))], TIMEOUT)
        except SinkUnavailable:
            continue
    return killed


def _answer(ask: Callable[[], T]) -> T:
    """The answer of a cluster, once its nodes have elected a leader."""
    for _ in range(TRIES):
        try:
            return ask()
        except SinkUnavailable:
            continue
    return ask()


def on_nats(events: int, kills: int) -> tuple[list[Message], int, list[str]]:
    """What the cluster has, how many nodes were killed, and what its streams have set otherwise."""
    with NatsCluster() as cluster:
        sink = NatsSink(f"{cluster.url}/?prefix={PREFIX}&replicas=3")
        _answer(sink.identity)
        killed = sent_while_nodes_die(sink, cluster.nodes[:kills], events)
        differences = _answer(sink.differences)
        sink.close()
        for _ in range(TRIES):
            try:
                return test_nats.stored(cluster.nodes[0].url, f"{PREFIX.upper()}_EVT", PREFIX), killed, differences
            except NatsError:  # its nodes elect a leader
                continue
    raise SystemExit("the cluster did not answer")


def on_rabbitmq(events: int, kills: int) -> tuple[list[Message], int, list[str]]:
    with RabbitServer(3) as server:
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in server.nodes)
        test_rabbitmq.ask(server.url, lambda channel: test_rabbitmq.observe(channel, PREFIX))
        sink = RabbitSink(f"amqp://guest:guest@{hosts}/?prefix={PREFIX}")
        sink.identity()
        killed = sent_while_nodes_die(sink, server.nodes[:kills], events)
        sink.close()
        queue = f"{PREFIX}.observer.{names.EVENTS}"
        found: list[Message] = test_rabbitmq.ask(
            server.url, lambda channel: test_rabbitmq.taken(channel, queue, f"{names.EVENTS}.")
        )
        return found, killed, []


def out_of_order(arrived: Sequence[int]) -> int:
    """Messages that came for the first time after a later one of their task."""
    last: dict[str, int] = {}
    count = 0
    for number in dict.fromkeys(arrived):
        task = str(message(number).task)
        count += number < last.get(task, -1)
        last[task] = max(number, last.get(task, -1))
    return count


CLUSTERS = {"nats": on_nats, "rabbitmq": on_rabbitmq}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="clusters", description=__doc__)
    parser.add_argument("--sink", choices=CLUSTERS, help="one of them; both, where none is named")
    parser.add_argument("--events", type=int, default=6_000)
    parser.add_argument("--kills", type=int, default=3, choices=(1, 2, 3), help="of nodes, one after another")
    wanted = parser.parse_args(argv)
    end_when_told()
    failed = False
    for name in [wanted.sink] if wanted.sink else CLUSTERS:
        began = time.monotonic()
        found, killed, differences = CLUSTERS[name](wanted.events, wanted.kills)
        arrived = numbers(found)
        lost, doubles = len(set(range(wanted.events)) - set(arrived)), len(arrived) - len(set(arrived))
        swapped = out_of_order(arrived)
        for text in differences:
            print(text)
        failed = failed or bool(
            lost or differences or killed < wanted.kills or ((doubles or swapped) and name == "nats")
        )
        figures: dict[str, results.Figure] = {
            "events": wanted.events, "nodes_killed": killed, "lost": lost, "doubles": doubles, "out_of_order": swapped,
            "seconds": round(time.monotonic() - began),
        }  # fmt: skip
        results.tell("clusters", figures, part=name, variant=wanted.sink or "")
    return 1 if failed else 0
