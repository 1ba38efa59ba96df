"""The contracts in pyproject.toml hold, and each of them can fail."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def lint_imports(folder: Path, sources: Path) -> tuple[int, str]:
    """Exit code and output of import-linter, in a process of its own: it keeps its settings in globals."""
    code = (
        f"import sys; sys.path.insert(0, {str(sources)!r}); "
        "from importlinter.cli import lint_imports_command as run; run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-logo", "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_dependencies_point_one_way() -> None:
    code, output = lint_imports(ROOT, ROOT / "src")
    assert code == 0, output


def test_a_breach_of_each_contract_is_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    files = {
        "__init__.py": "",
        "core/__init__.py": "import time",
        "unplaced.py": "",
        "client/__init__.py": "",
        "engine/__init__.py": "import tenure.client",
        "engine/reaper.py": "from tenure.stores.port import Store\nimport tenure.stores.sqlite",
        "stores/__init__.py": "",
        "stores/port.py": "",
        "stores/memory.py": "",
        "stores/sqlite.py": "import tenure.stores.memory",
    }
    for name, text in files.items():
        file = tmp_path / "src" / "tenure" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    code, output = lint_imports(tmp_path, tmp_path / "src")

    assert code == 1, output
    assert "0 kept, 4 broken" in output
    findings = (
        "tenure.engine -> tenure.client",
        "tenure.core -> time",
        "tenure.engine.reaper -> tenure.stores.sqlite",
        "tenure.stores.sqlite -> tenure.stores.memory",
        "unplaced",
    )
    assert [finding for finding in findings if finding not in output] == [], output
    assert "tenure.engine.reaper -> tenure.stores.port" not in output
