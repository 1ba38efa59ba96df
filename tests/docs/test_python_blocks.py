"""Every Python block of the documentation runs as written: page by page, in an empty folder, on real servers.

A block whose paragraph begins with a file's name is that file: a module with names of its own, which other blocks
import as their reader does. The other blocks of a page continue each other.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tenure
from tests.servers.processes import free_port
from tests.servers.store_servers import SERVERS
from tests.servers.tenure import TenureServer

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"(?:^`([\w/]+\.py)`(?:(?!```)[^\n]+\n?)*\n)?^```python *(.*?)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    file: str  # empty: it goes on with the page's own program
    info: str
    text: str


PAGES = {
    str(page.relative_to(DOCS)): [Block(*found) for found in BLOCK.findall(page.read_text())]
    for page in sorted(DOCS.rglob("*.md"))
    if "reference" not in page.parts and "```python" in page.read_text()
}
# Pages whose blocks a test of their own runs, with what they need.
ELSEWHERE = {
    "how-to/drive-workers-from-a-broker.md": "test_messaging_pages.py",
    "how-to/import-from-other-tools.md": "test_python_blocks.py",
    "how-to/keep-artifacts.md": "test_artifacts_page.py",
    "how-to/send-events.md": "test_messaging_pages.py",
    "how-to/test-your-workers.md": "test_python_blocks.py",
    "how-to/use-with-django.md": "test_python_blocks.py",
    "how-to/use-with-fastapi.md": "test_python_blocks.py",
    "how-to/write-a-store.md": "test_write_a_store.py",
}
SAYS = ("tutorial/first-queue.md", "how-to/write-a-worker.md")  # the comment of each print is what it prints
SERVER = "https://tenure.example.com"
PLACES = {  # as pages write them
    "postgres": "postgresql://tenure@db.example.com/work?schema=tenure",
    "mariadb": "mariadb://tenure@db.example.com/tenure",
    "valkey": "valkeys://valkey.example.com:6379/0?space=tenure",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "shop"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    before = set(sys.modules)
    yield place
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(place)):
            close(vars(sys.modules.pop(name)))


@pytest.fixture
def names() -> Iterator[dict[str, Any]]:
    """The names of the page's own program; what it opened is closed at the end."""
    found: dict[str, Any] = {"__name__": "page"}
    yield found
    close(found)


def close(names: dict[str, Any]) -> None:
    for value in names.values():
        if isinstance(value, (tenure.Client, tenure.Worker)):
            value.close()


def run(page: str, names: dict[str, Any], *, replaced: dict[str, str] | None = None) -> list[str]:
    """Write the files of a page, then run its other blocks in one program; what the comments of its prints say."""
    said = []
    for block in PAGES[page]:
        assert block.info == "", f"{page}: a block that is not run"
        text = block.text
        for before, after in (replaced or {}).items():
            text = text.replace(before, after)
        if block.file:
            Path(block.file).write_text(text)
            importlib.invalidate_caches()
            importlib.import_module(Path(block.file).stem)
        else:
            exec(compile(text, page, "exec"), names)
        said += re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE)
    return said


def write(page: str) -> None:
    """The files of a page, in the working folder."""
    for block in PAGES[page]:
        path = Path(block.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_the_blocks_of_a_page_run_as_written(
    page: str, folder: Path, names: dict[str, Any], request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(block.text for block in PAGES[page])
    replaced = {}
    for kind, written in PLACES.items():
        if written in text:
            request.getfixturevalue(kind)
            replaced[written] = SERVERS[kind].url_of(folder.parent)
    if "create=True" not in text:  # the page begins in a folder with a project
        for project in ("shop", "default"):
            tenure.Client(".tenure/tenure.db", project, create=True).close()
    server = TenureServer(str(folder.parent / "served.db")) if SERVER in text else None
    if server is not None:
        tenure.Client(server.store, "shop", create=True).close()
        server.start()
        replaced[SERVER] = server.url
    try:
        expected = run(page, names, replaced=replaced)
        if server is not None:
            assert names["worker"].client.status()["tasks"] == {}  # the last block's worker is the server's
    finally:
        if server is not None:
            server.stop()
    if page in SAYS:
        assert expected
        assert capsys.readouterr().out.splitlines() == expected


def test_pages_with_a_test_of_their_own_are_run_by_it() -> None:
    for page, test in ELSEWHERE.items():
        assert page in PAGES
        assert Path(page).name in (Path(__file__).parent / test).read_text()


@pytest.mark.parametrize(
    ("page", "passed"), [("how-to/test-your-workers.md", "1 passed"), ("how-to/import-from-other-tools.md", "5 passed")]
)
def test_the_tests_of_a_page_pass(page: str, passed: str, folder: Path) -> None:
    write(page)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "."]
    said = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert passed in said.stdout


def test_the_plug_in_loads_nothing_of_ours_where_no_test_uses_it(folder: Path) -> None:
    (folder / "test_other.py").write_text(
        "import sys\n\ndef test_other():\n"
        "    assert [m for m in sys.modules if m.startswith(('tenure.client', 'tenure.engine', 'msgspec'))] == []\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis",
             "--rootdir", str(folder), "test_other.py"]  # fmt: skip
    said = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_page_about_fastapi_is_a_service_that_works(folder: Path) -> None:
    import uvicorn

    run("how-to/use-with-fastapi.md", {})
    application, worker = importlib.import_module("app"), importlib.import_module("worker")
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(application.app, port=port, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()

    def call(path: str, method: str = "GET") -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    try:
        while not server.started:
            thread.join(0.05)
            assert thread.is_alive()
        status, ordered = call("/reports?title=bees", "POST")
        assert (status, ordered["state"]) == (202, "ready")
        assert call(f"/reports/{ordered['id']}") == (200, {"id": ordered["id"], "state": "open"})
        worker.worker.run(until_empty=True)
        assert call(f"/reports/{ordered['id']}?wait=20")[1]["data"] == {"letters": 4}
        assert call("/reports/task_none")[0] == 404
        status, refused = call("/reports?title=", "POST")
        assert (status, refused["detail"]) == (422, "title must have 1 to 255 characters (got 0)"), refused
    finally:
        server.should_exit = True
        thread.join(30)


DJANGO = """
import django
from django.conf import settings

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "django.db"}},
                   SECRET_KEY="test", ALLOWED_HOSTS=["*"], INSTALLED_APPS=["shop"])
django.setup()

from django.core.management import call_command
from django.test import RequestFactory
from shop.jobs import worker
from shop.views import sign_up

reply = sign_up(RequestFactory().post("/sign-up", {"name": "mia"}))
assert reply.status_code == 202, reply
call_command("worker", until_empty=True)
(task,) = worker.client.tasks()
print(worker.client.wait(task["id"]).data)
worker.close()
"""


def test_the_page_about_django_is_an_application_that_works(folder: Path) -> None:
    write("how-to/use-with-django.md")
    words = [sys.executable, "-c", DJANGO]
    said = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert said.stdout == "welcome, mia\n", said.stderr
