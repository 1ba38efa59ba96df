"""Signed deliveries: only what the secret has signed makes anything, and each delivery once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core import signatures
from tenure.core.commands import NewTask, Template
from tenure.core.errors import InvalidInput, NotSignedIn, RequestIdReused, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.records import Brief, Request, Task, Trigger
from tenure.engine.reads.query_table import read_query
from tenure.engine.sources.deliveries import is_genuine
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene

REVIEW = Template(
    tasks=(NewTask(title="Review {body.pull_request.title}", metadata={"number": "{body.pull_request.number}"}),)
)
OPENED = {"action": "opened", "pull_request": {"title": "Mend the parser", "number": 7}}


def webhook(scene: Scene, name: str = "pulls", **fields: Any) -> str:
    """The secret of a new webhook."""
    outcome = scene.do(c.SetTrigger, **{"trigger": name, "on": "webhook", "template": REVIEW, **fields})
    assert outcome.secret is not None
    return outcome.secret


def sent(
    scene: Scene,
    secret: str,
    body: Any = OPENED,
    *,
    id: str = "msg_1",
    name: str = "pulls",
    form: str = "standard",
    **headers: str,
) -> Outcome:
    """A delivery as a sender with that secret makes it, with other headers where they are given."""
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    signed = signatures.signed_headers(form, signatures.key_of(form, secret), id, raw, scene.now)
    signed |= {header.replace("_", "-"): value for header, value in headers.items()}
    return scene.do(c.Deliver, by=AGENT, trigger=name, headers=signed, body=raw)


def made(scene: Scene) -> list[str]:
    return [scene.row(Brief, task.id).title for task in scene.rows(Task, order="created_at")]


class Deliveries(Stage):
    @pytest.mark.parametrize("form", signatures.FORMS)
    def test_a_signed_delivery_makes_its_task_once(self, scene: Scene, form: str) -> None:
        secret = webhook(scene, signature=form)
        assert sent(scene, secret, form=form).outcome == "CREATED"
        again = sent(scene, secret, form=form)
        assert (again.outcome, again.again) == ("EXISTS", True)
        assert sent(scene, secret, form=form, id="msg_2").outcome == "CREATED"
        assert made(scene) == ["Review «Mend the parser»"] * 2
        task = scene.rows(Task)[0]
        assert (task.created_by, task.idempotency_key) == ("webhook:pulls", "webhook:pulls:msg_1")
        brief = scene.row(Brief, task.id)
        assert brief.metadata == {"number": "7", "trigger": {"name": "pulls", "delivery": "msg_1", "depth": 1}}

    def test_the_samples_of_the_two_standards_are_understood(self, scene: Scene) -> None:
        """By the specifications' own examples, and not by our own signing."""
        key = signatures.key_of("standard", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
        headers = {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        }  # fmt: skip
        found = signatures.verified("standard", (key,), headers, b'{"test": 2432232314}', 1614265330_000_000)
        assert found is not None
        assert found.id == "msg_p5jXN8AQM9LWM0D4loKWxJek"
        key = signatures.key_of("github", "It's a Secret to Everybody")
        digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        headers = {"x-hub-signature-256": f"sha256={digest}", "x-github-delivery": "d", "x-github-event": "push"}
        assert signatures.verified("github", (key,), headers, b"Hello, World!", 0) == ("d", "push")

    @pytest.mark.parametrize(
        "headers",
        [
            {"webhook_signature": "v1,AAAA"},
            {"webhook_signature": ""},
            {"webhook_signature": "v2,"},
            {"webhook_id": "other"},
            {"webhook_id": "a b"},
            {"webhook_id": ""},
            {"webhook_timestamp": "1"},
            {"webhook_timestamp": "soon"},
            {"webhook_timestamp": "９９"},
        ],
    )
    def test_what_the_secret_has_not_signed_is_refused_and_leaves_nothing(
        self, scene: Scene, headers: dict[str, str]
    ) -> None:
        secret = webhook(scene)
        before = scene.tables()
        with pytest.raises(NotSignedIn) as wrong:
            sent(scene, secret, **headers)
        with pytest.raises(NotSignedIn) as unknown:
            sent(scene, secret, name="nobody")
        assert (wrong.value.message, wrong.value.hint) == (unknown.value.message, unknown.value.hint)
        assert scene.tables() == before
        assert not is_genuine(scene.engine, PROJECT, "pulls", {}, b"{}")

    def test_one_form_does_not_pass_for_the_other(self, scene: Scene) -> None:
        github, standard = webhook(scene, "g", signature="github"), webhook(scene, "s")
        with pytest.raises(NotSignedIn):
            sent(scene, github, name="s", form="github")
        with pytest.raises(NotSignedIn):
            sent(scene, standard, name="g")

    def test_a_trigger_on_events_takes_no_delivery(self, scene: Scene) -> None:
        scene.do(c.SetTrigger, trigger="pulls", on="task.failed", template=Template(tasks=(NewTask(title="x"),)))
        with pytest.raises(NotSignedIn):
            sent(scene, signatures.spelled("standard", bytes(24)))

    @pytest.mark.parametrize("shift", [-301, 301])
    def test_what_is_older_or_newer_than_five_minutes_is_refused(self, scene: Scene, shift: int) -> None:
        secret = webhook(scene)
        raw = msgspec.json.encode(OPENED)
        key = signatures.key_of("standard", secret)
        headers = signatures.signed_headers("standard", key, "m", raw, scene.now + shift * 1_000_000)
        with pytest.raises(NotSignedIn):
            scene.do(c.Deliver, trigger="pulls", headers=headers, body=raw)
        headers = signatures.signed_headers("standard", key, "m", raw, scene.now + shift // 301 * 299_000_000)
        assert scene.do(c.Deliver, trigger="pulls", headers=headers, body=raw).outcome == "CREATED"

    def test_a_rotated_secret_is_good_for_its_grace_and_no_longer(self, scene: Scene) -> None:
        old = webhook(scene)
        new = scene.do(c.RotateSecret, trigger="pulls", grace=60).secret
        assert new is not None
        assert sent(scene, old, id="a").outcome == sent(scene, new, id="b").outcome == "CREATED"
        scene.pass_time(seconds=60)
        assert sent(scene, new, id="c").outcome == "CREATED"
        with pytest.raises(NotSignedIn):
            sent(scene, old, id="d")
        last = scene.do(c.RotateSecret, trigger="pulls", grace=0).secret
        assert last is not None
        with pytest.raises(NotSignedIn):
            sent(scene, new, id="e")
        assert sent(scene, last, id="f").outcome == "CREATED"

    def test_a_senders_own_secret_is_taken(self, scene: Scene) -> None:
        given = "a secret of the sender's own"
        assert webhook(scene, signature="github", secret=given) == given
        assert sent(scene, given, form="github").outcome == "CREATED"
        for form, secret in (("github", "short"), ("standard", "whsec_x"), ("standard", "whsec_AAAA")):
            with pytest.raises(InvalidInput, match="secret"):
                webhook(scene, "t", signature=form, secret=secret)

    def test_the_secret_is_shown_once_and_again_to_the_same_request_only(self, scene: Scene) -> None:
        fields: dict[str, Any] = {"trigger": "pulls", "on": "webhook", "template": REVIEW}
        first = scene.do(c.SetTrigger, request_id="r1", **fields)
        assert scene.do(c.SetTrigger, request_id="r1", **fields).secret == first.secret
        assert scene.do(c.SetTrigger, **fields).secret is None
        with pytest.raises(RequestIdReused):
            scene.do(c.SetTrigger, request_id="r1", **fields, most=5)
        rotated = scene.do(c.RotateSecret, trigger="pulls", request_id="r2")
        again = scene.do(c.RotateSecret, trigger="pulls", request_id="r2")
        assert (again.secret, again.again) == (rotated.secret, True)
        assert sent(scene, first.secret or "", id="old").outcome == "CREATED"  # a repeat did not void it
        assert scene.rows(Request) == []
        shown = [
            read_query(scene.engine, q.Triggers(project=PROJECT)),
            read_query(scene.engine, q.ShowTrigger(project=PROJECT, trigger="pulls")),
            [msgspec.to_builtins(event) for event in scene.events()],
        ]
        secrets = {o.secret.removeprefix("whsec_") for o in (first, rotated) if o.secret}
        assert not any(secret in repr(shown) for secret in secrets)

    def test_a_changed_trigger_keeps_its_secret(self, scene: Scene) -> None:
        secret = webhook(scene)
        other = Template(tasks=(NewTask(title="other"),))
        outcome = scene.do(c.SetTrigger, trigger="pulls", on="webhook", template=other)
        assert (outcome.outcome, outcome.secret) == ("UPDATED", None)
        assert sent(scene, secret).outcome == "CREATED"
        assert made(scene) == ["other"]

    def test_a_filter_decides_what_is_taken(self, scene: Scene) -> None:
        where = {"body.action": "opened", "delivery.event": {"in": ["pull_request", None]}}
        secret = webhook(scene, signature="github", where=where)
        assert sent(scene, secret, form="github", x_github_event="pull_request").outcome == "CREATED"
        other = sent(scene, secret, {"action": "closed"}, id="m2", form="github")
        assert (other.outcome, len(made(scene))) == ("OK", 1)
        assert sent(scene, secret, id="m3", form="github", x_github_event="push").outcome == "OK"

    def test_paused_it_takes_nothing(self, scene: Scene) -> None:
        secret = webhook(scene)
        scene.do(c.PauseTrigger, trigger="pulls")
        assert sent(scene, secret).outcome == "DENIED_PAUSED"
        scene.do(c.ResumeTrigger, trigger="pulls")
        assert sent(scene, secret).outcome == "CREATED"

    def test_more_than_it_takes_in_an_hour_comes_again_later(self, scene: Scene) -> None:
        secret = webhook(scene, most=1)
        assert sent(scene, secret, id="a").outcome == "CREATED"
        refused = sent(scene, secret, id="b")
        assert (refused.outcome, refused.retry_in) == ("DENIED_LIMIT", 3600.0)
        assert sent(scene, secret, id="a").outcome == "EXISTS"
        scene.pass_time(hours=1)
        assert sent(scene, secret, id="b").outcome == "CREATED"

    def test_a_template_that_cannot_be_made_is_told_here_and_not_there(self, scene: Scene) -> None:
        secret = webhook(scene, template=Template(tasks=(NewTask(title="{body.title}"),)))
        outcome = sent(scene, secret, {"other": "secret words"})
        assert outcome.outcome == "TEMPLATE_FAILED"
        (event,) = scene.events(kind="trigger.failed")
        assert "title" in event.message
        assert "title" not in outcome.message
        row = scene.row(Trigger, "pulls")
        assert (row.failed, row.fired) == (1, 0)
        assert sent(scene, secret, {"title": "now"}, id="m2").outcome == "CREATED"

    @pytest.mark.parametrize("body", [b"", b"{", b"payload=%7B%7D", b"\xff", b"[" * 5000])
    def test_a_signed_body_that_is_no_json_is_an_error(self, scene: Scene, body: bytes) -> None:
        secret = webhook(scene)
        with pytest.raises(InvalidInput, match="JSON"):
            sent(scene, secret, body)

    def test_a_body_is_bounded(self, scene: Scene) -> None:
        secret = webhook(scene)
        with pytest.raises(TooLarge):
            sent(scene, secret, b'"' + b"x" * signatures.LARGEST_BODY + b'"')
        assert sent(scene, secret, {"pull_request": {"title": "x" * 500_000}}).outcome == "CREATED"
        assert len(made(scene)[0]) < 255
