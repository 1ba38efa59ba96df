"""Seeded bugs in what is sent out: webhooks, hooks, notices."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_HTTP_SENDER = "tests/sinks/test_http_sender.py"

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
        "sinks/http_sender.py",
        'if parts.scheme == "http" and not allow_http:',
        "if False:",
        f"{TEST_HTTP_SENDER}::test_a_url_that_may_not_be_sent_to_is_refused_with_its_reason",
    ),
)
