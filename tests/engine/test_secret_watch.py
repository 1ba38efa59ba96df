"""The search at the end of every test of the engine's suite: that it finds a secret wherever one stands."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tenure.core import archive
from tenure.core import commands as c
from tenure.core.errors import InvalidInput
from tenure.core.outcomes import Outcome
from tenure.core.records import Archived, Body, Brief, Task, replace
from tenure.engine.archive import mover
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene
from tenure.testing.secret_watch import plain_secrets

PLAIN = "correct horse battery"
SPELT = ("correct horse battery", b64encode(PLAIN.encode()).decode(), "correct%20horse%20battery")


@pytest.fixture
def scene() -> Scene:
    """One task with a secret, and one that was archived."""
    clock = FakeClock()
    scene = Scene(Memory(clock=clock), clock)
    scene.add("deploy", spec={"context": {"A": {"$secret": PLAIN}}})
    scene.finish(scene.add("archived"))
    mover.move_all(scene.engine, PROJECT, older=0)
    return scene


def test_where_everything_is_sealed_nothing_is_found(scene: Scene) -> None:
    assert scene.rows(Archived)
    assert plain_secrets(scene) == []


def in_a_row(scene: Scene, text: str) -> None:
    (brief,) = scene.rows(Brief)
    scene.put(brief, replace(brief, metadata={"a": [text]}))


def in_an_event(scene: Scene, text: str) -> None:
    event = scene.events()[-1]
    with scene.store.begin("local", write=True) as tx:
        tx.lock("write", (PROJECT,))
        tx.append([replace(event, id="evt_x", task=None, version=None, details={"a": text})])


def in_a_large_value(scene: Scene, text: str) -> None:
    content = text.encode()
    scene.put(None, Body(project=PROJECT, id="body_x", content=content))


def in_the_archive(scene: Scene, text: str) -> None:
    (row,) = scene.rows(Archived)
    rows, events = archive.rows_in(row), archive.events_in(row)
    task = next(one for one in rows if isinstance(one, Task))
    made = archive.archived(task, rows, (replace(events[0], message=text), *events[1:]), row.archived_at, leaves=b"")
    scene.put(row, replace(row, document=made.document, size=made.size))


def in_an_answer(scene: Scene, text: str) -> None:
    scene.answers.append(Outcome(outcome="OK", message=text))


def in_an_error(scene: Scene, text: str) -> None:
    scene.answers.append(InvalidInput("no", f"not {text}"))


@pytest.mark.parametrize("spelt", SPELT)
@pytest.mark.parametrize("write", [in_a_row, in_an_event, in_a_large_value, in_the_archive, in_an_answer, in_an_error])
def test_a_secret_is_found_wherever_it_stands(scene: Scene, write: Any, spelt: str) -> None:
    write(scene, f"it is {spelt} here")
    assert plain_secrets(scene) != []


def test_a_sealed_value_in_an_answer_is_found(scene: Scene) -> None:
    brief = next(row for row in scene.rows(Brief) if row.spec)
    scene.answers.append(Outcome(outcome="OK", task={"spec": brief.spec}))  # type: ignore[typeddict-item]
    assert any("a sealed value" in line for line in plain_secrets(scene))


def test_what_a_claim_opens_is_no_leak(scene: Scene) -> None:
    granted = scene.do(c.ClaimTask, task="A-001", agent="ann", session="s")
    assert granted.secrets == {"A": PLAIN}
    assert plain_secrets(scene) == []
