"""The agent CLIs that are tested: the main paths of one in every run, all of all five with `-m agents`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agents.clis import CLIS, Cli
from tests.agents.install import EVERY_RUN, NotInstalled, installed
from tests.agents.script import Step, Usage
from tests.agents.stage import Stage, staged
from tests.servers.fixtures import missing

TENURE = Path(sys.executable).parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "agents: starts a real agent CLI against the mock model")
    config.addinivalue_line("markers", "every_agent: one that is left out unless it is asked for with `-m agents`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.markexpr or any("::" in word for word in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("every_agent")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _marked(name: str) -> object:
    marks = [pytest.mark.agents] if name == EVERY_RUN else [pytest.mark.agents, pytest.mark.every_agent]
    return pytest.param(name, marks=marks, id=name)


@pytest.fixture(scope="session", autouse=True)
def with_git(git: Path) -> None:
    """A bare Debian has no git; these tests work in repositories."""


@pytest.fixture(params=[_marked(name) for name in CLIS])
def cli(request: pytest.FixtureRequest) -> Cli:
    return CLIS[request.param]


@pytest.fixture
def programs(cli: Cli) -> Path:
    """The folder with the CLI's program. As root a CLI that cannot be had fails the test; as a user it is skipped."""
    try:
        return installed(cli.name)
    except NotInstalled as reason:
        missing(str(reason))


@pytest.fixture
def stage(cli: Cli, programs: Path, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """`stage(step, …)`: a repository in which the CLI, once started, plays these steps."""
    with ExitStack() as ends:

        def set_up(*script: Step, usage: Usage | None = None) -> Stage:
            return ends.enter_context(staged(cli, [programs, TENURE], tmp_path, script, usage))

        yield set_up
