"""Secrets of tasks after the claim: who was given them is searched for a day in all that it writes."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest

from tenure.artifacts.memory import MemoryArtifacts
from tenure.core import commands as c
from tenure.core.commands import NewTask, Principal, Template
from tenure.core.errors import NotAllowed, SecretsOff, SecretUnreadable, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import Message, Request, replace
from tenure.core.task_secrets import SHOWN, Hidden
from tenure.engine import Engine
from tenure.engine.archive import mover
from tenure.engine.duties.sweep import sweep
from tenure.engine.reads.query_table import read_query
from tenure.engine.secrets import plain_values
from tenure.testing.engine.secrets import NO_KEY, OTHER, PLAIN, context_with, with_secret
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene
from tenure.testing.secret_watch import queries_on, text_of

DAY = 24 * 3600
ANN = Principal(role="agent", agent="ann", session="s-ann")
FLEET = Principal(role="agent", agent="ann", user="fleet", key="k-1", address="10.0.0.1")


def sent(scene: Scene, text: str = PLAIN, by: Principal = ANN, sender: str | None = None) -> str:
    """What is stored of a mail."""
    scene.do(c.Send, by=by, sender=sender or by.agent, text=f"{text} {scene.now}", to="zoe")
    row: Message = max(scene.rows(Message), key=lambda row: row.id)
    return row.text.rpartition(" ")[0]


class KnownSecrets(Stage):
    def held(self, scene: Scene, value: str = PLAIN, **claim: Any) -> str:
        scene.know("ann", "bob", "zoe")
        return scene.take(scene.add("deploy", spec=with_secret(value).spec), **claim)

    def test_what_an_agent_writes_after_its_claim_is_searched_for_a_day(self, scene: Scene) -> None:
        scene.submit(self.held(scene))
        scene.pass_time(hours=23)
        assert [sent(scene), sent(scene, by=Principal(role="owner"), sender="ann")] == [SHOWN] * 2
        assert sent(scene, "nothing secret") == "nothing secret"
        scene.pass_time(hours=2)
        scene.sealer.plain.clear()  # type: ignore[union-attr]  # from here on it is said
        assert sent(scene) == PLAIN

    @pytest.mark.parametrize("end", ["Release", "Fail", "lost", "cancelled"])
    def test_however_the_claim_has_ended(self, scene: Scene, end: str) -> None:
        receipt = self.held(scene, lease=60.0)
        if end == "lost":
            scene.pass_time(hours=20)
        elif end == "cancelled":
            scene.do(c.Cancel, task=receipt.partition("@")[0], reason="x")
        else:
            said: dict[str, Any] = {"message" if end == "Fail" else "reason": "x"}
            scene.do(getattr(c, end), receipt=receipt, **said)
        scene.pass_time(hours=4 if end == "lost" else 23)
        assert sent(scene) == SHOWN

    def test_a_claim_of_days_is_known_for_a_day_after_its_end_whatever_was_swept(self, scene: Scene) -> None:
        receipt = self.held(scene, lease=5.0 * DAY)
        scene.pass_time(hours=4 * 24)
        sweep(scene.engine, PROJECT)
        scene.submit(receipt)
        scene.pass_time(hours=23)
        sweep(scene.engine, PROJECT)
        assert sent(scene) == SHOWN
        scene.pass_time(hours=26)
        sweep(scene.engine, PROJECT)
        assert scene.rows(Request) == []

    def test_the_key_and_the_session_of_the_claim_are_searched_under_other_names(self, scene: Scene) -> None:
        scene.know("ann", "bob", "zoe")
        key = scene.add("deploy", spec=with_secret().spec)
        receipt = scene.claim(key, by=FLEET).receipt
        bob = replace(FLEET, agent="bob")
        assert sent(scene, by=bob) == SHOWN  # while ann holds it
        scene.submit(receipt or "", by=FLEET)
        for by in (bob, Principal(role="agent", agent="bob", session="s-ann")):
            assert sent(scene, by=by) == SHOWN
        other = replace(bob, key="k-2")
        scene.sealer.plain.clear()  # type: ignore[union-attr]  # bob says what nobody gave him
        assert sent(scene, by=other) == PLAIN

    def test_who_opens_the_secrets_by_a_receipt_knows_them_too(self, scene: Scene) -> None:
        receipt = self.held(scene)
        scene.do(c.OpenSecrets, receipt=receipt, by=Principal(role="agent", agent="bob"))
        scene.submit(receipt)
        assert sent(scene, by=Principal(role="agent", agent="bob")) == SHOWN

    def test_a_secret_that_was_replaced_or_taken_away_is_still_known(self, scene: Scene) -> None:
        receipt = self.held(scene)
        task = receipt.partition("@")[0]
        scene.do(c.Release, receipt=receipt)
        scene.do(c.Edit, task=task, changes={"spec": {"context": {"DB_PASSWORD": {"$secret": OTHER}}}})
        assert [sent(scene), sent(scene, OTHER)] == [SHOWN, OTHER]  # ann was not given the other
        scene.sealer.plain.discard(OTHER.encode())  # type: ignore[union-attr]

    def test_an_archived_task_is_still_known(self, scene: Scene) -> None:
        receipt = self.held(scene, lease=3.0 * DAY)
        scene.pass_time(hours=30)
        scene.submit(receipt)
        scene.pass_time(hours=1)
        mover.move_all(scene.engine, PROJECT, older=0)
        scene.pass_time(hours=22)
        sweep(scene.engine, PROJECT)
        assert sent(scene) == SHOWN

    def test_another_process_knows_it_and_a_new_data_key_changes_nothing(self, scene: Scene) -> None:
        scene.submit(self.held(scene))
        scene.do(c.RotateDataKey)
        scene.do(c.Reseal)
        engine, scene.engine = scene.engine, Engine(scene.store, scene.dice, scene.engine.context)
        assert sent(scene) == SHOWN
        scene.engine = engine
        scene.do(c.Reseal)
        assert sent(scene) == SHOWN

    @pytest.mark.parametrize(("keys", "error"), [(None, SecretsOff), ("7b" * 32, SecretUnreadable)])
    def test_a_process_that_cannot_open_them_stores_no_text_of_the_agent(
        self, scene: Scene, keys: str | None, error: type[Exception]
    ) -> None:
        scene.submit(self.held(scene))
        engine = Engine(scene.store, scene.dice, NO_KEY if keys is None else context_with(keys))
        with pytest.raises(error):
            engine.do(c.Send(project=PROJECT, sender="ann", text="a text", to="zoe"))
        work = scene.add("next")
        assert engine.do(c.ClaimTask(project=PROJECT, task=work, agent="ann", session="s-ann")).outcome == "GRANTED"
        assert engine.do(c.Send(project=PROJECT, sender="bob", text="a text", to="zoe")).outcome

    def test_what_a_lost_master_key_sealed_stands_in_nobodys_way(self, scene: Scene) -> None:
        scene.submit(self.held(scene))
        scene.engine = Engine(scene.store, scene.dice, context_with("7b" * 32))
        scene.do(c.RotateDataKey, lost=True)
        assert sent(scene, "a text") == "a text"

    def test_an_artifact_with_a_secret_is_refused_and_one_without_is_kept(self, scene: Scene) -> None:
        kept = MemoryArtifacts()
        scene.engine = Engine(scene.store, scene.dice, replace(scene.engine.context, artifacts=lambda _: kept))
        receipt = self.held(scene)

        def put(receipt: str, content: bytes) -> Any:
            with kept.begin(largest=1 << 20) as writing:
                writing.write(content)
                digest = writing.keep().digest
            fields = {"receipt": receipt, "name": "log", "digest": digest, "size": len(content), "since": scene.now}
            return scene.try_to(c.PutArtifact, by=ANN, **fields)

        def both(receipt: str) -> None:
            assert isinstance(put(receipt, b"\xff" + PLAIN.encode()), NotAllowed)
            assert put(receipt, b"a log").outcome == "OK"

        both(receipt)
        scene.submit(receipt)
        both(scene.take(scene.add("next")))

    def test_neither_a_holder_nor_one_of_yesterday_leaves_a_secret_anywhere(self, scene: Scene) -> None:
        """Sixteen channels, while the task is held and on the day after; five roles look at all that they may see."""
        scene.know("ann", "bob", "zoe")
        assert said_everywhere(scene, with_secret().spec) == 16
        scene.pass_time(hours=23)
        assert said_everywhere(scene, {}) == 16
        assert looked_at(scene, PLAIN) >= 5 * 100

    # --- stored as given, and sealed later ---

    def test_what_was_stored_without_a_master_key_is_named_and_sealed_later(self, scene: Scene) -> None:
        engine = Engine(scene.store, scene.dice, NO_KEY)
        made = {"db_password": PLAIN, "note": "n"}
        new = NewTask(title="x", metadata=made, spec={"context": {"deep": [{"apiKey": OTHER}]}})
        free, held, done, odd = (str((engine.do(c.Add(project=PROJECT, task=new)).task or {})["key"]) for _ in "1234")
        fields: dict[str, Any] = {"project": PROJECT, "template": Template(tasks=(new,))}
        engine.do(c.SetSchedule(schedule="s", cron="0 0 1 1 *", **fields))
        scene.finish(done)
        receipt = scene.take(held)
        both = {"metadata": {"a_password": PLAIN, "a": {"password": OTHER}}}
        engine.do(c.Edit(project=PROJECT, task=odd, changes=both))
        edited = engine.do(c.Edit(project=PROJECT, task=free, changes={"metadata": {**made, "db_password": OTHER}}))
        seen = plain_values.seen_in(scene.engine)
        assert {line.partition(" ")[0] for line in seen} == {free, held, done, odd, "schedule"}
        assert f"{free} metadata.db_password" in seen

        sealed = scene.do(c.Reseal, plain=True)
        assert (sealed.counts, len(sealed.warnings or ())) == ({"resealed": 6, "left": 2}, 2)
        assert {line.partition(" ")[0] for line in plain_values.seen_in(scene.engine)} == {held, odd}
        assert scene.do(c.Undo, command_id=edited.command_id).outcome == "CANNOT_UNDO"
        assert scene.claim(free).secrets == {"metadata.db_password": OTHER, "deep.0.apiKey": OTHER}
        assert scene.task(done).sealed
        made_later = scene.do(c.RunSchedule, schedule="s").tasks or ()
        assert scene.claim(made_later[0]["key"]).secrets == {"metadata.db_password": PLAIN, "deep.0.apiKey": OTHER}
        scene.submit(receipt)
        assert scene.do(c.Reseal, plain=True).counts == {"resealed": 2, "left": 1}
        scene.sealer.plain.clear()  # type: ignore[union-attr]  # the log has them as they were given


def said_everywhere(scene: Scene, spec: Any) -> int:
    """An agent says the secret in each channel, plain and in the escapes of every day; in how many it was stored."""
    text = f"{PLAIN}, {b64encode(PLAIN.encode()).decode()}, {quote(PLAIN)}, {PLAIN.replace(' ', chr(92) + ' ')}"
    html = "use " + PLAIN.replace(" ", "&#32;")
    value = {"a": [text, {PLAIN: json.dumps({"b": json.dumps(text)})}], "html": html}
    done: list[str] = []

    def say(kind: type[c.Command], **fields: Any) -> None:
        answer = scene.try_to(kind, by=replace(ANN, role="member"), **fields)
        assert isinstance(answer, Outcome), (kind, answer)
        if "receipt" in fields or kind.__name__ not in done:
            done.append(kind.__name__)

    def taken() -> str:
        return scene.take(scene.add("deploy", spec=spec, max_attempts=9))

    receipt = taken()
    task = receipt.partition("@")[0]
    say(c.Progress, receipt=receipt, step=text)
    say(c.SaveCheckpoint, receipt=receipt, data=value)
    say(c.ReportUsage, receipt=receipt, model=PLAIN, operation=PLAIN, output=5)
    say(c.Send, sender="ann", text=text, to="zoe")
    say(c.Emit, name="deployed", data=value, agent="ann")
    say(c.Heartbeat, agent="ann", step=text, metadata=value)
    say(c.Note, task=task, text=text)
    say(c.Spawn, receipt=receipt, tasks=(NewTask(title=text, name="child", description=text),))
    say(c.Register, agent="ann", capabilities=(PLAIN,))
    say(c.Add, task=NewTask(title=text, metadata=value, spec={"context": value}, description=text))
    say(c.Reserve, agent="ann", session="s-ann", patterns=(f"src/{PLAIN}.py",))
    say(c.Land, receipt=receipt, branch=PLAIN, old="0" * 40, new="1" * 40)
    say(c.Ask, receipt=receipt, question=text)
    say(c.Fail, receipt=taken(), message=text, trace=text)
    say(c.Release, receipt=taken(), reason=text)
    say(c.Submit, receipt=taken(), data=value, summary=text, request_id=PLAIN)
    return len(done)


def looked_at(scene: Scene, secret: str) -> int:
    """How many views five roles got, all of them without the secret."""
    count = 0
    for role in ("viewer", "agent", "member", "admin", "owner"):
        for query in queries_on(scene):
            try:
                view = text_of(read_query(scene.engine, query, Principal(role=role, agent="bob")))
            except TenureError as error:
                view = str(error)
            assert Hidden([secret]).text(view) == view, (role, query)
            count += 1
    return count
