"""How many lines commits have changed, to compare with the tokens that they cost."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tenure.agents import git


def commit(folder: Path, **files: str) -> str:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for words in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return git.commit_id(str(folder), "HEAD") or ""


def test_lines_and_test_files_are_counted(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    first = commit(tmp_path, a_dot_py="one\ntwo\n", contest_dot_py="x\n")
    second = commit(
        tmp_path,
        a_dot_py="one\nthree\nfour\n",
        contest_dot_py="y\n",
        tests__b_dot_py="b\n",
        test_c_dot_py="c\n",
        src__d_dot_spec_dot_ts="d\n",
        latest_dot_md="e\n",
        picture_dot_bin="\0\1",
    )
    assert git.counted_between(str(tmp_path), first, second) == git.Counted(lines=3 + 2 + 4, test_files=3)
    assert git.counted_between(str(tmp_path), second, second) == git.Counted(0, 0)
