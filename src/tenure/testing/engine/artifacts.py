"""Artifacts: named under a live receipt alone, handed on with the result; bytes that nobody needs go."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tenure.artifacts.memory import MemoryArtifacts
from tenure.artifacts.port import put
from tenure.core import artifacts as rules
from tenure.core import commands as c
from tenure.core import limits, runners
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput, LimitReached, NotAllowed, NotFound, Overloaded, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.records import Artifact, Content, replace
from tenure.engine import Context, Engine
from tenure.engine.archive import mover
from tenure.engine.artifacts import artifact_verbs, retention
from tenure.engine.reads import tasks
from tenure.testing.engine.spending import look, shown
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene, forged

DAYS = 24 * 3600


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def give(scene: Scene, receipt: str, name: str, content: bytes = b"content", **fields: Any) -> Outcome:
    """Put the bytes into the scene's place, if it has one, and give them a name."""
    since = fields.pop("since", scene.now)
    if scene.engine.context.artifacts is not None:
        put(scene.engine.context.artifacts(PROJECT), [content], largest=1 << 20)
    return scene.do(
        c.PutArtifact, by=AGENT, receipt=receipt, name=name, digest=digest_of(content), size=len(content),
        since=since, **fields,
    )  # fmt: skip


MARKED: dict[str, Any] = {"metadata": runners.mark("word", submits=False)}  # the claim of a runner
WORD = {"word": "word"}


def names(entries: Any) -> list[tuple[str, int]]:
    return [(entry["name"], entry["generation"]) for entry in entries]


def listed(scene: Scene, key: str, **filters: Any) -> list[tuple[str, int]]:
    return names(look(scene, artifact_verbs.artifacts, key, **filters))


def place_of(scene: Scene) -> MemoryArtifacts:
    place = MemoryArtifacts()
    scene.engine = Engine(scene.store, scene.dice, Context(artifacts=lambda _: place))
    return place


