"""Seeded bugs in the sinks and sources of brokers: messages lost, doubled, out of order, or a password shown."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

NATS = "tests/sinks/test_nats.py"
RABBITMQ = "tests/sinks/test_rabbitmq.py"
REDIS = "tests/sinks/test_redis_streams.py"

URLS = "tests/sinks/test_broker_urls.py"
DOCTOR = "tests/cli/test_doctor.py"

BROKERS = (
    Mutant(
        "brokers: a broker elsewhere needs no TLS",
        "sinks/broker_urls.py",
        'if address.is_insecure and allowed == "0":',
        'if False and address.is_insecure and allowed == "0":',
        f"{URLS}::test_a_broker_elsewhere_needs_tls",
    ),
    Mutant(
        "brokers: one host on this machine is enough to do without TLS",
        "sinks/broker_urls.py",
        "all(is_loopback(host) for host, _ in self.places)",
        "any(is_loopback(host) for host, _ in self.places)",
        f"{URLS}::test_one_host_elsewhere_among_those_here_is_enough",
    ),
    Mutant(
        "brokers: own authorities are passed over without TLS",
        "sinks/broker_urls.py",
        "    if address.ca is not None:\n",
        "    if False:\n",
        f"{URLS}::test_authorities_without_tls_would_verify_nothing_and_are_refused",
    ),
    Mutant(
        "brokers: NATS gets the password where it does not ask for TLS",
        "sinks/nats.py",
        "_EncryptedClient() if self.address.is_encrypted else Client()",
        "Client()",
        f"{URLS}::test_a_nats_server_that_does_not_encrypt_never_gets_the_password",
    ),
    Mutant(
        "brokers: NATS is verified by the system's authorities alone",
        "sinks/nats.py",
        "ssl.create_default_context(cafile=self.address.ca)",
        "ssl.create_default_context()",
        f"{URLS}::test_a_nats_server_gets_the_password_once_its_certificate_is_verified",
    ),
    Mutant(
        "brokers: any name of a Redis server will do",
        "sinks/redis_streams.py",
        '"ssl_check_hostname": True',
        '"ssl_check_hostname": False',
        f"{URLS}::test_another_broker_gets_nothing_before_its_certificate_is_verified",
    ),
    Mutant(
        "brokers: RabbitMQ is verified by the system's authorities alone",
        "sinks/rabbitmq.py",
        "if address.ca is not None else",
        "if False else",
        f"{URLS}::test_another_broker_gets_nothing_before_its_certificate_is_verified",
    ),
    Mutant(
        "brokers: doctor does not say that nobody verifies a broker",
        "cli/doctor/sink_checks.py",
        "    if is_insecure(sink.url):\n",
        "    if False:\n",
        f"{DOCTOR}::test_a_broker_that_nobody_verifies_is_found",
    ),
    Mutant(
        "brokers: doctor does not say that deliveries go in the clear",
        "cli/doctor/sink_checks.py",
        "if messaging is not None and messaging.allow_http:",
        "if False:",
        f"{DOCTOR}::test_deliveries_in_the_clear_are_found",
    ),
    Mutant(
        "loopback: a name that begins like an address is this machine",
        "core/loopback.py",
        'host.lower() == "localhost"',
        'host.lower() == "localhost" or host.startswith("127.")',
        "tests/core/test_loopback.py::test_another_machine",
    ),
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
