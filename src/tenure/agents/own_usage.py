"""What an agent has used under its claims, booked from the transcript that it writes itself.

Hooks book while the agent works; a command that ends a claim books once more before, since a claim may be shorter than
the time between two bookings. The transcript is the one that the session's hooks named last.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tenure.core.errors import TenureError

if TYPE_CHECKING:
    from tenure.agents.receipts import Kept, Receipts
    from tenure.client import Client


def is_below_a_runner(environ: Mapping[str, str]) -> bool:
    """Whether `tenure run` started this agent: it reports usage and submits the result itself."""
    return bool(environ.get("TENURE_PROMPT_FILE"))


def unnamed_transcript(agent: str, session: str, environ: Mapping[str, str]) -> str:
    """Copilot CLI names its transcript only when it stops. It is the file of the session; "" where there is none."""
    if agent != "copilot" or not session.replace("-", "").isalnum():
        return ""
    home = environ.get("HOME") or os.path.expanduser("~")
    path = os.path.join(home, ".copilot", "session-state", session, "events.jsonl")
    return path if os.path.isfile(path) else ""


def book(client: Client, held: Sequence[Kept], transcript: str) -> None:
    """Book the usage in the transcript under each claim: a message counts for the claim before it."""
    from msgspec import structs

    from tenure.agents.transcript_usage import totals_between
    from tenure.core.commands import ReportUsage

    begun = sorted((int(client.show(kept.task).get("claimed_at") or 0) / 1e6, kept.receipt) for kept in held)
    ends = [*(at for at, _ in begun[1:]), None]
    reports = [
        ReportUsage(project=client.project, receipt=receipt, **structs.asdict(totals))
        for (since, receipt), until in zip(begun, ends, strict=True)
        for totals in totals_between(transcript, since, until)
    ]
    if reports:
        client.batch(reports)


def book_before_end(client: Client, receipts: Receipts) -> None:
    """Book before a claim of this session ends. A booking that fails stands in nobody's way."""
    from tenure.agents.hook_memory import file_of, hook_state

    state_file = file_of(receipts.home.folder, receipts.session)
    if is_below_a_runner(receipts.environ) or not os.path.exists(state_file):
        return
    with suppress(TenureError, OSError):
        with hook_state(state_file) as state:
            transcript = state.transcript
        if transcript and (held := receipts.live()):
            book(client, held, transcript)