class Artifacts(Stage):
    # --- putting ------------------------------------------------------------------------------------------------

    def test_an_artifact_is_a_sign_of_work(self, scene: Scene) -> None:
        key = scene.add()
        for _ in range(2):
            scene.take(key, lease=60)
            scene.pass_time(seconds=60)
        receipt = scene.take(key, lease=60)
        give(scene, receipt, "part.txt")
        scene.pass_time(seconds=60)
        assert (scene.task(key).losses, scene.claim(key).attempt) == (1, 1)

    def test_an_artifact_is_named_shown_and_told(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        answer = give(scene, receipt, "reports/summary.md", b"# Done", type="text/markdown")
        entry = {
            "name": "reports/summary.md", "type": "text/markdown", "size": 6, "digest": digest_of(b"# Done"),
            "generation": 1, "run": 1, "agent": "ann", "at": scene.now, "ref": f"artifact:{key}/reports/summary.md",
        }  # fmt: skip
        assert (answer.outcome, answer.again, answer.artifact) == ("OK", False, entry)
        assert shown(scene, key)["artifacts"] == [entry]
        assert [list(h["artifacts"]) for h in look(scene, tasks.history, key)] == [[entry]]
        assert look(scene, artifact_verbs.artifacts, key) == [entry]
        (event,) = scene.events(kind="task.artifact")
        assert (event.message, event.generation, event.agent) == ("reports/summary.md", 1, "ann")
        assert scene.state(key) == "running"  # it began with the first write of its holder

    def test_the_same_again_changes_nothing(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        give(scene, receipt, "a.txt")
        again = give(scene, receipt, "a.txt")
        assert (again.outcome, again.again) == ("OK", True)
        assert len(scene.events(kind="task.artifact")) == 1
        (content,) = scene.rows(Content)
        assert content.uses == 1

    def test_another_content_takes_the_place_of_the_first_in_its_generation(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        give(scene, receipt, "a.txt", b"one")
        give(scene, receipt, "a.txt", b"two")
        assert [(row.digest, row.size) for row in scene.rows(Artifact)] == [(digest_of(b"two"), 3)]
        assert scene.task(key).artifacts == 1
        uses = {row.id: (row.uses, row.idle_at) for row in scene.rows(Content)}
        assert uses == {digest_of(b"one"): (0, scene.now), digest_of(b"two"): (1, None)}

    def test_equal_contents_are_counted_together(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        for name in ("a", "b", "c"):
            give(scene, receipt, name)
        other = scene.take(scene.add())
        give(scene, other, "a")
        (content,) = scene.rows(Content)
        assert (content.uses, content.size) == (4, len(b"content"))

    def test_putting_renews_the_lease(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), lease=60)
        scene.pass_time(seconds=50)
        assert give(scene, receipt, "a").lease_until == scene.now + 60_000_000

    # --- who may not --------------------------------------------------------------------------------------------

    def test_a_superseded_holder_puts_nothing(self, scene: Scene) -> None:
        key = scene.add()
        old = scene.take(key, "ann", lease=60)
        give(scene, old, "a.txt", b"old")
        scene.pass_time(seconds=60)
        new = scene.take(key, "bo")
        before = scene.tables()
        refused = give(scene, old, "a.txt", b"zombie")
        assert (refused.outcome, refused.directive) == ("STALE_GENERATION", "abort")
        assert give(scene, old, rules.TRANSCRIPT, b"said").outcome == "STALE_GENERATION"
        assert scene.tables() == before
        give(scene, new, "a.txt", b"new")
        assert listed(scene, key) == [("a.txt", 2), ("a.txt", 1)]

    def test_nobody_puts_without_a_live_receipt(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        assert give(scene, forged(receipt, nonce=bytes(16)), "a").outcome == "SESSION_MISMATCH"
        assert give(scene, forged(receipt, generation=9), "a").outcome == "FUTURE_GENERATION"
        assert give(scene, forged(receipt, epoch="00000000"), "a").outcome == "STALE_EPOCH"
        scene.pass_time(seconds=60)
        assert give(scene, receipt, "a").outcome == "ALREADY_EXPIRED"
        assert scene.rows(Artifact) == []
        assert scene.rows(Content) == []

    def test_a_repeat_after_the_end_is_told_what_was_done(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        give(scene, receipt, "a", b"one")
        scene.submit(receipt)
        assert give(scene, receipt, "a", b"one").again
        assert give(scene, receipt, "a", b"two").outcome == "TASK_ALREADY_COMPLETED"
        assert give(scene, receipt, "b", b"one").outcome == "TASK_ALREADY_COMPLETED"

    def test_a_transcript_may_come_after_the_last_word_until_another_has_the_task(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, **MARKED)
        scene.submit(receipt)
        late = give(scene, receipt, rules.TRANSCRIPT, b"said", **WORD)
        assert (late.outcome, late.directive, scene.state(key)) == ("OK", "cancel", "completed")
        assert (
            give(scene, forged(receipt, nonce=bytes(16)), rules.TRANSCRIPT, b"x", **WORD).outcome == "SESSION_MISMATCH"
        )
        scene.do(c.Reset, task=key)
        scene.take(key, "bo")
        assert give(scene, receipt, rules.TRANSCRIPT, b"more", **WORD).outcome == "STALE_GENERATION"

    @pytest.mark.parametrize("name", [rules.TRANSCRIPT, "Transcript.JSONL"])
    def test_evidence_is_put_by_the_runner_alone(self, scene: Scene, name: str) -> None:
        """Not by its agent, which has the receipt and not the word, nor by a holder without a runner."""
        alone, kept = scene.take(scene.add()), scene.take(scene.add(), "bo", **MARKED)
        for receipt, word in ((alone, None), (alone, "word"), (kept, None), (kept, ""), (kept, "words")):
            refused = give(scene, receipt, name, b'{"from":"runner"}', word=word)
            assert (refused.outcome, refused.directive) == ("DENIED_RUNNER", "continue")
            asked = artifact_verbs.ready(scene.engine, PROJECT, receipt, name, AGENT, word)
            assert isinstance(asked, Outcome), "nothing is uploaded"
            assert asked.outcome == "DENIED_RUNNER"
        assert scene.rows(Artifact) == []
        assert give(scene, kept, name, b"said", **WORD).ok
        assert give(scene, kept, name, b"said").again, "the same bytes change nothing"
        assert give(scene, kept, name, b"other").outcome == "DENIED_RUNNER"

    def test_a_key_of_another_agent_puts_nothing(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), "ann")
        eve = Principal(role="agent", agent="eve", is_proven=True)
        with pytest.raises(NotAllowed, match="your key is for eve"):
            scene.do(c.PutArtifact, by=eve, receipt=receipt, name="a", digest="0" * 64, size=1, since=0)
        viewer = Principal(role="viewer")
        with pytest.raises(NotAllowed, match="needs the role agent"):
            scene.do(c.PutArtifact, by=viewer, receipt=receipt, name="a", digest="0" * 64, size=1, since=0)

    # --- what may not -------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", ["", "..", "../x", "/etc/passwd", "a/../b", ".git/config", "a\\b", "con", "a\n"])
    def test_names_that_lead_elsewhere_are_refused(self, scene: Scene, name: str) -> None:
        receipt = scene.take(scene.add())
        with pytest.raises(InvalidInput, match="artifact name"):
            give(scene, receipt, name)
        assert scene.rows(Artifact) == []

    @pytest.mark.parametrize(("first", "second"), [("Report.md", "report.md"), ("a", "a/b"), ("a/b", "A")])
    def test_names_that_no_folder_could_hold_together_are_refused(self, scene: Scene, first: str, second: str) -> None:
        receipt = scene.take(scene.add())
        give(scene, receipt, first)
        with pytest.raises(InvalidInput, match="has the artifact"):
            give(scene, receipt, second)

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"digest": "no digest"}, "not a digest"),
            ({"digest": "A" * 64}, "not a digest"),
            ({"size": -1}, "must not be negative"),
            ({"type": "text"}, "not a media type"),
            ({"type": "text/html\r\nX-Other: 1"}, "not a media type"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, scene: Scene, fields: dict[str, Any], why: str) -> None:
        receipt = scene.take(scene.add())
        asked = {"name": "a", "digest": digest_of(b"x"), "size": 1, "since": scene.now, **fields}
        with pytest.raises(InvalidInput, match=why):
            scene.do(c.PutArtifact, receipt=receipt, **asked)

    def test_sizes_are_bounded_by_the_limit_of_results(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        with pytest.raises(TooLarge, match=str(rules.LARGEST)):
            scene.do(c.PutArtifact, receipt=receipt, name="a", digest="0" * 64, size=rules.LARGEST + 1, since=scene.now)
        scene.do(c.DefineProject, limits={"max_result_size": 10})
        with pytest.raises(TooLarge, match="at most 10"):
            give(scene, receipt, "a", b"eleven byte")
        assert give(scene, receipt, "a", b"ten bytes!").ok

    def test_a_task_has_a_bounded_number_of_them(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "ARTIFACTS", 3)
        receipt = scene.take(scene.add())
        for n in range(3):
            give(scene, receipt, f"{n}")
        give(scene, receipt, "2", b"anew")
        with pytest.raises(LimitReached, match="has 3 artifacts"):
            give(scene, receipt, "3")

    def test_whether_it_could_be_put_is_told_before_the_bytes_come(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)

        def ready(receipt: str, name: str = "a", by: Principal = AGENT) -> Any:
            return artifact_verbs.ready(scene.engine, PROJECT, receipt, name, by)

        before = scene.tables()
        assert ready(receipt) == (rules.LARGEST, scene.now)
        with pytest.raises(InvalidInput):
            ready(receipt, "../a")
        with pytest.raises(NotAllowed):
            ready(receipt, by=Principal(role="viewer"))
        with pytest.raises(NotFound):
            ready(receipt, by=Principal(role="agent", projects=("other",)))
        assert scene.tables() == before
        scene.pass_time(seconds=60)
        assert ready(receipt).outcome == "ALREADY_EXPIRED"
        assert ready("A-999@1:" + receipt.partition(":")[2]).outcome == "NOT_FOUND"

    # --- handing on ---------------------------------------------------------------------------------------------

    def test_the_next_task_gets_what_the_result_brought(self, scene: Scene) -> None:
        key = scene.add()
        after = scene.add(depends_on=(key,))
        receipt = scene.take(key, **MARKED)
        for name in ("b.txt", "a.txt", rules.TRANSCRIPT):
            give(scene, receipt, name, name.encode())
        scene.submit(receipt)
        granted = scene.claim(after, "bo")
        entry = (granted.inputs or {})[key]
        assert names(entry["artifacts"]) == [("a.txt", 1), ("b.txt", 1)]
        assert entry["artifacts"][0]["ref"] == f"artifact:{key}/a.txt"
        assert (granted.missing, granted.artifacts) == (None, None)

    def test_a_later_generation_wins_and_earlier_names_go_along(self, scene: Scene) -> None:
        key = scene.add()
        after = scene.add(depends_on=(key,))
        first = scene.take(key, "ann", lease=60)
        give(scene, first, "draft.md", b"one")
        give(scene, first, "data.csv", b"1,2")
        scene.pass_time(seconds=60)
        second = scene.take(key, "bo")
        give(scene, second, "draft.md", b"two")
        scene.submit(second)
        handed = (scene.claim(after).inputs or {})[key]["artifacts"]
        assert names(handed) == [("data.csv", 1), ("draft.md", 2)]
        assert listed(scene, key) == [("data.csv", 1), ("draft.md", 2), ("draft.md", 1)]
        assert listed(scene, key, generation=1) == [("data.csv", 1), ("draft.md", 1)]

    def test_a_result_may_name_what_it_brings(self, scene: Scene) -> None:
        key = scene.add()
        after = scene.add(depends_on=(key,))
        receipt = scene.take(key)
        give(scene, receipt, "scratch")
        give(scene, receipt, "final", b"final")
        with pytest.raises(InvalidInput, match="was not put under this claim"):
            scene.submit(receipt, artifacts=("finale",))
        assert scene.state(key) == "running"
        scene.submit(receipt, artifacts=("final",))
        assert names((scene.claim(after).inputs or {})[key]["artifacts"]) == [("final", 1)]

    def test_a_result_that_names_none_brings_none(self, scene: Scene) -> None:
        key = scene.add()
        after = scene.add(depends_on=(key,))
        receipt = scene.take(key)
        give(scene, receipt, "scratch")
        scene.submit(receipt, artifacts=())
        assert "artifacts" not in (scene.claim(after).inputs or {})[key]

    def test_a_task_that_was_started_over_brings_only_its_new_run(self, scene: Scene) -> None:
        key = scene.add()
        after = scene.add(depends_on=(key,))
        receipt = scene.take(key)
        give(scene, receipt, "old")
        scene.submit(receipt)
        scene.do(c.Reset, task=key)
        taken = scene.claim(key)
        assert taken.artifacts is None
        give(scene, taken.receipt or "", "new", b"new")
        scene.submit(taken.receipt or "")
        assert names((scene.claim(after).inputs or {})[key]["artifacts"]) == [("new", 2)]

    def test_a_refused_result_that_is_adopted_brings_its_own(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        after = scene.add(depends_on=(key,))
        receipt = scene.take(key, lease=60)
        give(scene, receipt, "a.txt")
        scene.pass_time(seconds=60)
        assert scene.state(key) == "dead_lettered"
        scene.submit(receipt)
        scene.do(c.Adopt, task=key)
        assert names((scene.claim(after).inputs or {})[key]["artifacts"]) == [("a.txt", 1)]

    def test_context_refs_name_artifacts_and_missing_ones_are_told(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, **MARKED)
        give(scene, receipt, "reports/a.md")
        give(scene, receipt, rules.TRANSCRIPT, b"said", **WORD)
        ref = key.partition("-")[0] + "-" + key.split("-")[1]
        refs = [
            f"artifact:{ref}/reports/a.md", f"artifact:{key}/{rules.TRANSCRIPT}", f"artifact:{key}/none",
        ]  # fmt: skip
        granted = scene.claim(scene.add(spec={"context_refs": refs}), "bo")
        assert names((granted.inputs or {})[key]["artifacts"]) == [("reports/a.md", 1), (rules.TRANSCRIPT, 1)]
        assert "data" not in (granted.inputs or {})[key]
        assert granted.missing == tuple(refs[2:])

    def test_what_does_not_fit_into_the_inputs_is_counted(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        from tenure.engine.reads import task_view

        key = scene.add()
        after = scene.add(depends_on=(key,))
        receipt = scene.take(key)
        for n in range(5):
            give(scene, receipt, f"{n}")
        scene.submit(receipt)
        monkeypatch.setattr(task_view, "MOST_INPUTS", 1000)
        entry = (scene.claim(after).inputs or {})[key]
        assert len(entry["artifacts"]) + entry["artifacts_left_out"] == 5
        assert entry["artifacts_left_out"] > 0

    def test_whoever_goes_on_gets_what_was_left(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann", lease=60, **MARKED)
        give(scene, receipt, "half.txt")
        give(scene, receipt, rules.TRANSCRIPT, b"said", **WORD)
        scene.pass_time(seconds=60)
        taken = scene.claim(key, "bo")
        assert names(taken.artifacts) == [("half.txt", 1), (rules.TRANSCRIPT, 1)]

    # --- the archive --------------------------------------------------------------------------------------------

    def test_archived_with_their_task_and_back_with_it(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        give(scene, receipt, "a.txt")
        scene.submit(receipt)
        assert mover.move_all(scene.engine, PROJECT, older=0).tasks == 1
        assert scene.stored_rows(Artifact) == []
        assert listed(scene, key) == [("a.txt", 1)]
        scene.do(c.Reset, task=key)
        assert len(scene.stored_rows(Artifact)) == 1
        (content,) = scene.rows(Content)
        assert content.uses == 1

    def test_bytes_of_pruned_tasks_are_deleted_a_day_later(self, scene: Scene) -> None:
        place = place_of(scene)
        for content in (b"goes", b"stays"):
            receipt = scene.take(scene.add())
            give(scene, receipt, "a.txt", content)
            scene.submit(receipt)
        give(scene, scene.take(scene.add()), "b.txt", b"stays")
        scene.do(c.DefineProject, limits={"history_retention": 1})
        mover.move_all(scene.engine, PROJECT, older=0)
        scene.pass_time(hours=25)
        assert mover.move_all(scene.engine, PROJECT, older=0).pruned == 2
        scene.engine.sweep(PROJECT)
        assert place.size(digest_of(b"goes")) == 4
        scene.pass_time(hours=25)
        scene.engine.sweep(PROJECT)
        assert place.size(digest_of(b"goes")) is None
        assert place.size(digest_of(b"stays")) == 5
        scene.pass_time(hours=25)
        scene.engine.sweep(PROJECT)
        assert [row.id for row in scene.rows(Content)] == [digest_of(b"stays")]

    # --- the bytes ----------------------------------------------------------------------------------------------

    def test_what_a_zombie_has_put_is_taken_away(self, scene: Scene) -> None:
        place = place_of(scene)
        key = scene.add()
        old = scene.take(key, lease=60)
        scene.pass_time(seconds=60)
        scene.take(key, "bo")
        assert give(scene, old, "a", b"zombie").outcome == "STALE_GENERATION"
        artifact_verbs.left(scene.engine, PROJECT, digest_of(b"zombie"), 6)
        assert not retention.is_due(scene.engine, PROJECT)
        scene.pass_time(hours=25)
        assert retention.is_due(scene.engine, PROJECT)
        retention.drop(scene.engine, PROJECT)
        assert place.size(digest_of(b"zombie")) is None

    def test_a_put_that_a_sweep_may_have_undone_is_refused_and_sent_again(self, scene: Scene) -> None:
        place = place_of(scene)
        receipt = scene.take(scene.add(), lease=30 * DAYS)
        artifact_verbs.left(scene.engine, PROJECT, digest_of(b"same"), 4)
        scene.pass_time(hours=25)
        since = scene.now  # the bytes come, a sweep deletes them as nobody's, and then comes the row
        put(place, [b"same"], largest=10)
        retention.drop(scene.engine, PROJECT)
        assert place.size(digest_of(b"same")) is None
        asked: dict[str, Any] = {"receipt": receipt, "name": "a", "digest": digest_of(b"same"), "size": 4}
        with pytest.raises(Overloaded, match="may have been deleted"):
            scene.do(c.PutArtifact, since=since, **asked)
        scene.pass_time(minutes=11)
        assert give(scene, receipt, "a", b"same").ok
        with pytest.raises(Overloaded):  # so long on its way that nobody could know any more
            give(scene, receipt, "b", b"other", since=scene.now - DAYS * 1_000_000)
        assert place.size(digest_of(b"same")) == 4

    def test_a_sweep_leaves_what_is_needed_again(self, scene: Scene) -> None:
        place = place_of(scene)
        receipt = scene.take(scene.add(), lease=30 * DAYS)
        give(scene, receipt, "a", b"one")
        give(scene, receipt, "a", b"two")
        scene.pass_time(hours=23)
        give(scene, receipt, "b", b"one")
        scene.pass_time(hours=25)
        retention.drop(scene.engine, PROJECT)
        assert place.size(digest_of(b"one")) == 3

    def test_a_sweep_that_was_cut_short_is_done_again(self, scene: Scene) -> None:
        place = place_of(scene)
        put(place, [b"left"], largest=10)
        artifact_verbs.left(scene.engine, PROJECT, digest_of(b"left"), 4)
        scene.pass_time(hours=25)
        scene.engine.transact((PROJECT,), lambda work: retention._mark(work, PROJECT))  # and there it died
        assert not retention.is_due(scene.engine, PROJECT)
        scene.pass_time(minutes=21)
        retention.drop(scene.engine, PROJECT)
        assert place.size(digest_of(b"left")) is None

    # --- verify -------------------------------------------------------------------------------------------------

    def test_verify_finds_rows_that_do_not_add_up(self, scene: Scene) -> None:
        scene.broken = True
        key = scene.add()
        receipt = scene.take(key)
        give(scene, receipt, "a.txt")
        scene.submit(receipt)
        (row,), (content,) = scene.rows(Artifact), scene.rows(Content)
        scene.put(None, replace(row, id="stray", generation=9))
        scene.put(content, replace(content, uses=7))
        found = scene.engine.verify(with_replay=False)
        assert any("stray: belongs to a claim that does not exist" in text for text in found)
        assert any("1 artifacts, 2 are there" in text for text in found)
        assert any("7 are counted" in text for text in found)
        scene.put(row, None)
        assert any("which does not exist" in text for text in scene.engine.verify(with_replay=False))

    def test_verify_finds_bytes_that_are_gone(self, scene: Scene) -> None:
        from tenure.engine.verify.artifact_rows import lost

        receipt = scene.take(scene.add())
        give(scene, receipt, "a.txt")
        assert ["no artifact store" in text for text in lost(scene.engine)] == [True]
        place = place_of(scene)
        assert ["gone" in text for text in lost(scene.engine)] == [True]
        put(place, [b"content"], largest=10)
        assert list(lost(scene.engine)) == []
