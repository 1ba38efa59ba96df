"""A store whose file is gone, or somebody else's: every command says so, and how to get it back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.store_folder import copies_at, unreadable
from tests.cli.conftest import Said, Tenure

AGENT = "bash -c 'cat >/dev/null; echo done'"
VERBS = (
    "list", "status", "doctor", "ready", "claim", "add x", "whoami", "log", "history A-001", "why A-001", "db check",
    "daemon", "serve --port 0", "run --agent true --once", "budget list", "agents", "done -s x", "db archive",
)  # fmt: skip


def store_of(tenure: Tenure) -> Path:
    return tenure.folder / ".tenure" / "tenure.db"


def copies_of(tenure: Tenure) -> list[Path]:
    found = copies_at(str(store_of(tenure)), tenure.environ)
    return [Path(copy.path) for copy in sorted(found, key=lambda copy: copy.made)]


def clean(tenure: Tenure) -> None:
    """As `git clean -xdf` does."""
    subprocess.run(["git", "init", "-q", "."], cwd=tenure.folder, check=True)
    subprocess.run(["git", "clean", "-xdfq"], cwd=tenure.folder, check=True)
    assert not store_of(tenure).parent.exists()


@pytest.fixture
def worked(tenure: Tenure) -> Tenure:
    """A store in which a runner has worked."""
    tenure("add", "one")
    tenure("add", "two")
    done = tenure.process("run", "--agent", AGENT, "--until-empty")
    assert done.code == 0, done.err
    return tenure


@pytest.fixture
def lost(worked: Tenure) -> Tenure:
    clean(worked)
    return worked


@pytest.mark.sampled
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_that_a_store_was_here_and_how_to_get_it_back(lost: Tenure, verb: str) -> None:
    copy = copies_of(lost)[-1]
    said = (lost.process if "serve" in verb else lost)(*verb.split())  # whose log is a real stream
    assert said.code == 1, said
    text = said.out + said.err
    assert "a store was here until event " in text
    assert f"{store_of(lost)} is gone" in text
    assert f"`tenure db restore {copy}`" in text
    assert not store_of(lost).exists()


def test_the_command_that_is_printed_brings_the_store_back_in_a_new_epoch(lost: Tenure) -> None:
    copy = copies_of(lost)[-1]
    below = lost.folder / "src" / "deep"
    below.mkdir(parents=True)
    restored = Tenure(below, lost.environ)("db", "restore", copy)
    assert (restored.code, str(store_of(lost)) in restored.out) == (0, True), restored
    assert [task["state"] for task in lost("list", "--json").json] == ["completed", "completed"]
    assert (store_of(lost).parent / ".gitignore").read_text().endswith("*\n")
    assert store_of(lost).parent.stat().st_mode & 0o777 == 0o700
    assert copy.name.partition("-")[0] not in restored.out, "an epoch of its own"
    broken = [one["message"] for one in lost("doctor", "--verify", "--json").json if one["level"] == "error"]
    assert [text for text in broken if "artifact content" not in text] == [], "these were beside the store"
    assert "artifacts that were beside it are in no copy" in restored.out
    clean(lost)
    assert "a store was here until event " in lost("list").err


def test_a_claim_of_before_is_refused_after_it(tenure: Tenure) -> None:
    tenure("add", "one")
    tenure("add", "held")
    held = tenure("claim", "A-002", "--json").json["receipt"]
    assert tenure.process("run", "--agent", AGENT, "--until-empty", "--max-tasks", "1").code == 0
    clean(tenure)
    assert tenure("db", "restore", copies_of(tenure)[-1]).code == 0
    late = tenure("done", "-s", "too late", "--receipt", held)
    assert "STALE_EPOCH" in late.out + late.err


def test_the_project_that_init_named_comes_back(bare: Tenure) -> None:
    bare("init", "--project", "shop")
    bare("init", "--project", "other")
    bare("add", "one", "--project", "shop")
    assert bare.process("run", "--agent", AGENT, "--until-empty").code == 0
    clean(bare)
    assert bare("db", "restore", copies_of(bare)[-1]).code == 0
    assert len(bare("list", "--json").json) == 1


def test_init_says_that_the_store_it_makes_is_not_the_one_that_was_here(lost: Tenure) -> None:
    copy = copies_of(lost)[-1]
    said = lost("init", "--project", "default", "--json")
    assert said.json["made_store"]
    assert said.json["lost_store"]["copy"] == str(copy)
    assert "a store was here until event " in said.err
    assert "new and empty" in said.err
    assert str(copy) in said.err
    assert lost("init").err == "", "once"
    lost("add", "in the new one")
    assert lost.process("run", "--agent", AGENT, "--until-empty").code == 0
    assert copy in copies_of(lost), "the last copy of the former store stays"
    restored = lost("db", "restore", copy, "--json").json
    assert Path(restored["aside"]).exists()
    assert len(lost("list", "--json").json) == 2


def test_a_store_without_a_copy_is_missed_all_the_same(tenure: Tenure) -> None:
    tenure("add", "one")
    clean(tenure)
    said = tenure("list")
    assert "a store was here until event " in said.err
    assert "There is no copy of it" in said.err
    assert "There is no copy of the former one" in tenure("init").err


def test_a_store_that_a_url_names_is_missed_too(bare: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bare.folder / "elsewhere.db"
    monkeypatch.setenv("TENURE_URL", str(path))
    bare.environ["TENURE_URL"] = str(path)
    assert bare("init", "--project", "default").code == 0
    bare("add", "one")
    assert bare.process("run", "--agent", AGENT, "--until-empty").code == 0
    for file in bare.folder.glob("elsewhere.db*"):
        file.unlink()
    said = bare("list")
    assert (said.code, "a store was here until event " in said.err) == (1, True)
    copy = max(copies_at(str(path), bare.environ), key=lambda one: one.made)
    assert bare("db", "restore", copy.path).code == 0
    assert len(bare("list", "--json").json) == 1


def test_a_folder_that_never_had_a_store_says_nothing_of_one(
    lost: Tenure, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Tenure(tmp_path_factory.mktemp("other"), lost.environ)
    assert "there is no store in" in other("list").err
    assert other("init").err == ""


def test_no_verb_of_a_holder_makes_a_copy(tenure: Tenure) -> None:
    tenure("add", "one")
    tenure("claim")
    tenure("progress", "50")
    tenure("done", "-s", "finished")
    tenure("list")
    assert copies_of(tenure) == []


def test_copies_can_be_turned_off(tenure: Tenure) -> None:
    assert tenure("config", "copies.every", "0").code == 0
    tenure("add", "one")
    assert tenure.process("run", "--agent", AGENT, "--until-empty").code == 0
    assert copies_of(tenure) == []


def test_doctor_says_which_copy_there_is(worked: Tenure) -> None:
    copy = copies_of(worked)[-1]
    found = [one for one in worked("doctor", "--json").json if one["check"] == "copies"]
    assert [one["level"] for one in found] == ["ok"]
    assert str(copy) in found[0]["message"]


@pytest.mark.parametrize(
    ("how", "level", "words"),
    [("none", "ok", "there is none yet"), ("off", "note", "copies are off"), ("large", "warning", "make backups")],
)
def test_doctor_says_that_there_is_none(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch, how: str, level: str, words: str
) -> None:
    if how == "off":
        tenure("config", "copies.every", "0")
    elif how == "large":
        monkeypatch.setattr("tenure.core.limits.COPY_LARGEST", 1)
    (found,) = [one for one in tenure("doctor", "--json").json if one["check"] == "copies"]
    assert (found["level"], words in found["message"] + (found["fix"] or "")) == (level, True), found


# --- somebody else's -----------------------------------------------------------------------------------------

# In a process that becomes another user once everything is imported: that user may not read the interpreter's files.
OTHER = """
import os, pkgutil, sys, importlib, encodings.idna
for module in pkgutil.iter_modules(encodings.__path__):
    try:
        importlib.import_module(f"encodings.{module.name}")
    except ImportError:
        pass
