"""Seeded bugs in what is sent out: webhooks, hooks, notices."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_CHANNELS = "tests/sinks/test_channels.py"
TEST_HTTP_SENDER = "tests/sinks/test_http_sender.py"
TEST_NOTICES = "tests/core/test_notices.py"
TEST_RULES = "tests/core/test_webhook_delivery.py"
TEST_WEBHOOK = "tests/sinks/test_webhook.py"

WEBHOOKS = (
    Mutant(
        "webhooks: the metadata address is public",
        "sinks/addresses.py",
        '            "169.254.0.0/16",  # link-local; most clouds\' metadata\n',
        "",
        f"{TEST_HTTP_SENDER}::test_an_address_that_is_not_on_the_public_internet_is_refused",
    ),
    Mutant(
        "webhooks: IPv4 inside IPv6 is judged as IPv6",
        "sinks/addresses.py",
        "    if bare in _NAT64:\n",
        "    if False:\n",
        f"{TEST_HTTP_SENDER}::test_ipv4_inside_ipv6_is_judged_as_the_ipv4_address",
    ),
    Mutant(
        "webhooks: one allowed address is enough",
        "sinks/http_sender.py",
        "for address in found:\n",
        "for address in found[:1]:\n",
        f"{TEST_HTTP_SENDER}::test_one_forbidden_address_among_others_refuses_the_name",
    ),
    Mutant(
        "webhooks: the name is resolved a second time to connect",
        "sinks/http_sender.py",
        "sock.connect((str(address), target.port))",
        "sock.connect((self._resolve(target.host, target.port)[0], target.port))",
        f"{TEST_HTTP_SENDER}::test_the_connection_goes_to_the_judged_address_and_keeps_the_name",
    ),
    Mutant(
        "webhooks: the certificate is not checked for the name",
        "sinks/http_sender.py",
        '            self._context.set_alpn_protocols(["http/1.1"])\n',
        "            self._context.check_hostname = False\n",
        f"{TEST_HTTP_SENDER}::test_a_certificate_of_another_name_is_refused_and_nothing_is_sent",
    ),
    Mutant(
        "webhooks: each byte has the whole time",
        "sinks/http_sender.py",
        "        self._sock.settimeout(_left(self._until, self._monotonic))\n        size =",
        "        self._sock.settimeout(10.0)\n        size =",
        f"{TEST_HTTP_SENDER}::test_an_answer_that_comes_byte_by_byte_is_cut_off_in_time",
    ),
    Mutant(
        "webhooks: headers have no limit",
        "sinks/http_sender.py",
        "if self.received > LARGEST_ANSWER + _OVERHEAD:",
        "if False:",
        f"{TEST_HTTP_SENDER}::test_endless_headers_are_refused",
    ),
    Mutant(
        "webhooks: a connection is used again for another name",
        "sinks/http_sender.py",
        "connection.target[:3] == target[:3]",
        "connection.target[2] == target[2]",
        f"{TEST_HTTP_SENDER}::test_a_connection_is_not_used_again_for_another_name_and_not_when_it_is_old",
    ),
    Mutant(
        "webhooks: http needs no permission",
        "core/target_urls.py",
        'if parts.scheme == "http" and not allow_http:',
        "if False:",
        f"{TEST_HTTP_SENDER}::test_a_url_that_may_not_be_sent_to_is_refused_with_its_reason",
    ),
    Mutant(
        "webhooks: a later delivery of a task overtakes",
        "core/webhook_delivery.py",
        "return [lane for lane in by_task.values() if _is_due(webhook, lane[0], now)]",
        "return [[one] for lane in by_task.values() for one in lane if _is_due(webhook, one, now)]",
        f"{TEST_RULES}::test_later_deliveries_of_a_task_wait_behind_the_parked_one_and_other_tasks_go_on",
    ),
    Mutant(
        "webhooks: a lane goes on after a failure",
        "sinks/webhook.py",
        "            if not tried.is_delivered:\n                return False\n",
        "",
        f"{TEST_WEBHOOK}::test_a_lane_ends_at_its_first_failure_and_the_others_go_on",
    ),
    Mutant(
        "webhooks: 410 is tried again",
        "core/webhook_delivery.py",
        "return self.status == 410",
        "return False",
        f"{TEST_RULES}::test_410_disables_at_once_and_keeps_the_delivery",
    ),
    Mutant(
        "webhooks: Retry-After is not honoured",
        "core/webhook_delivery.py",
        "return self.status in (429, 503) and self.retry_after is not None",
        "return False",
        f"{TEST_RULES}::test_retry_after_is_honoured_for_the_whole_endpoint_and_moves_no_schedule",
    ),
    Mutant(
        "webhooks: a down endpoint is still read for",
        "core/webhook_delivery.py",
        "return webhook.enabled and webhook.down_since is None and not _goes_down(webhook, now)",
        "return webhook.enabled",
        f"{TEST_RULES}::test_an_endpoint_without_success_for_ten_minutes_is_down_and_nothing_is_read_for_it",
    ),
    Mutant(
        "webhooks: a down endpoint gets everything at once",
        "core/webhook_delivery.py",
        "if webhook.down_since is not None and webhook.failing_since is not None:\n        return",
        "if False:\n        return",
        f"{TEST_RULES}::test_while_it_is_down_one_delivery_is_tried_at_a_time_and_each_in_turn",
    ),
    Mutant(
        "webhooks: one refused delivery disables a healthy endpoint",
        "core/webhook_delivery.py",
        "is_over = webhook.failing_since is not None and now - webhook.failing_since >= GIVES_UP",
        "is_over = now - webhook.created_at >= GIVES_UP",
        f"{TEST_RULES}::test_one_delivery_that_a_healthy_endpoint_refuses_is_given_up_and_the_webhook_stays",
    ),
    Mutant(
        "webhooks: a return does not restart the schedule",
        "core/webhook_delivery.py",
        "return webhook.up_at is not None and (delivery.tried_at or delivery.at) < webhook.up_at",
        "return False",
        f"{TEST_RULES}::test_what_fails_after_a_return_is_not_given_up_for_failures_before_it",
    ),
    Mutant(
        "webhooks: the secret before a rotation does not sign",
        "core/signatures.py",
        '    return [b"v1," + b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys]\n',
        '    return [b"v1," + b64encode(hmac.digest(key, signed, hashlib.sha256)) for key in keys][:1]\n',
        f"{TEST_WEBHOOK}::test_during_a_rotation_both_secrets_verify",
    ),
    Mutant(
        "webhooks: a change of status has the id of its event",
        "core/webhook_delivery.py",
        'return f"{event.id}-status" if kind == STATUS_CHANGED else event.id',
        "return event.id",
        f"{TEST_RULES}::test_a_change_of_status_is_a_message_of_its_own_with_its_own_id",
    ),
    Mutant(
        "webhooks: a hanging receiver costs a timeout for each task",
        "sinks/webhook.py",
        "self._failures = 0 if tried.is_delivered else self._failures + 1",
        "self._failures = 0",
        f"{TEST_WEBHOOK}::test_a_receiver_that_hangs_costs_one_timeout_and_not_one_for_each_task",
    ),
    Mutant(
        "notices: every notice is a message",
        "core/notices.py",
        "after_last = kind.sent[-1] + WINDOW",
        "after_last = kind.sent[-1]",
        f"{TEST_NOTICES}::test_500_dead_letters_in_a_minute_make_at_most_two_messages",
    ),
    Mutant(
        "notices: an hour has no limit",
        "core/notices.py",
        "full = kind.sent[-MOST_AN_HOUR] + HOUR if len(kind.sent) >= MOST_AN_HOUR else 0",
        "full = 0",
        f"{TEST_NOTICES}::test_a_channel_gets_at_most_20_messages_of_a_kind_in_any_hour_and_every_notice_is_counted",
    ),
    Mutant(
        "notices: a message that failed is forgotten",
        "core/notices.py",
        "count=kind.count + summary.count,",
        "count=kind.count,",
        f"{TEST_NOTICES}::test_a_message_that_cannot_be_sent_waits_with_what_came_meanwhile",
    ),
    Mutant(
        "notices: an agent's text mentions everybody",
        "sinks/slack.py",
        'text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")',
        "text",
        f"{TEST_CHANNELS}::test_no_text_of_an_agent_mentions_anybody_or_is_markup",
    ),
    Mutant(
        "notices: mail goes out without TLS",
        "sinks/smtp.py",
        "                smtp.starttls(context=context)  # raises where the server does not offer it\n",
        "                pass\n",
        f"{TEST_CHANNELS}::test_a_server_without_tls_gets_nothing",
    ),
    Mutant(
        "notices: the mail server's certificate is not checked",
        "sinks/smtp.py",
        "ssl.create_default_context(cafile=self._authorities)",
        "ssl._create_unverified_context()",
        f"{TEST_CHANNELS}::test_a_certificate_of_another_name_or_authority_is_refused_and_nothing_is_sent",
    ),
    Mutant(
        "hooks: a command sees the master key",
        "sinks/command.py",
        "without_master_key(environ)",
        "dict(environ)",
        f"{TEST_CHANNELS}::test_a_hook_gets_the_event_on_stdin_and_no_shell_reads_it",
    ),
    Mutant(
        "hooks: one command at a time",
        "sinks/command.py",
        "if self._running < AT_ONCE:",
        "if self._running < 1:",
        f"{TEST_CHANNELS}::test_four_hooks_run_at_once_and_the_others_wait",
    ),
)
