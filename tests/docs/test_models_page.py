"""The page on cheaper models: its sessions run as they are written, its files are understood."""

from __future__ import annotations

import re
from pathlib import Path

from tenure.core.prices import Prices
from tenure.engine.models.tables import price_table, tier_table
from tests.docs import sessions

PAGE = (Path(__file__).parents[2] / "docs/how-to/use-cheaper-models-first.md").read_text()
CHORES = "name: chores\ntasks:\n" + "".join(f"  - {{title: Stub {n}, type: boilerplate}}\n" for n in range(6))
CHORES += "".join(f"  - {{title: Feature {n}, constraints: {{complexity: {n}}}}}\n" for n in (6, 9))


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


def test_the_sessions_run_as_written(tmp_path: Path) -> None:
    (script,) = blocks("sh")
    (tmp_path / "agent.sh").write_text(script)
    (tmp_path / "agent.sh").chmod(0o755)
    (tmp_path / "chores.yaml").write_text(CHORES)
    environ = sessions.environment(tmp_path / "home")
    steps = sessions.steps_of(PAGE)
    assert len(steps) >= 8
    for step in steps:
        said = sessions.run(step.command, tmp_path, environ)
        evened = [re.sub(r" +", " ", line.strip()) for line in said.splitlines()]
        wanted = [re.sub(r" +", " ", line.strip()) for line in step.said.splitlines()]
        assert sessions.matches("\n".join(wanted), "\n".join(evened)), (
            f"$ {step.command}\nsaid: {said}\nnot: {step.said}"
        )


def test_the_files_of_ones_own_are_understood(tmp_path: Path) -> None:
    _, tiers, prices = blocks("toml")
    (tmp_path / "tiers.toml").write_text(tiers)
    (tmp_path / "prices.toml").write_text(prices)
    found = tier_table(str(tmp_path / "tiers.toml"))
    assert found.family_of("our-bot") == "ours"
    assert found.model("anthropic", "small") == "claude-haiku-4-5"
    own: Prices = price_table(str(tmp_path / "prices.toml"))
    assert own.find("ours-huge", 0) is not None
