"""The picture in the README: `.venv/bin/python -m tests.server.dashboard.picture` writes docs/dashboard.png."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tenure.client import Client
from tenure.core.commands import NewTask
from tests.server.dashboard.tab import ROOT, Tab
from tests.servers.browser import browsing
from tests.servers.tenure import TenureServer

PROJECT = "shop"
SIZE = {"width": 1280, "height": 800}
TASKS = (  # name, track, title, what it waits for
    ("schema", "B", "Design the schema", ()),
    ("api", "C", "Write the API", ("schema",)),
    ("slow", "F", "Find out why sign-in is slow", ("schema",)),
    ("repositories", "B", "Implement repositories", ("schema",)),
    ("limits", "C", "Add rate limits", ("api",)),
    ("page", "D", "Build the sign-in page", ("api",)),
    ("rules", "F", "Review the access rules", ("api",)),
    ("import", "B", "Import old accounts", ("repositories",)),
    ("mail", "C", "Send a confirmation mail", ("api",)),
    ("guide", "G", "Write the guide", ("api", "repositories")),
    ("tests", "F", "Test sign-in end to end", ("page", "repositories")),
    ("ship", "E", "Ship it", ("guide", "tests", "mail")),
)


def draw(store: str) -> str:
    """A team of three and the dag they work on; its id."""
    ann, bo, cy = (Client(store, PROJECT, agent=name, session=f"{name}-1", create=True) for name in ("ann", "bo", "cy"))
    with ann, bo, cy:
        ann.init()
        for client, kind in ((ann, "claude"), (bo, "codex"), (cy, "gemini")):
            client.register(type=kind)
        tasks = [
            NewTask(title=title, name=name, track=track, depends_on=needs, max_attempts=1 if name == "mail" else 3)
            for name, track, title, needs in TASKS
        ]
        made = ann.plan(tasks, title="Accounts").tasks or ()
        keys = {name: str(task["key"]) for (name, *_), task in zip(TASKS, made, strict=True)}
        for name, client in (("schema", ann), ("api", cy), ("limits", cy)):
            client.submit(str(client.claim(keys[name]).receipt), "done")
        bo.fail(str(bo.claim(keys["mail"]).receipt), "the mail server refuses the sender")
        ann.ask(str(ann.claim(keys["slow"]).receipt), "Which region do you mean?")
        bo.progress(str(bo.claim(keys["repositories"]).receipt), 60, "the last table")
        ann.progress(str(ann.claim(keys["page"]).receipt), 40, "the form")
        return str(made[0]["dag"])


def main() -> None:
    os.environ.setdefault("TENURE_STATE", tempfile.mkdtemp(prefix="tenure-picture-"))
    with tempfile.TemporaryDirectory(prefix="tenure-picture-") as folder:
        store = str(Path(folder) / "tenure.db")
        dag = draw(store)
        with TenureServer(store) as server, browsing() as browser:
            tab = Tab(browser, server.url, viewport=SIZE)
            tab.go(f"/projects/{PROJECT}/dags/{dag}")
            tab.find(".live.live").wait_for()
            tab.find(".canvas .node, .canvas svg").first.wait_for()
            tab.picture(ROOT / "docs", "dashboard.png")
            tab.close()


if __name__ == "__main__":
    main()
