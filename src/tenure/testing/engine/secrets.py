"""Secrets of tasks: sealed before a handler sees them, opened for the holder alone, hidden in what the holder writes.

Every value that a test seals is searched for at its end, wherever it could stand: `testing/secret_watch.py`.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Principal, Template
from tenure.core.errors import InvalidInput, RequestIdReused, SecretsOff, SecretUnreadable
from tenure.core.records import Brief, Checkpoint, DataKey, Message, Project, Result, Task, Trigger, Webhook, replace
from tenure.core.sealed import SEALED
from tenure.core.task_secrets import SHOWN
from tenure.engine import Context, Engine
from tenure.engine.reads.query_table import read_query
from tenure.engine.secrets import trigger_secrets
from tenure.sealing.cipher import Cipher
from tenure.sealing.master_key import KeySource
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import MEMBER, PROJECT, Scene, code_of

PLAIN = "correct horse battery"
OTHER = "staple-of-2026/x"
KEYS = "5a" * 32


def context_with(keys: str) -> Context:
    """Of a process that has this master key."""
    return Context(sealer=Cipher(KeySource({"TENURE_MASTER_KEY": keys})))


NO_KEY = Context(sealer=Cipher(KeySource({})))


def with_secret(value: str = PLAIN, **fields: Any) -> NewTask:
    return NewTask(title="deploy", spec={"context": {"DB_PASSWORD": {"$secret": value}, "host": "db"}}, **fields)


def sealed_of(scene: Scene, task: str) -> dict[str, Any]:
    brief = scene.stored(Brief, scene.task(task).id)
    found: dict[str, Any] = brief.spec["context"]["DB_PASSWORD"]
    return found


class Secrets(Stage):
    # --- marked, named, refused ---

    def test_a_secret_is_sealed_and_only_a_claim_opens_it(self, scene: Scene) -> None:
        answer = scene.do(c.Add, task=with_secret(metadata={"stripe": {"apiKey": OTHER}, "note": "plain"}))
        assert answer.task is not None
        assert answer.task["spec"] == {"context": {"DB_PASSWORD": SHOWN, "host": "db"}}
        assert answer.task["metadata"] == {"stripe": {"apiKey": SHOWN}, "note": "plain"}
        assert SEALED in sealed_of(scene, answer.task["key"])
        granted = scene.claim(answer.task["key"])
        assert granted.secrets == {"DB_PASSWORD": PLAIN, "metadata.stripe.apiKey": OTHER}
        assert granted.task is not None
        assert granted.task["spec"]["context"]["DB_PASSWORD"] == SHOWN

    def test_claim_next_opens_the_secrets_of_each(self, scene: Scene) -> None:
        scene.do(c.AddMany, tasks=(with_secret(), with_secret(OTHER), NewTask(title="plain")))
        claims = scene.next(n=3).claims or ()
        assert [one.secrets for one in claims] == [{"DB_PASSWORD": PLAIN}, {"DB_PASSWORD": OTHER}, None]

    @pytest.mark.parametrize(
        ("fields", "says"),
        [
            ({"spec": {"context": {"a": {"$secret": 5}}}}, "a secret is a text"),
            ({"spec": {"context": {"a": {"$secret": ""}}}}, "a secret is a text"),
            ({"metadata": {"a": {"$secret": "x", "more": 1}}}, "a secret is a text"),
            ({"spec": {"inputs": {"a": {"$secret": PLAIN}}}}, "spec.inputs.a has '$secret'"),
            ({"metadata": {"a": [{"$sealed": {"key": "k"}}]}}, "'$sealed', which no input may have"),
            ({"metadata": {"a": {"b": "c", "d-b": {"$secret": PLAIN}, "d_b": {"$secret": OTHER}}}}, "would both be"),
            ({"metadata": {"token": SHOWN}}, "only stands for a secret that is there already"),
        ],
    )
    def test_input_that_is_no_secret_is_refused(self, scene: Scene, fields: dict[str, Any], says: str) -> None:
        with pytest.raises(InvalidInput) as error:
            scene.add(**fields)
        assert says in error.value.message
        assert PLAIN not in str(error.value)

    def test_a_mask_without_its_secret_is_refused_in_the_template_of_a_plan(self, scene: Scene) -> None:
        ends = {"failed": Template(tasks=(NewTask(title="look", metadata={"token": SHOWN}),))}
        with pytest.raises(InvalidInput, match="only stands for a secret that is there already"):
            scene.plan(NewTask(title="only"), on_end=ends)

    def test_without_a_master_key_a_marked_secret_is_refused_and_a_name_only_warns(self, scene: Scene) -> None:
        engine = Engine(scene.store, scene.dice, NO_KEY)
        with pytest.raises(SecretsOff):
            engine.do(c.Add(project=PROJECT, task=with_secret()))
        new = NewTask(title="x", metadata={"db_password": "kept as it is", "password_hint": "none"})
        answer = engine.do(c.Add(project=PROJECT, task=new))
        assert answer.warnings is not None
        assert "metadata.db_password: stored as given" in answer.warnings[0]
        (brief,) = scene.rows(Brief)
        assert brief.metadata == new.metadata
        assert scene.stored_rows(DataKey) == []

    # --- repeats, edits, plans ---

    def test_a_repeat_is_recognised_by_the_digest_of_its_secret(self, scene: Scene) -> None:
        first = scene.do(c.Add, task=with_secret(), request_id="r1")
        again = scene.do(c.Add, task=with_secret(), request_id="r1")
        assert (first.again, again.again) == (False, True)
        assert len(scene.rows(Task)) == 1
        with pytest.raises(RequestIdReused):
            scene.do(c.Add, task=with_secret(OTHER), request_id="r1")

    def test_an_edit_keeps_a_secret_that_is_the_same_or_given_as_shown(self, scene: Scene) -> None:
        key = scene.add("x", spec=with_secret().spec)
        before = sealed_of(scene, key)
        for value in ({"$secret": PLAIN}, SHOWN):
            scene.do(c.Edit, task=key, changes={"spec": {"context": {"DB_PASSWORD": value, "host": "other"}}})
            assert sealed_of(scene, key) == before
        edited = scene.do(c.Edit, task=key, changes={"spec": {"context": {"DB_PASSWORD": {"$secret": OTHER}}}})
        assert sealed_of(scene, key) != before
        granted = scene.claim(key)
        assert granted.secrets == {"DB_PASSWORD": OTHER}
        scene.do(c.Release, receipt=granted.receipt)
        scene.try_to(c.Undo, command_id=edited.command_id)  # whatever it says, it shows no secret

    def test_an_undone_edit_gives_the_former_secret_back(self, scene: Scene) -> None:
        key = scene.add("x", spec=with_secret().spec)
        edited = scene.do(c.Edit, task=key, changes={"spec": {"context": {"DB_PASSWORD": {"$secret": OTHER}}}})
        assert scene.do(c.Undo, command_id=edited.command_id).outcome == "UPDATED"
        assert scene.claim(key).secrets == {"DB_PASSWORD": PLAIN}

    def test_an_edit_may_take_the_secret_away(self, scene: Scene) -> None:
        key = scene.add("x", spec=with_secret().spec)
        scene.do(c.Edit, task=key, changes={"spec": {"context": {"host": "db"}}})
        assert not scene.task(key).sealed
        assert scene.claim(key).secrets is None

    def test_a_plan_that_is_applied_again_compares_digests(self, scene: Scene) -> None:
        def applied(value: Any) -> str:
            new = NewTask(title="x", name="x", spec={"context": {"DB_PASSWORD": value}})
            return scene.do(c.Plan, name="p", tasks=(new,)).outcome

        outcomes = [applied({"$secret": v}) for v in (PLAIN, PLAIN, OTHER, OTHER)] + [applied(SHOWN)]
        assert outcomes == ["CREATED", "UNCHANGED", "UPDATED", "UNCHANGED", "UNCHANGED"]

    def test_a_dry_run_and_a_spawn_seal_too(self, scene: Scene) -> None:
        scene.do(c.Plan, tasks=(with_secret(),), dry_run=True)
        receipt = scene.take(scene.add("parent"))
        made = scene.do(c.Spawn, receipt=receipt, tasks=(with_secret(name="child"),)).tasks or ()
        assert scene.claim(made[0]["key"], "bob").secrets == {"DB_PASSWORD": PLAIN}

    # --- templates ---

    def test_what_a_schedule_makes_is_sealed_for_each_task(self, scene: Scene) -> None:
        template = Template(tasks=(with_secret(), with_secret(OTHER)))
        set_it: dict[str, Any] = {"schedule": "s", "cron": "* * * * *", "template": template}
        assert [scene.do(c.SetSchedule, **set_it).outcome for _ in range(2)] == ["CREATED", "UNCHANGED"]
        for _ in range(2):
            for made, plain in zip(scene.do(c.RunSchedule, schedule="s").tasks or (), (PLAIN, OTHER), strict=True):
                assert scene.claim(made["key"]).secrets == {"DB_PASSWORD": plain}
        assert len({sealed_of(scene, task.key)[SEALED]["text"] for task in scene.rows(Task)}) == 4

    def test_a_trigger_and_the_end_of_a_dag_seal_for_their_tasks(self, scene: Scene) -> None:
        from tenure.engine.sources import trigger_duty

        scene.do(c.SetTrigger, trigger="t", on="task.noted", template=Template(tasks=(with_secret(),)))
        ends = {"completed": Template(tasks=(with_secret(OTHER),))}
        (key,) = scene.plan(NewTask(title="only"), on_end=ends)
        scene.do(c.Note, task=key, text="x")
        scene.finish(key)
        trigger_duty.hear(scene.engine, PROJECT)
        made = [task for task in scene.rows(Task) if task.created_by.startswith("trigger:")]
        opened = sorted((scene.claim(task.key).secrets or {})["DB_PASSWORD"] for task in made)
        assert opened == sorted((PLAIN, OTHER))

    # --- who may see it ---

    def test_only_the_live_claim_opens_it(self, scene: Scene) -> None:
        key = scene.add("x", spec=with_secret().spec)
        granted = scene.claim(key, lease=60.0, request_id="c1")
        assert scene.do(c.OpenSecrets, receipt=granted.receipt).secrets == {"DB_PASSWORD": PLAIN}
        assert scene.claim(key, lease=60.0, request_id="c1").secrets == {"DB_PASSWORD": PLAIN}
        scene.pass_time(seconds=61)
        assert scene.do(c.OpenSecrets, receipt=granted.receipt).outcome == "ALREADY_EXPIRED"
        assert scene.claim(key, lease=60.0, request_id="c1").secrets is None
        later = scene.claim(key, "bob")
        assert later.secrets == {"DB_PASSWORD": PLAIN}
        assert scene.do(c.OpenSecrets, receipt=granted.receipt).outcome == "STALE_GENERATION"

    def test_a_receipt_alone_opens_nothing_for_another_key(self, scene: Scene) -> None:
        fleet = Principal(role="agent", agent="ann", user="fleet", key="k-1", address="10.0.0.1")
        key = scene.add("x", spec=with_secret().spec)
        receipt = scene.claim(key, by=fleet).receipt
        proven = replace(fleet, key="k-3", is_proven=True)
        for same in (fleet, replace(fleet, agent="restarted", session="later"), proven, MEMBER):
            assert scene.do(c.OpenSecrets, receipt=receipt, by=same).secrets == {"DB_PASSWORD": PLAIN}
        member = replace(MEMBER, key="k-mia", address="10.0.0.2")
        for other in (replace(fleet, key="k-2"), member, replace(member, role="owner"), replace(proven, agent="bo")):
            assert code_of(scene.try_to(c.OpenSecrets, receipt=receipt, by=other)) == "NOT_ALLOWED"
        assert code_of(scene.try_to(c.Renew, receipt=receipt, by=replace(fleet, key="k-2"))) == "RENEWED"

    def test_neither_a_remembered_request_nor_a_preview_has_it(self, scene: Scene) -> None:
        key = scene.add("x", spec=with_secret().spec)
        wanted = c.ClaimNext(project=PROJECT, agent="ann", session="s", n=2)
        (seen,) = scene.engine.preview((wanted,))
        assert seen.claims is not None  # type: ignore[union-attr]
        assert seen.claims[0].secrets is None  # type: ignore[union-attr]
        receipt = scene.take(key)
        for _ in range(2):  # the second is not answered from a row
            assert scene.do(c.OpenSecrets, receipt=receipt, request_id="r").secrets == {"DB_PASSWORD": PLAIN}

    def test_the_secrets_of_metadata_stay_while_the_task_is_held(self, scene: Scene) -> None:
        key = scene.add("x", metadata={"token": {"$secret": PLAIN}, "note": "a"})
        scene.take(key)
        same = {"token": SHOWN, "note": "b"}
        assert scene.do(c.Edit, task=key, changes={"metadata": same}).outcome == "UPDATED"
        for other in ({"token": {"$secret": OTHER}}, {"note": "c"}, {**same, "pin": {"$secret": OTHER}}):
            assert scene.do(c.Edit, task=key, changes={"metadata": other}).outcome == "DENIED_STATE"
        assert scene.do(c.Edit, task=key, changes={"metadata": {}}, supersede=True).outcome == "UPDATED"

    def test_a_task_with_secrets_is_never_plain(self, scene: Scene) -> None:
        sealed, plain = scene.add("a", spec=with_secret().spec), scene.add("b", spec={"context": {"host": "db"}})
        assert [scene.task(key).plain for key in (sealed, plain)] == [False, True]
        scene.take(sealed)
        assert not scene.task(sealed).plain

    # --- what a holder writes ---

    def test_an_agent_that_prints_its_secret_everywhere_stores_it_nowhere(self, scene: Scene) -> None:
        everywhere(scene)

    def test_another_claim_of_the_holder_is_searched_too(self, scene: Scene) -> None:
        sealed, plain = scene.add("a", spec=with_secret().spec), scene.add("b")
        scene.take(sealed)
        receipt = scene.take(plain)
        scene.submit(receipt, {"log": f"used {PLAIN}"})
        assert [row.data for row in scene.rows(Result)] == [{"log": f"used {SHOWN}"}]

    def test_a_late_result_is_searched(self, scene: Scene) -> None:
        receipt = scene.take(scene.add("a", spec=with_secret().spec), lease=60.0)
        scene.pass_time(seconds=61)
        assert scene.submit(receipt, PLAIN).outcome == "ACCEPTED"
        assert [row.data for row in scene.rows(Result)] == [SHOWN]

    def test_the_same_result_sent_again_is_the_same(self, scene: Scene) -> None:
        receipt = scene.take(scene.add("a", spec=with_secret().spec))
        answers = [scene.submit(receipt, PLAIN, request_id="r") for _ in range(2)]
        assert [(answer.outcome, answer.again) for answer in answers] == [("ACCEPTED", False), ("ACCEPTED", True)]

    # --- keys ---

    def test_a_new_data_key_seals_and_everything_stays_readable(self, scene: Scene) -> None:
        old = scene.add("a", spec=with_secret().spec)
        scene.do(c.RotateDataKey)
        new = scene.add("b", spec=with_secret().spec)
        keys = [sealed_of(scene, key)[SEALED]["key"] for key in (old, new)]
        assert len(set(keys)) == 2
        assert [scene.claim(key).secrets for key in (old, new)] == [{"DB_PASSWORD": PLAIN}] * 2

    def test_everything_can_be_sealed_again(self, scene: Scene) -> None:
        key = scene.add("a", spec=with_secret().spec)
        scene.do(c.SetSchedule, schedule="s", cron="* * * * *", template=Template(tasks=(with_secret(),)))
        ends = {"completed": Template(tasks=(with_secret(OTHER),))}
        scene.plan(NewTask(title="only"), on_end=ends)
        secret = scene.do(
            c.SetTrigger, trigger="w", on="webhook", template=Template(tasks=(with_secret(),)), signature="github"
        ).secret
        scene.do(c.SetWebhook, webhook="ci", url="https://ci.example.com/")
        scene.do(c.RotateDataKey)
        assert scene.do(c.Reseal).outcome == "UPDATED"
        assert scene.do(c.Reseal).outcome == "UNCHANGED"
        (current,) = (row.id for row in scene.stored_rows(DataKey) if row.id != "digest" and row.retired_at is None)
        for retired in [row for row in scene.stored_rows(DataKey) if row.retired_at is not None]:
            scene.put(retired, None)  # nothing needs it any more
        assert sealed_of(scene, key)[SEALED]["key"] == current
        assert scene.claim(key).secrets == {"DB_PASSWORD": PLAIN}
        made = scene.do(c.RunSchedule, schedule="s").tasks or ()
        assert scene.claim(made[0]["key"]).secrets == {"DB_PASSWORD": PLAIN}
        again = scene.do(c.RotateSecret, trigger="w", secret=secret)
        assert again.outcome == "UPDATED"

    def test_data_keys_move_to_a_new_master_key(self, scene: Scene) -> None:
        key = scene.add("a", spec=with_secret().spec)
        both = Engine(scene.store, scene.dice, context_with(f"{'a5' * 32} {KEYS}"))
        assert (
            both.do(c.RotateDataKey(project=PROJECT, master=True)).message
            == "p: data keys wrapped by the current master key: 2"
        )
        new = Engine(scene.store, scene.dice, context_with("a5" * 32))
        claim = c.ClaimTask(project=PROJECT, task=key, agent="ann", session="s")
        assert new.do(claim).secrets == {"DB_PASSWORD": PLAIN}

    def test_what_a_lost_master_key_sealed_is_given_up_and_set_again(self, scene: Scene) -> None:
        keys = [scene.add(name, spec=with_secret().spec) for name in ("held", "edited", "cancelled")]
        receipt = scene.take(keys[0])
        scene.do(c.SetWebhook, webhook="ci", url="https://ci.example.com/")
        template = Template(tasks=(NewTask(title="x"),))
        scene.do(c.SetTrigger, trigger="w", on="webhook", template=template, signature="github")
        scene.do(c.SetSchedule, schedule="s", cron="* * * * *", template=Template(tasks=(with_secret(),)))
        assert scene.do(c.RotateDataKey, lost=True).outcome == "UNCHANGED"  # nothing is lost
        other = Engine(scene.store, scene.dice, context_with("a5" * 32))

        def do(kind: type[c.Command], **fields: Any) -> Any:
            return other.do(kind(project=PROJECT, **fields))

        before = scene.tables()
        with pytest.raises(SecretUnreadable):  # a process with the wrong key must not make it everybody's
            do(c.RotateDataKey)
        with pytest.raises(SecretUnreadable):
            do(c.Add, task=with_secret())
        with pytest.raises(InvalidInput):
            do(c.RotateDataKey, lost=True, master=True)
        assert scene.tables() == before
        assert do(c.RotateDataKey, lost=True).outcome == "UPDATED"
        assert do(c.RotateDataKey, lost=True).outcome == "UNCHANGED"
        (hook,), (trigger,) = scene.rows(Webhook), scene.rows(Trigger)
        assert (hook.enabled, hook.secret, trigger.enabled, trigger.secret) == (False, b"", False, b"")
        with pytest.raises(SecretUnreadable, match="which this store does not have"):
            do(c.ClaimTask, task=keys[1], agent="bob", session="s")
        assert do(c.Submit, receipt=receipt, data="done").outcome == "ACCEPTED"
        assert do(c.Cancel, task=keys[2]).ok
        assert do(c.Edit, task=keys[1], changes={"spec": with_secret(OTHER).spec}).outcome == "UPDATED"
        assert do(c.ClaimTask, task=keys[1], agent="bob", session="s").secrets == {"DB_PASSWORD": OTHER}
        do(c.RotateDataKey)
        assert do(c.Reseal).counts == {"resealed": 1}
        assert do(c.RotateWebhook, webhook="ci").secret
        assert do(c.ResumeWebhook, webhook="ci").outcome == "UPDATED"
        assert do(c.RotateSecret, trigger="w").secret

    def test_with_another_master_key_a_claim_is_refused_and_the_task_stays(self, scene: Scene) -> None:
        key, plain = scene.add("a", spec=with_secret().spec), scene.add("b")
        before = scene.tables()
        for context, error in ((context_with("a5" * 32), SecretUnreadable), (NO_KEY, SecretsOff)):
            engine = Engine(scene.store, scene.dice, context)
            with pytest.raises(error):
                engine.do(c.ClaimTask(project=PROJECT, task=key, agent="ann", session="s"))
        assert scene.tables() == before
        wanted = c.ClaimNext(project=PROJECT, agent="ann", session="s")
        engine = Engine(scene.store, scene.dice, NO_KEY)
        first, second = engine.do(wanted), engine.do(wanted)
        assert (first.task or {})["key"] == plain
        assert (second.outcome, (second.counts or {})["unreadable"]) == ("NO_TASK", 1)
        assert key in second.message
        (ann,) = read_query(engine, q.Why(project=PROJECT, task=key))["agents"]
        assert "no master key" in ann["why_not"][0]
        assert scene.claim(key, "bob").secrets == {"DB_PASSWORD": PLAIN}

    def test_what_cannot_be_searched_is_not_stored(self, scene: Scene) -> None:
        receipt = scene.take(scene.add("a", spec=with_secret().spec))
        engine = Engine(scene.store, scene.dice, NO_KEY)
        with pytest.raises(SecretsOff):
            engine.do(c.Submit(project=PROJECT, receipt=receipt, data=PLAIN))
        assert scene.submit(receipt, "done").outcome == "ACCEPTED"

    @pytest.mark.parametrize("part", ["text", "nonce", "digest", "key"])
    def test_a_changed_value_is_found(self, scene: Scene, part: str) -> None:
        key = scene.add("a", spec=with_secret().spec)
        brief = scene.stored(Brief, scene.task(key).id)
        sealed = sealed_of(scene, key)[SEALED]
        changed = {**sealed, part: sealed[part][:-5] + ("AAAA=" if part != "key" else "fffff")}
        scene.put(brief, replace(brief, spec={"context": {"DB_PASSWORD": {SEALED: changed}}}))
        scene.broken = True
        assert code_of(scene.try_to(c.ClaimTask, task=key, agent="ann", session="s")) == "SECRET_UNREADABLE"
        assert scene.task(key).state == "ready"

    def test_a_value_opens_in_no_other_task(self, scene: Scene) -> None:
        one, other = scene.add("a", spec=with_secret().spec), scene.add("b", spec=with_secret(OTHER).spec)
        brief = scene.stored(Brief, scene.task(other).id)
        moved = {"context": {"DB_PASSWORD": sealed_of(scene, one)}}
        scene.put(brief, replace(brief, spec=moved))
        scene.broken = True
        assert code_of(scene.try_to(c.ClaimTask, task=other, agent="ann", session="s")) == "SECRET_UNREADABLE"

    # --- triggers of before ---

    def test_a_trigger_from_before_works_and_is_sealed_by_the_leader(self, scene: Scene) -> None:
        from tenure.core import signatures

        plain = Template(tasks=(NewTask(title="x"),))
        secret = scene.do(c.SetTrigger, trigger="w", on="webhook", template=plain, signature="github").secret or ""
        row = scene.stored(Trigger, "w")
        scene.put(row, replace(row, secret=secret.encode()))
        for number in range(2):
            headers = signatures.signed_headers("github", secret.encode(), f"m{number}", b"{}", scene.now)
            assert scene.do(c.Deliver, trigger="w", headers=headers, body=b"{}").outcome == "CREATED"
            for project in trigger_secrets.projects_with_plain(scene.engine, scene.now):
                trigger_secrets.seal_plain(scene.engine, project)
        assert trigger_secrets.projects_with_plain(scene.engine, scene.now) == []
        scene.sealer.plain.discard(secret.encode())  # type: ignore[union-attr]  # it stood in the row before


def everywhere(scene: Scene) -> None:
    """An agent that holds a task with secrets writes them wherever a command takes a text, in each spelling."""
    spelled = [PLAIN, b64encode(PLAIN.encode()).decode(), b64encode(f"user:{PLAIN}".encode()).decode(), quote(PLAIN)]
    text = " and ".join(spelled)
    value = {"a": [text, {PLAIN: text}], "b": spelled}
    ann = Principal(role="agent", agent="ann", session="s-ann")

    def taken() -> Any:
        return scene.take(scene.add("deploy", spec=with_secret().spec, max_attempts=9))

    scene.know("ann", "bob")
    receipt = taken()
    name = scene.task(receipt.partition("@")[0]).key
    scene.do(c.Progress, by=ann, receipt=receipt, step=text, checkpoint=value)
    scene.do(c.SaveCheckpoint, by=ann, receipt=receipt, data=value)
    scene.do(c.ReportUsage, by=ann, receipt=receipt, model=PLAIN, operation=PLAIN, output=5)
    scene.try_to(c.Land, by=ann, receipt=receipt, branch=PLAIN, old="0" * 40, new="1" * 40)
    scene.do(c.Send, by=ann, sender="ann", text=text, to="bob")
    scene.do(c.Emit, by=ann, name="deployed", data=value, agent="ann")
    scene.do(c.Heartbeat, by=ann, agent="ann", step=text, metadata=value)
    scene.do(c.Note, by=MEMBER, task=name, text=text)
    scene.do(c.Spawn, by=ann, receipt=receipt, tasks=(NewTask(title=text, name="child", description=text),))
    scene.try_to(c.Register, by=ann, agent="ann", capabilities=(PLAIN,))
    scene.try_to(c.Add, by=ann, task=NewTask(title=text, metadata=value))
    scene.do(c.Ask, by=ann, receipt=receipt, question=text)
    scene.do(c.Fail, receipt=taken(), message=text, trace=text)
    scene.do(c.Release, receipt=taken(), reason=text)
    scene.do(c.Submit, receipt=taken(), data=value, summary=text, request_id=PLAIN)
    (result,) = scene.rows(Result)
    (message,) = scene.rows(Message)
    (checkpoint,) = scene.rows(Checkpoint)
    assert SHOWN in result.summary
    assert SHOWN in message.text
    assert SHOWN in msgspec.json.encode(checkpoint.data).decode()
    assert scene.stored(Project, PROJECT).sealed
