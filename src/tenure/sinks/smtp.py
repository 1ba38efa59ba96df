"""Notices by mail: `smtps://USER:PASSWORD@HOST/?from=A&to=B`, or `smtp://` with STARTTLS. Never without TLS."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.notices import Summary
from tenure.sinks.port import SinkUnavailable

if TYPE_CHECKING:
    from email.message import EmailMessage
    from smtplib import SMTP

SECONDS = limits.SEND_SECONDS
LONGEST_SUBJECT = limits.MAIL_SUBJECT
MOST_RECIPIENTS = limits.MAIL_RECIPIENTS
_PORTS = {"smtps": 465, "smtp": 587}
_HOW = "as in smtps://user:password@mail.example.org/?from=tenure@example.org&to=team@example.org"


class MailServer(NamedTuple):
    scheme: str
    host: str
    port: int
    user: str | None
    password: str
    sender: str
    to: tuple[str, ...]

    @property
    def shown(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


def mail_server(url: str) -> MailServer:
    """No message repeats the URL: it has a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        asked = parse_qs(parts.query, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidInput("the mail server's URL is not valid", _HOW) from None
    if parts.scheme not in _PORTS or not host:
        raise InvalidInput("the mail server's URL must begin with smtps:// or smtp://, and name a host", _HOW)
    if set(asked) - {"from", "to"} or len(asked.get("from", ())) != 1 or not asked.get("to"):
        raise InvalidInput("the mail server's URL must have one `from`, and `to`, and nothing else", _HOW)
    to = tuple(one.strip() for given in asked["to"] for one in given.split(","))
    if len(to) > MOST_RECIPIENTS:
        raise InvalidInput(
            f"a mail may go to at most {MOST_RECIPIENTS} addresses (got {len(to)})", "use a mailing list"
        )
    for address in (asked["from"][0], *to):
        name, at, domain = address.rpartition("@")
        if not (name and at and domain) or not address.isascii() or not address.isprintable() or " " in address:
            raise InvalidInput("an address in the mail server's URL is not valid", _HOW)
    user = None if parts.username is None else unquote(parts.username)
    port = port or _PORTS[parts.scheme]
    return MailServer(parts.scheme, host, port, user, unquote(parts.password or ""), asked["from"][0], to)


class MailChannel:
    def __init__(self, url: str, *, authorities: str | None = None, seconds: float = SECONDS) -> None:
        """`authorities`: a file of CA certificates instead of the system's."""
        self._server, self._authorities, self._seconds = mail_server(url), authorities, seconds

    def send(self, summary: Summary) -> None:
        import smtplib
        import ssl

        try:
            self._deliver(mail_of(summary, self._server))
        except ssl.SSLCertVerificationError as error:
            raise self._failed(f"its certificate is not valid: {error.verify_message}") from error
        except smtplib.SMTPAuthenticationError as error:
            raise self._failed("it refused the user name and password") from error
        except smtplib.SMTPNotSupportedError as error:
            raise self._failed("it does not offer TLS or signing in; nothing was sent") from error
        except smtplib.SMTPRecipientsRefused as error:
            raise self._failed("it refused every recipient") from error
        except smtplib.SMTPResponseException as error:
            raise self._failed(f"it answered {error.smtp_code}") from error
        except (OSError, smtplib.SMTPException) as error:
            reason = getattr(error, "strerror", None)
            raise self._failed(reason if isinstance(reason, str) else type(error).__name__) from error

    def close(self) -> None:
        """Every message has its own connection."""

    def _failed(self, why: str) -> SinkUnavailable:
        return SinkUnavailable(f"mail server {self._server.shown}: {why}", "check the channel's URL")

    def _deliver(self, mail: EmailMessage) -> None:
        import smtplib
        import ssl

        server, context = self._server, ssl.create_default_context(cafile=self._authorities)
        name = socket.gethostname()
        # Connected later: a server's first lines count against the time, too.
        smtp: SMTP = (
            smtplib.SMTP_SSL(local_hostname=name, timeout=self._seconds, context=context)
            if server.scheme == "smtps"
            else smtplib.SMTP(local_hostname=name, timeout=self._seconds)
        )
        smtp._host = server.host  # type: ignore[attr-defined]  # what the certificate is checked for; set by the constructor alone
        cut = threading.Timer(self._seconds, _shut, (smtp,))
        cut.daemon = True
        cut.start()
        try:
            smtp.connect(server.host, server.port)
            if server.scheme == "smtp":
                smtp.starttls(context=context)  # raises where the server does not offer it
            if server.user is not None:
                smtp.login(server.user, server.password)
            refused = smtp.send_message(mail, server.sender, server.to)
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
        finally:
            cut.cancel()
            smtp.close()
        if refused:
            raise self._failed(f"it refused {len(refused)} of {len(server.to)} recipients")


def _shut(smtp: SMTP) -> None:
    """The time is over: whatever the thread waits for ends."""
    sock = smtp.sock
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def mail_of(summary: Summary, server: MailServer) -> EmailMessage:
    from email.message import EmailMessage
    from email.utils import formatdate, make_msgid

    mail = EmailMessage()
    subject = f"[tenure] {summary.title}"
    mail["Subject"] = subject if len(subject) <= LONGEST_SUBJECT else subject[: LONGEST_SUBJECT - 1] + "…"
    mail["From"], mail["To"] = server.sender, ", ".join(server.to)
    mail["Date"] = formatdate()
    mail["Message-ID"] = make_msgid(domain=server.sender.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"  # no answer of a person on holiday comes back
    mail.set_content("\n".join([summary.title, "", *summary.lines]) + "\n")
    return mail
