"""Laws of artifacts: what is handed on, which names go together, and that no bytes go that a row refers to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import artifacts as rules
from tenure.core.artifacts import folded
from tenure.core.errors import InvalidInput
from tenure.core.records import Artifact, Claim, Content, Task
from tenure.testing.samples import row_of

NAMES = st.sampled_from(["a", "b", "dir/a", "dir/b", "A", "dir", rules.TRANSCRIPT])


def artifact(name: str, generation: int, run: int = 1) -> Artifact:
    return row_of(Artifact, id=f"t@{generation}:{name}", task="t", name=name, generation=generation, run=run)


@st.composite
def lineages(draw: st.DrawFn) -> list[Artifact]:
    """What several generations have put, the runs growing with them."""
    found = {}
    for generation, run in enumerate(sorted(draw(st.lists(st.integers(1, 3), max_size=5))), 1):
        for name in draw(st.sets(NAMES)):
            row = artifact(name, generation, run)
            found[row.id] = row
    return draw(st.permutations(list(found.values())))


@given(lineages(), st.integers(1, 3))
def test_of_each_name_the_last_generation_of_the_run_is_handed_on(rows: list[Artifact], run: int) -> None:
    newest = rules.newest(rows, run)
    assert [row.name for row in newest] == sorted({row.name for row in rows if row.run == run})
    for row in newest:
        assert row.run == run
        assert row.generation == max(other.generation for other in rows if (other.name, other.run) == (row.name, run))


@given(lineages())
def test_transcripts_are_handed_on_only_where_they_are_named(rows: list[Artifact]) -> None:
    claim = row_of(Claim, id="t@9", generation=9, run=1)
    assert not any(id.endswith(f":{rules.TRANSCRIPT}") for id in rules.passed_on(rows, claim, None))
    for row in rows:
        mine = row_of(Claim, id=f"t@{row.generation}", generation=row.generation, run=row.run)
        assert rules.passed_on(rows, mine, [row.name, row.name]) == (row.id,)
        with pytest.raises(InvalidInput, match="was not put under this claim"):
            rules.passed_on(rows, mine, ["another"])


@given(st.lists(st.from_regex(r"[abAB](/[abAB]){0,2}", fullmatch=True), max_size=8))
def test_names_that_were_let_in_can_lie_in_one_folder(wanted: list[str]) -> None:
    task = row_of(Task, key="A-001-x")
    kept: list[str] = []
    for name in wanted:
        try:
            rules.check_beside(task, name, kept)
        except InvalidInput:
            continue
        kept.append(name)
    files = {folded(name) for name in kept}
    folders = {folded(name).rpartition("/")[0] for name in kept} | {
        folded(n).partition("/")[0] for n in kept if "/" in n
    }
    assert len(files) == len(set(kept))
    assert not files & folders


@pytest.mark.parametrize("type", ["text/plain", "application/json", "text/html; charset=utf-8", "image/svg+xml"])
def test_media_types_are_taken(type: str) -> None:
    assert rules.check_type(type) == type


@pytest.mark.parametrize("type", ["", "text", "text/", "/x", "a/b/c", "text/html\r\nX: y", "text/html; x=y", "ä/b"])
def test_what_is_no_media_type_is_refused(type: str) -> None:
    with pytest.raises(InvalidInput, match="not a media type"):
        rules.check_type(type)


@pytest.mark.parametrize(
    ("reference", "named"),
    [
        ("artifact:A-001/a", ("A-001", "a")),
        ("artifact:A-001-x::2/dir/a.md", ("A-001-x::2", "dir/a.md")),
        ("artifact:A-001", None),
        ("artifact:/a", None),
        ("artifact:A-001/", None),
        ("task:A-001:output", None),
        ("A-001/a", None),
    ],
)
def test_a_reference_names_a_task_and_an_artifact(reference: str, named: tuple[str, str] | None) -> None:
    assert rules.named_by(reference) == (named and rules.Named(*named))


# --- bytes and the sweep that deletes them ---

MINUTE = 60 * rules.SECOND
DELAYS = st.sampled_from([0, 2 * MINUTE, 25 * 60 * MINUTE])


class Bytes:
    """One content, a sender and a sweep, each in the middle of something or not."""

    def __init__(self) -> None:
        # A row referred to them once, and none does any more.
        self.now = 10**12
        self.content: Content | None = rules.unused(rules.used(None, "p", "d", 1), self.now)
        self.is_there = True
        self.began: int | None = None  # a put: its bytes are there, its row is to come
        self.marked: int | None = None  # a sweep that goes to delete

    def steps(self) -> list[str]:
        """What can happen now."""
        content = self.content
        steps = ["put" if self.began is None else "commit"]
        if content is not None and content.uses:
            steps.append("let go")
        if self.marked is not None:
            steps.append("delete")
        elif content is not None and rules.is_to_drop(content, self.now):
            steps.append("mark")
        if content is not None and rules.is_forgotten(content, self.now):
            steps.append("forget")
        return steps

    def take(self, step: str) -> None:
        if step == "put":
            self.began, self.is_there = self.now, True
        elif step == "commit":
            assert self.began is not None
            if not rules.may_be_gone(self.content, self.began, self.now):
                self.content = rules.used(self.content, "p", "d", 1)
            self.began = None
        elif step == "forget":
            self.content = None
        elif step == "delete":
            assert self.marked is not None
            if self.now - self.marked <= rules.GOING // 2:  # else it came too late, and leaves it
                self.is_there = False
                if self.content is not None and not self.content.uses:
                    self.content = rules.replace(self.content, gone=True)
            self.marked = None
        elif self.content is not None:
            if step == "mark":
                self.content, self.marked = rules.replace(self.content, dropped_at=self.now), self.now
            else:
                self.content = rules.unused(self.content, self.now)


def test_a_sweep_may_be_on_its_way_for_a_while_after_it_said_so() -> None:
    world = Bytes()
    world.now += rules.KEPT_IDLE
    for step in ("mark", "put", "delete", "commit"):
        assert step in world.steps()
        world.take(step)
        world.now += 2 * MINUTE
    assert world.content is not None
    assert world.content.uses == 0


def test_a_put_that_took_days_is_not_believed() -> None:
    world = Bytes()
    world.now += rules.KEPT_IDLE
    for step, later in (("put", 0), ("mark", 0), ("delete", 25 * 60 * MINUTE), ("forget", 0), ("commit", 0)):
        assert step in world.steps()
        world.take(step)
        world.now += later
    assert world.content is None


def test_what_was_deleted_is_remembered_for_as_long_as_a_put_may_take() -> None:
    world = Bytes()
    world.now += rules.KEPT_IDLE
    for step in ("mark", "put", "delete"):
        world.take(step)
    world.now += rules.KEPT_IDLE - MINUTE
    assert "forget" not in world.steps()
    world.now += rules.GOING + MINUTE
    assert "forget" in world.steps()


@given(st.data())
def test_no_row_is_ever_left_without_its_bytes(data: st.DataObject) -> None:
    """A put and a deletion are two steps each, at any distance; whatever comes between, a row has its bytes."""
    world = Bytes()
    for _ in range(12):
        world.now += data.draw(DELAYS)
        world.take(data.draw(st.sampled_from(world.steps())))
        assert world.is_there or world.content is None or not world.content.uses
