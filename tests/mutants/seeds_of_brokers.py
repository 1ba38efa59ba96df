"""Seeded bugs in the sinks and sources of brokers: messages lost, doubled, out of order, or a password shown."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

NATS = "tests/sinks/test_nats.py"
RABBITMQ = "tests/sinks/test_rabbitmq.py"
REDIS = "tests/sinks/test_redis_streams.py"

BROKERS = (
    Mutant(
        "brokers: what NATS refuses counts as acknowledged",
        "sinks/nats.py",
        "        if answer.error is not None:\n",
        "        if False:\n",
        f"{NATS}::test_what_comes_before_a_message_that_is_refused_counts",
    ),
    Mutant(
        "brokers: NATS acknowledges out of order",
        "sinks/nats.py",
        "        if index == self.done:\n            self.done += 1\n",
        "        if True:\n            self.done += 1\n",
        f"{NATS}::test_what_comes_before_a_message_that_is_refused_counts",
    ),
    Mutant(
        "brokers: NATS gets no message id",
        "sinks/nats.py",
        'headers = {"Nats-Msg-Id": message.id}',
        'headers = {"Nats-Msg-Id": f"{message.id} {id(client)}"}',
        f"{NATS}::TestNats::test_a_page_that_is_sent_again_after_a_restart_has_the_same_ids",
    ),
    Mutant(
        "brokers: a wiped NATS server is never given its streams",
        "sinks/nats.py",
        "    def forget(self) -> None:\n"
        '        """The streams may be gone: look again before the next use."""\n'
        "        self.created = {}\n",
        '    def forget(self) -> None:\n        """The streams may be gone: look again before the next use."""\n',
        f"{NATS}::test_a_stream_that_was_deleted_is_created_again_and_changes_the_identity",
    ),
    Mutant(
        "brokers: a command that RabbitMQ cannot route counts as confirmed",
        "sinks/rabbitmq.py",
        "            mandatory=family != names.EVENTS,\n",
        "            mandatory=False,\n",
        f"{RABBITMQ}::test_a_queue_that_was_deleted_is_created_again",
    ),
    Mutant(
        "brokers: messages in RabbitMQ do not survive a restart",
        "sinks/rabbitmq.py",
        "PERSISTENT = 2\n",
        "PERSISTENT = 1\n",
        f"{RABBITMQ}::test_messages_are_persistent",
    ),
    Mutant(
        "brokers: a repeat is appended to a stream of Redis",
        "sinks/redis_streams.py",
        "not redis.call('ZSCORE', sent, id)",
        "true",
        f"{REDIS}::TestRedis::test_a_page_that_is_sent_again_after_a_restart_has_the_same_ids",
    ),
    Mutant(
        "brokers: Redis drops announcements as repeats",
        "sinks/redis_streams.py",
        "is_of_log = 1 if message.sequence else 0",
        "is_of_log = 1",
        f"{REDIS}::test_a_command_is_announced_again_although_its_id_is_known",
    ),
    Mutant(
        "brokers: Redis forgets the newest ids first",
        "sinks/redis_streams.py",
        "    redis.call('ZADD', sent, last[sent], id)\n",
        "    redis.call('ZADD', sent, 1, id)\n",
        f"{REDIS}::test_as_many_ids_are_kept_as_a_repeat_may_have",
    ),
    Mutant(
        "brokers: a source of Redis forgets what its worker had",
        "sinks/redis_source.py",
        'and not one["pending"] for one in consumers',
        "for one in consumers",
        f"{REDIS}::TestRedisSource::test_what_was_not_acknowledged_goes_to_another_when_its_worker_closes",
    ),
    Mutant(
        "brokers: a rejected message of RabbitMQ keeps its place",
        "sinks/rabbitmq_source.py",
        "            mandatory=True,\n        )  # fmt: skip\n        await handle.channel.basic_ack(handle.tag)\n",
        "            mandatory=True,\n        )  # fmt: skip\n",
        f"{RABBITMQ}::TestRabbitSource::test_a_message_that_is_rejected_with_a_delay_does_not_hold_the_next_up",
    ),
    Mutant(
        "brokers: a URL is shown with its login",
        "sinks/broker_urls.py",
        "scheme, tuple(hosts.split(",
        "scheme, tuple(parts.netloc.split(",
        f"{NATS}::TestNats::test_a_server_that_is_down_is_unavailable_and_then_works_again",
    ),
)
