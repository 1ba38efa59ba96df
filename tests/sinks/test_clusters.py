"""A cluster of three that loses a node under load loses no message."""

from __future__ import annotations

import pytest

from tenure.sinks import names
from tenure.sinks.nats import NatsSink
from tenure.sinks.port import Message, Sink, SinkUnavailable
from tenure.sinks.rabbitmq import RabbitSink
from tenure.testing.suites.sink import TIMEOUT, message, numbers
from tests.servers.fixtures import running
from tests.servers.nats import NatsCluster, NatsServer
from tests.servers.rabbitmq import RabbitNode, RabbitServer
from tests.sinks import test_nats, test_rabbitmq

pytestmark = pytest.mark.nightly
EVENTS = 6_000


def sent_while_nodes_die(sink: Sink, nodes: list[NatsServer] | list[RabbitNode]) -> None:
    """Each node is killed in its turn and started again, so that its leader is among them."""
    done, killed = 0, 0
    while done < EVENTS:
        if killed < len(nodes) and done >= (killed + 1) * EVENTS // 4:
            nodes[killed].kill()
            killed += 1
            for _ in range(20):  # the others go on without it
                try:
                    done += sink.send([message(number) for number in range(done, done + 100)], TIMEOUT)
                    break
                except SinkUnavailable:
                    continue
            nodes[killed - 1].start()
        try:
            done += sink.send([message(number) for number in range(done, min(EVENTS, done + 500))], TIMEOUT)
        except SinkUnavailable:
            continue
    assert killed == len(nodes)


def test_nats_loses_nothing_with_a_node() -> None:
    cluster = NatsCluster()
    with running(cluster):
        sink = NatsSink(f"{cluster.url}/?prefix=team&replicas=3")
        for _ in range(20):  # the cluster elects its leader first
            try:
                sink.identity()
                break
            except SinkUnavailable:
                continue
        sent_while_nodes_die(sink, cluster.nodes)
        assert sink.differences() == []
        sink.close()
        found = test_nats.stored(cluster.nodes[0].url, "TEAM_EVT", "team")
    assert sorted(set(numbers(found))) == list(range(EVENTS))
    assert len(found) == EVENTS


def test_rabbitmq_loses_nothing_with_a_node() -> None:
    server = RabbitServer(3)
    with running(server):
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in server.nodes)
        test_rabbitmq.ask(server.url, lambda channel: test_rabbitmq.observe(channel, "team"))
        sink = RabbitSink(f"amqp://guest:guest@{hosts}/?prefix=team")
        sink.identity()
        sent_while_nodes_die(sink, server.nodes)
        sink.close()
        queue = f"team.observer.{names.EVENTS}"
        found: list[Message] = test_rabbitmq.ask(
            server.url, lambda channel: test_rabbitmq.taken(channel, queue, f"{names.EVENTS}.")
        )
    assert sorted(set(numbers(found))) == list(range(EVENTS))
