"""Notices by Slack, mail and command, to real receivers."""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from tenure.core.errors import InvalidInput
from tenure.core.notices import DEAD_LETTER, Notice, Summary
from tenure.processes.bounded_run import CommandRun, NotRun
from tenure.sinks.addresses import networks_of
from tenure.sinks.command import AT_ONCE, CommandChannel, CommandRunner, Job
from tenure.sinks.http_sender import HttpSender
from tenure.sinks.port import SinkUnavailable
from tenure.sinks.slack import SlackChannel, text_of
from tenure.sinks.smtp import MailChannel, mail_server
from tests.processes.marks import marked
from tests.sinks.receivers import Receiver, answer, authority


def summary(*texts: str) -> Summary:
    notices = tuple(Notice(kind=DEAD_LETTER, at=0, text=text, project="web") for text in texts)
    return Summary(kind=DEAD_LETTER, count=len(texts), first=notices, since=0)


# --- Slack --------------------------------------------------------------------------------------------------


@pytest.fixture
def http() -> Iterator[HttpSender]:
    sender = HttpSender(allow_http=True, networks=networks_of(["127.0.0.0/8"]), resolve=lambda *_: ["127.0.0.1"])
    yield sender
    sender.close()


def test_slack_gets_a_text(http: HttpSender) -> None:
    with Receiver() as receiver:
        SlackChannel(receiver.url, http, allow_http=True).send(summary("A-001 failed", "A-002 failed"))
        (request,) = receiver.requests
        assert request.headers["content-type"] == "application/json"
        assert json.loads(request.body) == {
            "text": "*2 tasks are dead letters and wait for a person*\n• web: A-001 failed\n• web: A-002 failed"
        }


def test_no_text_of_an_agent_mentions_anybody_or_is_markup() -> None:
    text = text_of(summary("<!channel> @everyone *bold* `code` <https://evil.example|click> & more", "x"))
    assert "<" not in text
    assert ">" not in text
    assert "@everyone" not in text
    assert "&lt;!channel&gt;" in text
    assert text.count("*") == 2
    assert "`" not in text


def test_a_long_message_is_cut() -> None:
    assert len(text_of(summary(*["x" * 500] * 10))) == 3000


def test_a_refusal_of_slack_is_named_without_its_url(http: HttpSender) -> None:
    with Receiver(answer(404, b"no_service")) as receiver:
        channel = SlackChannel(f"http://receiver.test:{receiver.port}/services/SECRET", http, allow_http=True)
        with pytest.raises(SinkUnavailable, match="answered 404") as found:
            channel.send(summary("x"))
        assert "SECRET" not in f"{found.value.message} {found.value.hint}"
    with pytest.raises(SinkUnavailable, match="cannot be reached"):
        channel.send(summary("x"))


def test_slack_needs_https(http: HttpSender) -> None:
    with pytest.raises(InvalidInput, match="the Slack webhook must begin with https"):
        SlackChannel("http://example.org/", http)


# --- mail ---------------------------------------------------------------------------------------------------


class Inbox:
    def __init__(self) -> None:
        self.mails: list[tuple[str, list[str], bytes]] = []
        self.refuses: set[str] = set()

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:  # noqa: N802
        if address in self.refuses:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 taken"


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ssl.SSLContext]:
    return authority(tmp_path_factory.mktemp("ca"), "localhost")


