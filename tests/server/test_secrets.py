"""A secret behind a real server: the claim has it, and nothing else that leaves the process, or lies on its disk."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import tenure
from tenure.client import Client
from tenure.core.task_secrets import SHOWN, spellings
from tests.runner.conftest import until
from tests.servers.tenure import TenureServer

PLAIN = "correct horse battery staple"
API = "/api/v1/projects/p"
PAGES = (
    f"{API}/tasks", f"{API}/log?limit=1000", f"{API}/status", f"{API}/overview", f"{API}/plans", f"{API}/ready",
    f"{API}/agents", f"{API}/messages", f"{API}/schedules/s", f"{API}/dags", "/metrics", "/api/v1/openapi.json",
)  # fmt: skip


class Receiver(ThreadingHTTPServer):
    """What a webhook was sent."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                ours.bodies.append(self.rfile.read(int(self.headers["content-length"])).decode())
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        Thread(target=self.serve_forever, daemon=True).start()


def asked(server: TenureServer, method: str, path: str, body: Any = None) -> str:
    link = HTTPConnection("127.0.0.1", server.port, timeout=30)
    link.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
    text = link.getresponse().read().decode()
    link.close()
    return text


def streamed(server: TenureServer, last: str) -> str:
    """The stream of events from the beginning up to one of this kind."""
    link = HTTPConnection("127.0.0.1", server.port, timeout=30)
    link.request("GET", f"{API}/events?after=0", None, {"Accept": "text/event-stream", "Last-Event-ID": "0"})
    answer, text = link.getresponse(), b""
    while last.encode() not in text:
        text += answer.readline()
    link.close()
    return text.decode()


def test_it_leaves_the_server_by_the_claim_alone(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with Client(store, "p", create=True) as client:
        client.init()
    receiver = Receiver()
    settings = {
        "TENURE_MASTER_KEY": "5a" * 32, "TENURE_WEBHOOKS_ALLOW_HTTP": "true", "TENURE_WEBHOOKS_NETWORKS": "127.0.0.0/8",
        "TENURE_SERVE_ACCESS_LOG": str(tmp_path / "access.log"),
    }  # fmt: skip
    said: dict[str, str] = {}
    with TenureServer(store, settings=settings) as server:
        hook = {"url": f"http://127.0.0.1:{receiver.server_port}/", "kinds": ["task.*", "message.*", "agent.*"]}
        assert '"outcome":"CREATED"' in asked(server, "PUT", f"{API}/webhooks/w", hook)
        new = {"title": "deploy", "spec": {"context": {"DB_PASSWORD": {"$secret": PLAIN}}}}
        said["add"] = asked(server, "POST", f"{API}/tasks", {"task": new})
        template = {"schedule": "s", "cron": "0 3 * * *", "template": {"tasks": [new]}}
        said["schedule"] = asked(server, "PUT", f"{API}/schedules/s", template)
        granted = json.loads(asked(server, "POST", f"{API}/claims", {"agent": "ann", "session": "s"}))
        assert granted["secrets"] == {"DB_PASSWORD": PLAIN}
        task, receipt = granted["task"]["ref"], granted["receipt"]
        opened = json.loads(asked(server, "POST", f"{API}/tasks/{task}/secrets", {"receipt": receipt}))
        assert opened["secrets"] == {"DB_PASSWORD": PLAIN}
        forged = {"receipt": receipt[:-4] + "0000"}
        said["forged"] = asked(server, "POST", f"{API}/tasks/{task}/secrets", forged)
        text = f"{PLAIN} {b64encode(PLAIN.encode()).decode()}"
        said["progress"] = asked(server, "POST", f"{API}/tasks/{task}/progress", {"receipt": receipt, "step": text})
        said["mail"] = asked(server, "POST", f"{API}/messages", {"sender": "ann", "text": text, "to": "ann"})
        wrong = {"receipt": receipt, "percent": text}
        said["wrong"] = asked(server, "POST", f"{API}/tasks/{task}/progress", wrong)
        said["submit"] = asked(server, "POST", f"{API}/tasks/{task}/submit", {"receipt": receipt, "data": text})
        for path in (*PAGES, f"{API}/tasks/{task}", f"{API}/tasks/{task}/history", f"{API}/tasks/{task}?at=99"):
            said[path] = asked(server, "GET", path)
        asked(server, "POST", f"{API}/audit", {})
        for name in ("head", "verify", "attestation"):
            said[name] = asked(server, "GET", f"{API}/audit/{name}")
        export, place = "", "head:"
        while place:
            page = json.loads(asked(server, "GET", f"{API}/audit/export?after={place}"))
            export, place = export + "\n".join(page["lines"]), page["next"]
        said["stream"] = streamed(server, "task.completed")
        until(lambda: any("task.completed" in body for body in receiver.bodies), "the webhook")
        said["webhook"] = "\n".join(receiver.bodies)
        said["log"] = server.log.read_text()
        said["access log"] = "\n".join(file.read_text() for file in tmp_path.glob("access.log*"))
    receiver.shutdown()
    receiver.server_close()
    assert SHOWN in said["stream"]
    assert SHOWN in said[f"{API}/tasks"]
    assert said["access log"]
    assert '"ok":true' in said["verify"]
    assert "$sealed" in export  # as the log has it
    assert not [secret for secret in spellings(PLAIN) if secret in export]
    for place, text in said.items():
        for secret in spellings(PLAIN):
            assert secret not in text, place
        assert "$sealed" not in text, place
    for file in tmp_path.iterdir():
        for secret in spellings(PLAIN):
            assert secret.encode() not in file.read_bytes(), file


def test_a_client_of_a_server_gets_the_secrets_of_its_claim(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with Client(store, "p", create=True) as client:
        client.init()
        client.add("deploy", metadata={"api_key": PLAIN})
    settings = {"TENURE_STATE": str(tmp_path / "other")}  # the key is not where that server looks for it
    with TenureServer(store, settings=settings) as server, tenure.Client(server.url, "p", agent="ann") as remote:
        answer = remote.claim()
        assert (answer.outcome, (answer.counts or {}).get("unreadable")) == ("NO_TASK", 1)
    settings = {"TENURE_STATE": os.environ["TENURE_STATE"]}
    with TenureServer(store, settings=settings) as server, tenure.Client(server.url, "p", agent="ann") as remote:
        granted = remote.claim().check()
        assert granted.secrets == {"metadata.api_key": PLAIN}
        assert remote.open_secrets(granted.receipt).secrets == {"metadata.api_key": PLAIN}
