"""The sealed log: what is sealed and when, what may leave the log, and what the check finds."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import archive
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import InvalidInput, NotAllowed, NotFound, StoreError
from tenure.core.events import Event
from tenure.core.log_seals import leaf, leaves_in, unpacked
from tenure.core.records import Archived, Project, PrunedLeaves, Row, Seal, Task, Usage, replace
from tenure.engine.archive import mover
from tenure.engine.audit import sealer
from tenure.engine.reads.query_table import read_query
from tenure.stores.port import KEEPS_SEALS
from tenure.testing.engine.archive import churning, eventful
from tenure.testing.engine.signing import keyed, sent, submit_of
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

ADMIN = Principal(role="admin", user="mia")


def verified(scene: Scene, **fields: Any) -> dict[str, Any]:
    report: dict[str, Any] = read_query(scene.engine, q.VerifyAudit(project=PROJECT, **fields))
    return report


def head(scene: Scene) -> str:
    return str(read_query(scene.engine, q.AuditHead(project=PROJECT))["head"])


def seals(scene: Scene, project: str = PROJECT) -> list[Seal]:
    return scene.rows(Seal, project=project)


def sealed_sequences(scene: Scene) -> list[int]:
    return [n for seal in seals(scene) for n in unpacked(seal.sequences) if n]


def due(scene: Scene) -> list[str]:
    return sealer.projects_to_seal(scene.engine, scene.now)


def appended(scene: Scene, *events: Event) -> None:
    """Write to the log past the engine."""
    scene.broken = True
    with scene.engine.store.begin("local", write=True) as tx:
        tx.lock("write", (PROJECT,))
        tx.append(events)


def dropped(scene: Scene, *tasks: str) -> None:
    scene.broken = True
    with scene.engine.store.begin("local", write=True) as tx:
        tx.lock("write", (PROJECT,))
        tx.drop_events(PROJECT, tasks)


def tampered(scene: Scene, before: Row, after: Row | None) -> None:
    """Change a seal, or what retention has left, past the engine; the test ends here where the store refuses."""
    if KEEPS_SEALS in scene.store.features:
        with pytest.raises(StoreError, match="permission denied"):
            scene.put(before, after)
        pytest.skip("this store lets nobody change a seal")
    scene.put(before, after)


def in_order(scene: Scene) -> list[Event]:
    return scene.events(project=PROJECT)


class Audits(Stage):
    # --- sealing ----------------------------------------------------------------------------------------------

    def test_the_log_is_sealed_in_order_from_its_beginning_and_sealing_writes_no_event(self, scene: Scene) -> None:
        scene.finish(scene.add())
        scene.do(c.AuditOn)
        before = in_order(scene)
        assert sealer.seal_all(scene.engine, PROJECT) == len(before)
        assert in_order(scene) == before
        (seal,) = seals(scene)
        assert leaves_in(seal.leaves) == [leaf(event) for event in before]
        assert (seal.first, seal.last, seal.count) == (before[0].sequence, before[-1].sequence, len(before))
        assert sealer.seal_all(scene.engine, PROJECT) == 0
        scene.add()
        sealer.seal_all(scene.engine, PROJECT)
        assert sealed_sequences(scene) == [event.sequence for event in in_order(scene)]
        assert seals(scene)[1].previous == seal.head
        assert verified(scene)["ok"]

    def test_nothing_is_sealed_in_a_project_that_nobody_has_turned_on(self, scene: Scene) -> None:
        scene.add()
        assert sealer.seal_all(scene.engine, PROJECT) == 0
        assert (due(scene), seals(scene)) == ([], [])
        with pytest.raises(NotFound):
            verified(scene)
        with pytest.raises(NotAllowed):
            scene.do(c.AuditOn, by=ADMIN)

    def test_the_leader_seals_events_that_are_ten_seconds_old(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        sealer.seal_all(scene.engine, PROJECT)
        sealer.seal_all(scene.engine, "")
        scene.add()
        scene.pass_time(seconds=9)
        assert due(scene) == []
        scene.pass_time(seconds=1)
        assert due(scene) == [PROJECT]
        sealer.seal_project(scene.engine, PROJECT)
        assert due(scene) == []
        assert sealed_sequences(scene) == [event.sequence for event in in_order(scene)]

    def test_the_leader_seals_many_events_at_once_however_young(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sealer, "IN_SEAL", 20)
        scene.do(c.AuditOn)
        sealer.seal_all(scene.engine, PROJECT)
        sealer.seal_all(scene.engine, "")
        assert due(scene) == []
        scene.run(*(c.Add(project=PROJECT, task=NewTask(title="x")) for _ in range(30)))
        assert due(scene) == [PROJECT]
        sealer.seal_project(scene.engine, PROJECT)
        assert (due(scene), sealed_sequences(scene)) == ([], [event.sequence for event in in_order(scene)])
        assert all(seal.count <= 20 for seal in seals(scene))

    def test_of_two_sealers_at_once_one_seal_counts(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        before, events = sealer.next_page(scene.engine, PROJECT)
        leaves = [[(event.sequence, leaf(event)) for event in events]]
        assert sealer._add(scene.engine, PROJECT, before, leaves, of_log=True)
        assert not sealer._add(scene.engine, PROJECT, before, leaves, of_log=True)
        assert len(seals(scene)) == 1
        assert verified(scene)["ok"]

    def test_events_that_belong_to_no_project_are_sealed_apart(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        scene.engine.do(c.CreateKey(name="ci", role="viewer"))
        scene.pass_time(seconds=10)
        assert due(scene) == ["", PROJECT]
        report = verified(scene, store=True)
        assert (report["ok"], report["sealed"]) == (True, len(scene.events(project="")))
        with pytest.raises(NotAllowed):
            read_query(scene.engine, q.AuditHead(project=PROJECT, store=True), Principal(projects=(PROJECT,)))

    def test_a_viewer_reads_the_seals_that_there_are_and_writes_none(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        scene.add()
        viewer, agent = Principal(role="viewer"), Principal(role="agent", agent="ann")
        assert read_query(scene.engine, q.AuditHead(project=PROJECT), viewer)["head"].startswith("0:")
        report = read_query(scene.engine, q.VerifyAudit(project=PROJECT), viewer)
        assert (report["ok"], report["sealed"], report["unsealed"]) == (True, 0, len(in_order(scene)))
        assert seals(scene) == []
        for query in (q.AuditPage(project=PROJECT), q.Attest(project=PROJECT)):
            with pytest.raises(NotAllowed):
                read_query(scene.engine, query, viewer)
        with pytest.raises(NotAllowed):
            read_query(scene.engine, q.AuditPage(project=PROJECT), Principal(role="admin"))
        assert seals(scene) == []
        assert read_query(scene.engine, q.AuditHead(project=PROJECT), agent)["unsealed"] == 0

    def test_metrics_count_the_events_that_are_not_sealed(self, scene: Scene) -> None:
        (entry,) = read_query(scene.engine, q.Gauges(most=10))
        assert entry["unsealed"] is None
        scene.do(c.AuditOn)
        sealer.seal_all(scene.engine, PROJECT)
        scene.add()
        (entry,) = read_query(scene.engine, q.Gauges(most=10))
        assert entry["unsealed"] == 1

    # --- the archive and retention ----------------------------------------------------------------------------

    def test_only_sealed_events_are_archived(self, scene: Scene) -> None:
        churning(scene)
        scene.do(c.AuditOn)
        key = scene.add()
        scene.finish(key)
        moved = mover.move_all(scene.engine, PROJECT)
        assert (moved.tasks, moved.held_back) == (0, 1)
        sealer.seal_all(scene.engine, PROJECT)
        assert mover.move_all(scene.engine, PROJECT).tasks == 1
        (row,) = scene.rows(Archived)
        assert archive.leaves_of(row) == b"".join(map(leaf, archive.events_in(row)))
        assert verified(scene)["ok"]

    def test_what_was_archived_before_the_audit_is_sealed_first(self, scene: Scene) -> None:
        churning(scene, history_retention=1)
        eventful(scene)
        scene.finish(scene.add("last"))
        for key in ("A-002", "A-004"):
            if scene.state(key) == "ready":
                scene.finish(key)
        assert mover.move_all(scene.engine, PROJECT).tasks > 1
        documents = scene.rows(Archived)
        scene.do(c.AuditOn)
        scene.pass_time(hours=25)
        assert mover.move_all(scene.engine, PROJECT).pruned == 0  # its events are not sealed yet
        report = verified(scene)
        assert (report["ok"], report["present"]) == (True, report["sealed"])
        assert report["sealed"] == len(in_order(scene)) + sum(row.events for row in documents)
        assert mover.move_all(scene.engine, PROJECT).pruned == len(documents)
        report = verified(scene)
        assert (report["ok"], report["pruned"]) == (True, sum(row.events for row in documents))

    def test_what_one_sealer_left_of_the_archive_another_seals_and_no_document_twice(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sealer, "IN_SEAL", 1)
        monkeypatch.setattr(sealer, "SEALS_AT_ONCE", 1)
        churning(scene)
        scene.finish(scene.add(), scene.add())
        assert mover.move_all(scene.engine, PROJECT).tasks == 2
        documents = sum(1 + row.events for row in scene.rows(Archived))
        scene.do(c.AuditOn)
        first = scene.engine.read(lambda tx: sealer._archived_leaves(tx, PROJECT))[0]
        assert sealer._add(scene.engine, PROJECT, None, [[first]], of_log=False)
        assert sealer.seal_all(scene.engine, PROJECT) == documents - 1 + len(in_order(scene))
        sealed = [one for seal in seals(scene) for one in leaves_in(seal.leaves)]
        assert len(sealed) == len(set(sealed)) == documents + len(in_order(scene))
        assert verified(scene)["ok"]

    def test_what_retention_has_deleted_is_told_from_what_was_removed(self, scene: Scene) -> None:
        churning(scene, history_retention=1)
        scene.do(c.AuditOn)
        scene.finish(scene.add())
        sealer.seal_all(scene.engine, PROJECT)
        mover.move_all(scene.engine, PROJECT)
        scene.pass_time(hours=25)
        (row,) = scene.rows(Archived)
        assert mover.move_all(scene.engine, PROJECT).pruned == 1
        report = verified(scene)
        assert (report["ok"], report["pruned"]) == (True, row.events)
        (kept,) = scene.rows(PrunedLeaves)
        assert leaves_in(kept.leaves) == leaves_in(archive.leaves_of(row))
        tampered(scene, kept, None)
        removed = [line for line in verified(scene)["findings"] if "removed" in line]
        assert len(removed) == row.events
        scene.put(None, replace(kept, leaves=kept.leaves[32:]))
        assert any("were changed" in line for line in verified(scene)["findings"])
        scene.put(replace(kept, leaves=kept.leaves[32:]), None)
        scene.put(None, replace(kept, id="evt_unknown"))
        assert any("belong to no event" in line for line in verified(scene)["findings"])

    def test_a_task_that_returns_and_goes_again_is_sealed_throughout(self, scene: Scene) -> None:
        churning(scene)
        scene.do(c.AuditOn)
        key = scene.add()
        scene.finish(key)
        sealer.seal_all(scene.engine, PROJECT)
        mover.move_all(scene.engine, PROJECT)
        scene.do(c.Reset, task=key)
        assert verified(scene)["ok"]
        scene.finish(key)
        sealer.seal_all(scene.engine, PROJECT)
        assert mover.move_all(scene.engine, PROJECT).tasks == 1
        report = verified(scene)
        assert (report["ok"], report["present"]) == (True, report["sealed"])

    # --- the check --------------------------------------------------------------------------------------------

    def test_a_removed_event_is_found(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        keys = [scene.add(), scene.add()]
        kept = head(scene)
        gone = [event.sequence for event in in_order(scene) if event.key == keys[0]]
        dropped(scene, scene.task(keys[0]).id)
        report = verified(scene, head=kept)
        assert report["findings"] == [f"event {n}: removed (seal 1)" for n in gone]

    def test_an_inserted_event_is_found(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        scene.add()
        kept = head(scene)
        first, second = seals(scene)[0], in_order(scene)[-1]
        appended(scene, replace(second, id="evt_late", task=None, version=None, key=None))
        assert verified(scene, head=kept)["ok"]  # what was appended is in the log, sealed from now on
        tampered(scene, first, replace(first, last=first.last + 10))
        assert verified(scene)["findings"]

    def test_a_changed_or_removed_seal_is_found(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        kept = ""
        for _ in range(3):
            scene.add()
            kept = head(scene)
        _, second, third = seals(scene)
        tampered(scene, second, None)
        assert any("seals missing" in line for line in verified(scene)["findings"])
        scene.put(None, replace(second, sealed_at=second.sealed_at - 1))
        assert any("seal 2 was changed" in line for line in verified(scene)["findings"])
        scene.put(replace(second, sealed_at=second.sealed_at - 1), second)
        assert verified(scene, head=kept)["ok"]
        scene.put(third, None)  # its tail is sealed anew by the next verb, in another seal
        scene.pass_time(seconds=1)
        assert verified(scene)["ok"]
        (finding,) = verified(scene, head=kept)["findings"]
        assert "is not the one of the given head" in finding
        with pytest.raises(InvalidInput):
            verified(scene, head="12:abc")

    def test_a_mark_that_was_taken_off_is_found(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        scene.add()
        kept = head(scene)
        (project,) = scene.rows(Project)
        scene.broken = True
        scene.put(project, replace(project, audited_at=0))
        for asked in ({}, {"head": kept}, {"store": True}):
            (finding,) = verified(scene, **asked)["findings"]
            assert "was taken off" in finding, asked
        assert head(scene) == kept
        scene.put(replace(project, audited_at=0), project)
        assert verified(scene, head=kept)["ok"]

    def test_a_log_that_was_cut_off_is_found_with_a_head_from_elsewhere(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        kept = ""
        for _ in range(3):
            scene.add()
            kept = head(scene)
        *_, last = seals(scene)
        gone = in_order(scene)[-1]
        appended(scene, replace(gone, id="evt_x", task=None, version=None, key=None))
        dropped(scene, str(gone.task))
        tampered(scene, last, None)
        assert verified(scene)["ok"]
        assert len(verified(scene, head=kept)["findings"]) == 1
        number = int(kept.partition(":")[0])
        (finding,) = verified(scene, head=f"{number + 7}:{'0' * 64}")["findings"]
        assert "cut off" in finding

    def test_an_edited_document_of_the_archive_is_found(self, scene: Scene) -> None:
        churning(scene)
        before = scene.add()
        scene.finish(before)
        mover.move_all(scene.engine, PROJECT)
        scene.do(c.AuditOn)
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=10, cost_usd="0.5")
        scene.submit(receipt)
        sealer.seal_all(scene.engine, PROJECT)
        mover.move_all(scene.engine, PROJECT)
        assert verified(scene)["ok"]
        scene.broken = True
        for row in scene.rows(Archived):
            for changed in edits(row):
                scene.put(row, changed)
                assert any(row.key in line for line in verified(scene)["findings"]), changed
                scene.put(changed, row)
        assert verified(scene)["ok"]

    # --- signatures -------------------------------------------------------------------------------------------

    def test_signatures_of_results_are_checked(self, scene: Scene) -> None:
        scene.do(c.AuditOn)
        keyed(scene)
        for n, data in enumerate(({"ok": True}, "x" * 9000)):
            assert sent(scene, submit_of(scene.take(scene.add(f"task {n}")), data=data, summary="s")).ok
        key = scene.add("with an artifact")
        receipt = scene.take(key)
        scene.do(c.PutArtifact, receipt=receipt, name="a", digest="d" * 64, size=1, since=scene.now)
        assert sent(scene, submit_of(receipt, artifacts={"a": "d" * 64})).ok
        assert (verified(scene)["signatures"], verified(scene)["findings"]) == (3, [])
        churning(scene)
        sealer.seal_all(scene.engine, PROJECT)
        assert mover.move_all(scene.engine, PROJECT).tasks == 3
        assert (verified(scene)["signatures"], verified(scene)["findings"]) == (3, [])

    # --- what an event says -----------------------------------------------------------------------------------

    def test_an_event_says_whose_how_long_and_what_was_before(self, scene: Scene) -> None:
        mia = Principal(role="member", user="mia", address="10.0.0.7")
        key = scene.add()
        first = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        scene.do(c.ClaimTask, task=key, agent="bo", session="s-bo", lease=90, by=mia)
        scene.submit(first, {"late": True})
        log = {event["kind"]: event for event in read_query(scene.engine, q.TaskLog(project=PROJECT, task=key))}
        claimed, refused = log["task.claimed"], log["task.result_refused"]
        assert (claimed["tenant"], claimed["user"], claimed["address"]) == ("local", "mia", "10.0.0.7")
        assert (claimed["lease"], claimed["previous_claim"]) == (90.0, "EXPIRED")
        assert (refused["details"]["result_size"], refused["details"]["processing_ms"]) == (13, 61_000)

    # --- presets ----------------------------------------------------------------------------------------------

    def test_a_preset_raises_retention_and_only_an_owner_lowers_it(self, scene: Scene) -> None:
        scene.do(c.DefineProject, change_limits={"history_retention": 30}, compliance="soc2", by=ADMIN)
        assert scene.rows(Project)[0].limits == {"history_retention": 365}
        scene.do(c.DefineProject, change_limits={"history_retention": 400}, by=ADMIN)
        scene.do(c.DefineProject, change_limits={"history_retention": 365}, by=ADMIN)
        for fields in ({"change_limits": {"history_retention": 364}}, {"compliance": "none"}):
            with pytest.raises(NotAllowed):
                scene.do(c.DefineProject, **fields, by=ADMIN)
        scene.do(c.DefineProject, compliance="hipaa", by=ADMIN)
        assert scene.rows(Project)[0].limits == {"history_retention": 2190}
        scene.do(c.DefineProject, change_limits={"history_retention": 100})
        lowered = in_order(scene)[-1].details["lowered"]
        assert lowered == {"history_retention": {"from": 2190, "to": 100, "preset": 2190}}
        scene.do(c.DefineProject, compliance="none")
        assert in_order(scene)[-1].details["lowered"] == {"compliance": {"from": "hipaa", "to": "none"}}
        with pytest.raises(InvalidInput):
            scene.do(c.DefineProject, compliance="gdpr")


def edits(row: Archived) -> list[Archived]:
    """The row with one thing changed: a column, the rows in its document, its events, or its bytes."""
    rows, events = archive.rows_in(row), archive.events_in(row)
    task = next(one for one in rows if isinstance(one, Task))
    leaves = archive.leaves_of(row)

    def again(rows: Any = rows, events: Any = events, leaves: bytes = leaves) -> Archived:
        made = archive.archived(task, rows, events, row.archived_at, leaves=leaves)
        return replace(row, document=made.document, size=made.size)

    found = [
        replace(row, state="cancelled"),
        replace(row, document=row.document[:-1]),
        again(rows=[one for one in rows if one is not rows[-1]]),
        again(events=(replace(events[0], message="other"), *events[1:])),
        again(events=(events[1], events[0], *events[2:])),
    ]
    if leaves:
        found.append(again(leaves=b"\0" * len(leaves)))
    if any(isinstance(one, Usage) for one in rows):
        found.append(again(rows=[replace(one, cost=1) if isinstance(one, Usage) else one for one in rows]))
    return found