def signed_in(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
    good = isinstance(data, LoginPassword) and (data.login, data.password) == (b"ann", b"p@ss/word")
    return AuthResult(success=good, handled=good)


class Mails:
    def __init__(self, tls: tuple[str, ssl.SSLContext]) -> None:
        self.authorities, self.context = tls
        self.inbox = Inbox()
        self.running: list[Controller] = []

    def start(self, **options: Any) -> int:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        controller = Controller(self.inbox, hostname="127.0.0.1", port=port, **options)
        controller.start()
        self.running.append(controller)
        return int(port)

    def starttls(self, **options: Any) -> int:
        return self.start(tls_context=self.context, require_starttls=True, **options)

    def channel(self, url: str, **options: Any) -> MailChannel:
        return MailChannel(
            url + "?from=tenure@example.org&to=ann@example.org,bob@example.org",
            **{"authorities": self.authorities} | options,
        )


@pytest.fixture
def mails(tls: tuple[str, ssl.SSLContext]) -> Iterator[Mails]:
    mails = Mails(tls)
    yield mails
    for controller in mails.running:
        controller.stop()


def test_a_mail_goes_out_over_starttls_with_the_user_signed_in(mails: Mails) -> None:
    port = mails.starttls(authenticator=signed_in, auth_required=True)
    mails.channel(f"smtp://ann:p%40ss%2Fword@localhost:{port}/").send(summary("A-001 failed", "A-002 failed"))
    ((sender, to, content),) = mails.inbox.mails
    assert (sender, to) == ("tenure@example.org", ["ann@example.org", "bob@example.org"])
    mail = message_from_bytes(content, policy=policy.default)
    assert mail["Subject"] == "[tenure] 2 tasks are dead letters and wait for a person"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert "web: A-001 failed\nweb: A-002 failed" in mail.get_content().replace("\r", "")  # type: ignore[attr-defined]


def test_a_mail_goes_out_over_smtps(mails: Mails) -> None:
    port = mails.start(ssl_context=mails.context)
    mails.channel(f"smtps://localhost:{port}/").send(summary("A-001 failed"))
    assert len(mails.inbox.mails) == 1


def test_a_certificate_of_another_name_or_authority_is_refused_and_nothing_is_sent(
    mails: Mails, tmp_path: Path
) -> None:
    other, _ = authority(tmp_path, "localhost")
    starttls, smtps = mails.starttls(), mails.start(ssl_context=mails.context)
    for channel in (
        mails.channel(f"smtp://127.0.0.1:{starttls}/"),
        mails.channel(f"smtps://127.0.0.1:{smtps}/"),
        mails.channel(f"smtp://localhost:{starttls}/", authorities=other),
        mails.channel(f"smtps://localhost:{smtps}/", authorities=None),
    ):
        with pytest.raises(SinkUnavailable, match="certificate is not valid"):
            channel.send(summary("x"))
    assert mails.inbox.mails == []


def test_a_server_without_tls_gets_nothing(mails: Mails) -> None:
    port = mails.start()
    for user in ("", "ann:secret@"):
        with pytest.raises(SinkUnavailable, match="does not offer TLS"):
            mails.channel(f"smtp://{user}localhost:{port}/").send(summary("x"))
    assert mails.inbox.mails == []


def test_a_wrong_password_is_named_and_not_repeated(mails: Mails) -> None:
    port = mails.starttls(authenticator=signed_in, auth_required=True)
    with pytest.raises(SinkUnavailable, match="refused the user name and password") as found:
        mails.channel(f"smtp://ann:wrong@localhost:{port}/").send(summary("x"))
    assert "wrong" not in f"{found.value.message} {found.value.hint}"


def test_refused_recipients_are_counted(mails: Mails) -> None:
    port = mails.starttls()
    mails.inbox.refuses = {"bob@example.org"}
    with pytest.raises(SinkUnavailable, match="refused 1 of 2 recipients"):
        mails.channel(f"smtp://localhost:{port}/").send(summary("x"))
    mails.inbox.refuses |= {"ann@example.org"}
    with pytest.raises(SinkUnavailable, match="refused every recipient"):
        mails.channel(f"smtp://localhost:{port}/").send(summary("x"))


def test_a_line_break_in_a_title_makes_no_header(mails: Mails) -> None:
    port = mails.starttls()
    mails.channel(f"smtp://localhost:{port}/").send(summary("x Bcc: evil@example.org " + "y" * 1000))
    ((_, to, content),) = mails.inbox.mails
    mail = message_from_bytes(content, policy=policy.default)
    assert mail["Bcc"] is None
    assert len(str(mail["Subject"])) <= 200
    assert len(to) == 2


def test_a_server_that_is_down_is_named(mails: Mails) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(SinkUnavailable, match=f"mail server smtp://localhost:{port}: Connection refused"):
        mails.channel(f"smtp://localhost:{port}/").send(summary("x"))


def test_a_server_that_greets_without_end_is_cut_off_in_time(mails: Mails) -> None:
    ended = threading.Event()

    def greet(sock: socket.socket, _: object = None) -> None:
        while not ended.wait(0.05):
            sock.sendall(b"220-hello\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            sock, _ = server.accept()
            with sock:
                try:
                    greet(sock)
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(SinkUnavailable, match="mail server"):
            mails.channel(f"smtp://localhost:{server.getsockname()[1]}/", seconds=0.5).send(summary("x"))
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    "url",
    [
        "http://host/?from=a@b&to=c@d",
        "smtp:///?from=a@b&to=c@d",
        "smtp://host/",
        "smtp://host/?from=a@b",
        "smtp://host/?to=a@b",
        "smtp://host/?from=a@b&to=c@d&bcc=e@f",
        "smtp://host/?from=a@b&from=c@d&to=e@f",
        "smtp://host/?from=ab&to=c@d",
        "smtp://host/?from=a@b&to=c%0ad@e",
        "smtp://host/?from=a@b&to=c@d,",
        "smtp://host/?nothing",
        "smtp://host:99999/?from=a@b&to=c@d",
        "smtp://host/?from=a@b&to=" + ",".join(["c@d"] * 21),
    ],
)
def test_a_url_that_is_not_a_mail_servers_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidInput) as found:
        mail_server(url.replace("host", "ann:hidden@host"))
    assert "hidden" not in f"{found.value.message} {found.value.hint}"


