"""Whatever the umask, what we write beside a store is for its owner's eyes alone."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

from tests.cli.conftest import Tenure

HOOK = json.dumps({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"})


def open_to_others(folder: Path) -> list[str]:
    found = [path for path in folder.rglob("*") if not path.is_symlink() and "worktrees/" not in str(path)]
    return [f"{path} {oct(path.stat().st_mode)}" for path in found if stat.S_IMODE(path.lstat().st_mode) & 0o077]


def test_no_file_that_we_write_is_open_to_others(bare: Tenure, tmp_path: Path) -> None:
    home = Path(bare.environ["HOME"])

    def run(*words: str, stdin: str = "") -> None:
        done = subprocess.run(
            bare.command(*words), cwd=tmp_path, env=bare.environ, input=stdin, text=True, capture_output=True,
            check=False, umask=0,
        )  # fmt: skip
        assert done.returncode in (0, 3), (words, done.stderr)

    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)
    (tmp_path / "report.md").write_text("secret")
    run("init")
    for title in ("One", "Two", "Three"):
        run("add", title)
    run("claim", "A-001")
    run("artifact", "put", "report.md")
    run("checkpoint", "save", "--next-action", "go on")
    run("run", "--once", "--agent", "sh -c 'echo done; echo oops >&2'")
    run("run", "--once", "--worktree", "--agent", "sh -c 'echo done'")
    run("hook", "--from", "claude", stdin=HOOK)
    run("release", "A-001")
    run("db", "backup", str(tmp_path / ".tenure" / "copy.db"))
    assert list((tmp_path / ".tenure" / "transcripts").rglob("*.jsonl"))
    assert open_to_others(tmp_path / ".tenure") == []
    assert open_to_others(home) == []
