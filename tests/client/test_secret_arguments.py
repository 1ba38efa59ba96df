"""Arguments that are secret: sealed in the task, opened for the worker that claims it, and shown nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenure import Context, Secret, Worker
from tenure.client.worker.functions import _secret_parameters
from tenure.core.errors import InvalidInput
from tenure.core.records import RetryPolicy
from tenure.core.task_secrets import SHOWN
from tests.client.conftest import Place

PLAIN, NAMED, INNER = "correct-horse-battery", "hunter2secret", "sk-of-the-inside"


def test_an_argument_is_sealed_by_its_mark_or_its_name_and_opened_for_the_function(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    worker, got = Worker(place.url, "shop"), list[Any]()

    @worker.task("login")
    def login(
        ctx: Context, user: str, token: Secret[str], password: str, more: dict[str, str], pin: Secret[str] | None = None
    ) -> str:
        got.append((user, token, password, more, pin))
        ctx.progress(1, f"{user} signs in with {token}")
        if ctx.attempt == 1:
            raise ValueError(f"{password} is wrong, and so is {token}")
        return f"in with {token}"

    patient = login.configure(retry=RetryPolicy(strategy="immediate"))
    key = patient.enqueue("ann", PLAIN, password=NAMED, more={"api_key": INNER, "host": "db"}).key
    with place.client() as mia:
        added = mia.show(key)
        more = {"api_key": SHOWN, "host": "db"}
        assert added["spec"]["arguments"] == {"user": "ann", "token": SHOWN, "password": SHOWN, "more": more}
        assert added["title"] == "login"
        worker.run(until_empty=True)
        worker.close()
        assert got == [("ann", PLAIN, NAMED, {"api_key": INNER, "host": "db"}, None)] * 2
        seen = json.dumps(
            [mia.show(key), mia.history(key), mia.task_log(key), mia.log(limit=1000)], default=str, ensure_ascii=False
        )
    seen += caplog.text
    assert "ValueError: «secret» is wrong" in caplog.text
    assert f"in with {SHOWN}" in seen
    files = b"".join(file.read_bytes() for file in Path(place.store).parent.glob("store.db*"))
    for secret in (PLAIN, NAMED, INNER):
        assert secret not in seen
        assert secret.encode() not in files


@pytest.mark.parametrize("value", [7, "", b"x", ["hunter2secret"]])
def test_a_secret_argument_that_is_no_text_is_refused_without_its_value(place: Place, value: Any) -> None:
    worker = Worker(place.url, "shop")

    @worker.task("login")
    def login(ctx: Context, token: Secret[str]) -> None: ...

    with pytest.raises(InvalidInput, match="the secret argument 'token' is a text") as error:
        login.enqueue(value)
    assert "hunter2" not in str(error.value)
    worker.close()


def test_a_mark_is_seen_where_the_other_annotations_cannot_be_read() -> None:
    def login(ctx: OnlyForCheckers, token: Secret[str], n: int) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert _secret_parameters(login) == {"token"}