# --- commands -----------------------------------------------------------------------------------------------


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


class Ends:
    """What became of the jobs."""

    def __init__(self) -> None:
        self.found: list[CommandRun | NotRun] = []

    def __call__(self, _job: Job, result: CommandRun | NotRun) -> None:
        self.found.append(result)


def test_a_hook_gets_the_event_on_stdin_and_no_shell_reads_it(tmp_path: Path) -> None:
    ends = Ends()
    runner = CommandRunner(str(tmp_path), dict(os.environ) | {"TENURE_MASTER_KEY": "k"}, ended=ends)
    code = "import os, sys; key = 'TENURE_MASTER_KEY' in os.environ\n"
    code += "open('out', 'w').write(f'{sys.stdin.read()}{sys.argv[1]}{key}')"
    runner.start([*python(code), "$HOME; x"], b'{"kind":"evt.task.completed"}')
    assert runner.wait(30)
    assert (tmp_path / "out").read_text() == '{"kind":"evt.task.completed"}$HOME; xFalse'
    (done,) = ends.found
    assert isinstance(done, CommandRun)
    assert (done.exit, done.limit) == (0, None)


def test_a_hook_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    ends = Ends()
    mark = f"HOOK_MARK={os.getpid()}-{tmp_path.name}"
    name, _, value = mark.partition("=")
    runner = CommandRunner(str(tmp_path), {"PATH": os.environ["PATH"], name: value}, ended=ends, seconds=0.5)
    child = "import time; time.sleep(60)"
    runner.start(
        python(f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"),
        b"",
    )
    assert runner.wait(30)
    (done,) = ends.found
    assert isinstance(done, CommandRun)
    assert done.limit == "time"
    assert marked(mark) == []


def test_four_hooks_run_at_once_and_the_others_wait(tmp_path: Path) -> None:
    """Each waits for three others: with fewer than four at once, none would ever end."""
    ends = Ends()
    runner = CommandRunner(str(tmp_path), {}, ended=ends)
    code = (
        "import os, sys, time\n"
        "group, number = sys.argv[1:]\n"
        "open(f'{group}-{number}', 'x').close()\n"
        "while len([n for n in os.listdir() if n.startswith(group + '-')]) < 4: time.sleep(0.01)\n"
    )
    for job in range(8):
        runner.start([*python(code), str(job // 4), str(job)], b"")
        assert runner._running <= AT_ONCE
    assert runner.wait(30)
    assert [one.exit for one in ends.found if isinstance(one, CommandRun)] == [0] * 8


def test_a_hook_that_does_not_exist_is_reported_and_the_next_one_runs(tmp_path: Path) -> None:
    ends = Ends()
    runner = CommandRunner(str(tmp_path), {}, ended=ends)
    runner.start(["/no/such/program"], b"")
    runner.start(python("pass"), b"")
    assert runner.wait(30)
    assert sorted(type(one).__name__ for one in ends.found) == ["CommandRun", "NotRun"]


def test_where_too_many_wait_the_oldest_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.sinks.command.MOST_WAITING", 2)
    ends = Ends()
    runner = CommandRunner(str(tmp_path), {}, ended=ends)
    runner._running = AT_ONCE  # all four are busy
    for number in range(4):
        runner.start(python(f"open('ran-{number}', 'x')"), b"")
    assert runner.dropped == 2
    runner._running = 0
    runner.start(python("pass"), b"")
    assert runner.wait(30)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ran-3"]


def test_closing_ends_what_runs_and_starts_nothing_more(tmp_path: Path) -> None:
    ends = Ends()
    runner = CommandRunner(str(tmp_path), {}, ended=ends, seconds=60)
    runner.start(python("import time; time.sleep(60)"), b"")
    runner.close()
    runner.start(python("open('ran', 'x')"), b"")
    assert runner.wait(30)
    assert list(tmp_path.iterdir()) == []


def test_a_command_gets_the_notice_and_its_failure_is_named(tmp_path: Path) -> None:
    runner = CommandRunner(str(tmp_path), {})
    CommandChannel(python("import sys; open('out', 'w').write(sys.stdin.read())"), runner).send(summary("a", "b"))
    assert json.loads((tmp_path / "out").read_text())["lines"] == ["web: a", "web: b"]
    with pytest.raises(SinkUnavailable, match="ended with 3"):
        CommandChannel(python("raise SystemExit(3)"), runner).send(summary("a"))
    with pytest.raises(SinkUnavailable, match="did not run"):
        CommandChannel(["/no/such/program"], runner).send(summary("a"))
    slow = CommandRunner(str(tmp_path), {}, seconds=0.2)
    with pytest.raises(SinkUnavailable, match="did not end in time"):
        CommandChannel(python("import time; time.sleep(60)"), slow).send(summary("a"))