import tenure
for module in pkgutil.walk_packages(tenure.__path__, "tenure."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:
            pass
os.setgroups([]); os.setgid(65534); os.setuid(65534)
from tenure.cli.main import main
raise SystemExit(main(sys.argv[1:]))
"""


def as_another(tenure: Tenure, home: Path, *words: str) -> Said:
    """The command as another user where this one may become one, else as one that may not read the folder."""
    environ = {**tenure.environ, "HOME": str(home), "TENURE_STATE": str(home / "state")}
    code = OTHER if os.geteuid() == 0 else "import sys\nfrom tenure.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "-C", str(tenure.folder), *words], capture_output=True, text=True,
        check=False, env=environ, cwd="/", timeout=120,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def foreign(environ: dict[str, str]) -> Iterator[Tenure]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # those of pytest are closed to others
        tenure = Tenure(Path(folder), environ)
        tenure.folder.chmod(0o777)
        assert tenure("init", "--project", "default").code == 0
        tenure("add", "one")
        yield tenure


@pytest.mark.sampled
@pytest.mark.parametrize(
    "words", ["list", "init", "add x", "claim", "status", "doctor", "run --agent true --once", "init --force", "prime"]
)
def test_another_users_store_belongs_to_them_and_is_no_bug(foreign: Tenure, words: str) -> None:
    home = foreign.folder / "home"
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    folder = foreign.folder / ".tenure"
    if os.geteuid() != 0:
        folder.chmod(0)
    said = as_another(foreign, home, *words.split())
    folder.chmod(0o700)
    text = said.out + said.err
    assert "internal error" not in text, text
    assert f"{folder} " in text, text
    assert "cannot be read" in text
    assert "rm " not in text


@pytest.mark.sampled
def test_another_users_store_is_not_passed_over_for_the_one_above_it(foreign: Tenure) -> None:
    inner = foreign.folder / "inner"
    inner.mkdir(mode=0o777)
    closed = inner / ".tenure"
    closed.mkdir(mode=0o700)
    (foreign.folder / ".tenure").chmod(0o777)
    if os.geteuid() != 0:
        closed.chmod(0)
    said = as_another(Tenure(inner, foreign.environ), foreign.folder, "list")
    closed.chmod(0o700)
    assert said.code == 10
    assert f"{closed} " in said.err
    assert "cannot be read" in said.err


@pytest.mark.parametrize("file", ["tenure.db", "tenure.toml", "folder without names"])
def test_a_file_that_cannot_be_read_is_named(foreign: Tenure, file: str) -> None:
    home = foreign.folder / "home"
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    store = store_of(foreign)
    store.parent.chmod(0o755)
    closed = {"tenure.db": store, "tenure.toml": foreign.folder / "tenure.toml"}.get(file, store.parent)
    if closed.suffix == ".toml":
        closed.write_text('[tasks]\non_lost = "retry"\n')
    closed.chmod(0o711 if closed == store.parent else 0o600 if os.geteuid() == 0 else 0)
    said = as_another(foreign, home, "list")
    store.parent.chmod(0o700)
    assert "internal error" not in said.err, said.err
    assert f"{closed} " in said.err
    assert "cannot be read" in said.err


def test_a_path_that_is_ones_own_says_its_mode(tmp_path: Path) -> None:
    message, hint = unreadable(str(tmp_path / "not there"), PermissionError(13, "Permission denied"))
    assert message == f"{tmp_path} cannot be read: Permission denied (it is yours, with mode 0700)"
    assert "right to read" in hint
    shutil.rmtree(tmp_path)
