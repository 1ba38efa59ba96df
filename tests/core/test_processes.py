from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.commands import Process
from tenure.core.errors import InvalidInput
from tenure.core.processes import LARGEST_PID, check_process, process_of, text_of

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="|"), min_size=1, max_size=20).filter(str.isprintable)
PROCESSES = st.builds(
    Process, host=NAMES, boot=NAMES, pid=st.integers(1, LARGEST_PID), start=st.integers(0, 2**63 - 1)
)  # fmt: skip


@given(PROCESSES)
def test_the_text_of_a_process_reads_back(process: Process) -> None:
    assert process_of(text_of(check_process(process))) == process


@given(PROCESSES, PROCESSES)
def test_two_processes_never_have_one_text(one: Process, other: Process) -> None:
    assert (text_of(one) == text_of(other)) == (one == other)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("host", ""),
        ("host", "a|b"),
        ("host", "a\nb"),
        ("host", "x" * 256),
        ("boot", ""),
        ("boot", "1|2"),
        ("pid", 0),
        ("pid", -1),
        ("pid", LARGEST_PID + 1),
        ("start", -1),
    ],
)
def test_what_can_be_no_process_is_refused(field: str, value: Any) -> None:
    fields: dict[str, Any] = {"host": "h", "boot": "b", "pid": 1, "start": 0, field: value}
    with pytest.raises(InvalidInput, match=f"process: {field}"):
        check_process(Process(**fields))
