"""Every shell block of the README and of the how-to pages runs as written, in an empty folder, as a stranger's."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents.test_first_hour import built, install
from tests.docs import sessions
from tests.docs.shell_pages import ELSEWHERE, SESSIONS, STAGES, Stage
from tests.servers.fixtures import provided
from tests.servers.processes import free_port
from tests.servers.store_servers import SERVERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELL = "sh"
KINDS = {"console", "json", "promql", "python", SHELL, "text", "toml", "yaml"}
PAGES = {
    str(page.relative_to(DOCS) if DOCS in page.parents else page.name): BLOCK.findall(page.read_text())
    for page in (ROOT / "README.md", *sorted((DOCS / "how-to").glob("*.md")))
}
WITH_SHELL = [page for page, blocks in PAGES.items() if any(kind == SHELL for kind, _ in blocks)]
PROGRAMS = ("curl", "git", "openssl", "xxd")
# Commands that run until Ctrl-C: the page goes on beside them.
LASTS = re.compile(r"^(?:\w+=\S+ )*tenure (?:serve|gateway$|run --sign)|# .*until Ctrl-C")
FIELD = """import json, sys
found = json.load(sys.stdin)
found = found[0] if isinstance(found, list) else found
name = sys.argv[1]
print(found.get(name) or next(part[name] for part in found.values() if isinstance(part, dict) and name in part))
"""


def test_every_block_of_a_page_says_what_it_is() -> None:
    assert [(page, kind) for page, blocks in PAGES.items() for kind, _ in blocks if kind not in KINDS] == []


def test_every_shell_block_is_run_by_a_test() -> None:
    assert sorted(WITH_SHELL) == sorted([*STAGES, *ELSEWHERE])
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).exists()] == []


def test_every_session_is_run_by_a_test() -> None:
    assert sorted(SESSIONS) == sorted(page for page, blocks in PAGES.items() if "console" in dict(blocks))
    assert [page for page, test in SESSIONS.items() if Path(page).name not in (ROOT / test).read_text()] == []


def test_every_line_that_is_left_out_is_on_its_page() -> None:
    for page, stage in STAGES.items():
        lines = [line for kind, block in PAGES[page] if kind == SHELL for line in block.splitlines()]
        for start in (*stage.left_out, *stage.between):
            assert any(line.startswith(start) for line in lines), f"{page}: no line begins with {start}"


class Shell:
    """A shell in an empty folder; exports and the working folder last, and so do the servers that it starts.

    `program`: the `tenure` that is on its path, else that of the working copy.
    """

    def __init__(self, place: Path, program: Path | None) -> None:
        self.folder, self.state = place / "shop", place / "state"
        self.environ = sessions.environment(place / "home") | {"TENURE_SERVE_PORT": str(free_port())}
        if program is not None:
            (place / "home" / "bin" / "tenure").unlink()
            self.environ["PATH"] = f"{program.parent}:{self.environ['PATH']}"
        self.folder.mkdir()
        self.state.write_text(f"cd {self.folder}\n")
        self.lasting: list[subprocess.Popen[str]] = []

    def run(self, script: str) -> None:
        part: list[str] = []
        for line in re.sub(r"\\\n *", "", script).splitlines():
            if LASTS.search(line) is None:
                part.append(line)
                continue
            self._run(part)
            part = []
            self._start(line)
        self._run(part)

    def _run(self, lines: list[str]) -> None:
        if not lines:
            return
        script = f'set -euo pipefail\n. "{self.state}"\n' + "\n".join(lines)
        script += f'\nexport -p > "{self.state}"; echo "cd \'$PWD\'" >> "{self.state}"\n'
        done = subprocess.run(
            ["bash", "-c", script], env=self.environ, capture_output=True, text=True, check=False, timeout=300,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, "\n".join([*lines, done.stdout, done.stderr])

    def _start(self, line: str) -> None:
        """Start a command and wait until it says that it runs."""
        process = subprocess.Popen(
            ["bash", "-c", f'. "{self.state}"\nexec env {line}'], env=self.environ, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.lasting.append(process)
        assert process.stdout is not None
        said = process.stdout.readline()
        assert process.poll() is None, f"{line}\n{said}{process.stdout.read()}"

    def close(self) -> None:
        """`^C` for what still runs: it ends by itself, and well."""
        for process in reversed(self.lasting):
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=60)
            assert "Traceback" not in said, said
            assert process.returncode in (0, 130), (process.args, process.returncode, said)


@contextmanager
def shell(place: Path, program: Path | None) -> Iterator[Shell]:
    opened = Shell(place, program)
    try:
        yield opened
        opened.close()
    finally:
        for process in opened.lasting:
            if process.poll() is None:
                process.kill()
                process.communicate()


def filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+(?: \w+)?)\}", lambda found: values.get(found[1], found[0]), text)


@pytest.mark.sampled
@pytest.mark.parametrize("page", STAGES)
def test_the_shell_blocks_of_a_page_run_as_written(page: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    play(page, tmp_path, request)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tenure` as the wheel installs it into an empty environment."""
    place = tmp_path_factory.mktemp("wheel")
    install(f"{built(place / 'dist')}[postgres]", place / "venv")
    return place / "venv" / "bin" / "tenure"


@pytest.mark.nightly
@pytest.mark.parametrize("page", STAGES)
def test_the_shell_blocks_of_a_page_run_with_the_wheel(
    page: str, program: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    play(page, tmp_path, request, program)


@pytest.mark.nightly
def test_the_session_of_the_readme_runs_with_the_wheel(program: Path, tmp_path: Path) -> None:
    with shell(tmp_path, program) as opened:
        sessions.play(sessions.steps_of((ROOT / "README.md").read_text()), opened.folder, opened.environ)


def play(page: str, tmp_path: Path, request: pytest.FixtureRequest, program: Path | None = None) -> None:
    stage: Stage = STAGES[page]
    for name in PROGRAMS:
        provided(name)
    for server in stage.needs:
        request.getfixturevalue(server)
    with shell(tmp_path, program) as opened:
        port = opened.environ["TENURE_SERVE_PORT"]
        values = {"root": str(ROOT), "folder": str(opened.folder), "port": port, "port 2": str(free_port()),
                  "server": f"http://127.0.0.1:{port}", "field": f"{sys.executable} {tmp_path}/field.py"}  # fmt: skip
        (tmp_path / "field.py").write_text(FIELD)
        if "postgres" in stage.needs:
            (tmp_path / "other").mkdir()
            values["postgres"] = f"'{SERVERS['postgres'].url_of(tmp_path)}'"
            values["other"] = f"'{SERVERS['postgres'].url_of(tmp_path / 'other')}'"
            values["as tenure_app"] = re.sub(r"//[^@/]*@", "//tenure_app@", values["postgres"])
        replaced = {written: filled(ours, values) for written, ours in stage.replaced.items()}

        def ours(text: str) -> str:
            for written, instead in replaced.items():
                text = text.replace(written, instead)
            return text

        for kind in ("toml", "yaml"):
            files = [ours(block) for found, block in PAGES[page] if found == kind]
            values |= {f"{kind} {n}": block for n, block in enumerate(files)}
        opened.run(filled(stage.before, values))
        between = dict(stage.between)
        for block in (block for kind, block in PAGES[page] if kind == SHELL):
            lines: list[str] = []
            for line in block.splitlines():
                if any(line.startswith(start) for start in stage.left_out):
                    continue
                due = [start for start in between if line.startswith(start)]
                lines += [*(filled(between.pop(start), values) for start in due), ours(line)]
            opened.run("\n".join(lines))
