"""What starts fast stays fast: the hot path imports nothing that costs more than it is worth."""

import subprocess
import sys
from pathlib import Path

import pytest

# Each costs tens of milliseconds, or belongs to an interface that the embedded path does not use.
HEAVY = {
    "asyncio", "click", "concurrent.futures", "cryptography", "email", "http", "httpx", "importlib.metadata", "logging",
    "mcp", "multiprocessing", "psycopg", "pydantic", "rich", "sqlalchemy", "sqlite3", "ssl", "unittest",
    "urllib.request",
}  # fmt: skip


def imported_by(*modules: str) -> set[str]:
    """What a fresh interpreter has loaded after importing these, beyond what it starts with."""
    script = "import sys; before = set(sys.modules)\n"
    script += "".join(f"import {module}\n" for module in modules)
    script += "print('\\n'.join(sorted(set(sys.modules) - before)))"
    run = subprocess.run([sys.executable, "-S", "-c", PATH + script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


# -S leaves out what site-packages' own .pth files import; the path is handed in instead.
PATH = f"import sys; sys.path[:] = {sys.path!r}\n"


@pytest.mark.parametrize(
    "modules",
    [
        ("tenure.engine", "tenure.stores.sqlite"),
        ("tenure.engine", "tenure.stores.open_store", "tenure.stores.sqlite"),
        ("tenure.client",),
        ("tenure",),
    ],
)
def test_the_embedded_path_imports_nothing_heavy(modules: tuple[str, ...]) -> None:
    loaded = imported_by(*modules)
    assert loaded & {"tenure", "tenure.core.ids"}
    heavy = {name for name in loaded if name in HEAVY or name.split(".")[0] in HEAVY}
    assert heavy == set()


def test_opening_a_store_and_claiming_imports_nothing_heavy(tmp_path: object) -> None:
    script = f"""
from tenure.core import commands as c
from tenure.engine import Engine
from tenure.stores.open_store import open_store
import os
class Chance:
    def token(self, size): return os.urandom(size)
    def fraction(self): return 0.5
engine = Engine(open_store({str(tmp_path)!r} + "/store.db"), Chance())
engine.do(c.DefineProject(project="p"))
engine.do(c.Add(project="p", task=c.NewTask(title="x")))
granted = engine.do(c.ClaimNext(project="p", agent="ann", session="s"))
assert engine.do(c.Submit(project="p", receipt=granted.receipt, data=1)).outcome == "ACCEPTED"
import sys
print("\\n".join(sys.modules))
"""
    run = subprocess.run([sys.executable, "-S", "-c", PATH + script], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "apsw" in loaded
    assert {name for name in loaded if name in HEAVY or name.split(".")[0] in HEAVY} == set()


# Beyond what the engine may not import: what a short command does not need, each a millisecond or more.
NEEDLESS = {
    "_hashlib", "base64", "difflib", "inspect", "json", "locale", "msgspec._json_schema", "msgspec.inspect", "pathlib",
    "platform", "shutil", "string", "subprocess", "tempfile", "tenure.stores.fast_path", "textwrap", "tomllib",
    "typing_extensions",
}  # fmt: skip
MOST_MODULES = 128  # of ours: each costs a tenth of a millisecond, and its contents


@pytest.mark.parametrize("verb", ["claim", "progress half", "done"])
def test_the_verbs_that_agents_call_all_day_import_nothing_they_do_not_need(tmp_path: Path, verb: str) -> None:
    """Each is run for real, by the entry point that is installed; what it has loaded is printed at its end."""
    for before in ("init", "add One", *(() if verb == "claim" else ("claim",))):
        run = subprocess.run(
            [sys.executable, "-m", "tenure", *before.split()], cwd=tmp_path, capture_output=True, check=False
        )
        assert run.returncode == 0, run.stderr
    script = f"""
import sys; before = set(sys.modules)
import os, tenure.__main__
sys.argv = ["tenure", *{verb.split()!r}, "--json"]
def told(code):
    loaded = {{name for name, module in sys.modules.items() if module is not None}}
    print("\\n".join(sorted(loaded - before)), file=sys.stderr, flush=True)
    os.kill(os.getpid(), 9)
os._exit = told
tenure.__main__.main()
"""
    run = subprocess.run(
        [sys.executable, "-S", "-c", PATH + script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert '"outcome":"' in run.stdout, run.stderr
    loaded = set(run.stderr.split())
    assert "tenure.cli.main" in loaded
    assert {name for name in loaded if name in HEAVY | NEEDLESS or name.split(".")[0] in HEAVY} == set()
    assert len([name for name in loaded if name.startswith("tenure")]) <= MOST_MODULES


def test_no_command_without_a_secret_or_a_signature_imports_cryptography(tmp_path: Path) -> None:
    """It costs half a second. In a sealed project; all of them in one process, which has loaded it if one has."""
    script = """
import sys
from tenure.cli.main import main
for words in (
    "init", "audit on", "add One", "list", "show A-001", "status", "why A-001", "claim", "note A-001 hello",
    "done -s x", "history A-001", "list --at 3", "log", "audit head", "audit verify", "audit export e.jsonl",
    "audit verify e.jsonl", "limits set --compliance soc2", "limits", "db archive", "doctor",
    "webhook list", "trigger list",
):
    code = main(words.split())
    if code or "cryptography" in sys.modules:
        sys.exit(f"{words}: {code}, {'cryptography' in sys.modules}")
"""
    subprocess.run([sys.executable, "-S", "-c", PATH + script], cwd=tmp_path, check=True, capture_output=True)


def test_what_a_start_leaves_out_is_there_when_it_is_used() -> None:
    script = """
import sys
from tenure.cli import quick_start
quick_start.prepare("claim")
import msgspec
assert not {"msgspec.inspect", "msgspec._json_schema", "platform"} & set(sys.modules)
class Pair(msgspec.Struct):
    one: int
assert msgspec.json.schema(Pair)["$defs"]["Pair"]["required"] == ["one"]
assert msgspec.inspect.type_info(int) == msgspec.inspect.IntType()
import hashlib, platform, uuid
assert hashlib.sha256(b"x").hexdigest().startswith("2d711642") and platform.python_version() and uuid.uuid4()
assert sys.modules["_hashlib"] is None
"""
    subprocess.run([sys.executable, "-S", "-c", PATH + script], check=True)
