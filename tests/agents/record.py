"""Records what the agent CLIs print: `python -m tests.agents.record [agent …]` writes `samples/`.

Run it when a version in install.py changes; the readers of agents' output are tested against these files.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.agents.clis import CLIS, Cli
from tests.agents.install import PLACE, installed
from tests.agents.script import Refuse, Say, Shell, Step
from tests.agents.stage import Stage, staged

SAMPLES = Path(__file__).with_name("samples")
WORK = (Shell("echo hello > written.txt && echo written"), Say("All done."))

# Lines that say nothing about the work, by the dozen or by the page.
NOISE = ("session.background_tasks_changed", "session.skills_loaded")


def without(stage: Stage, *options: str) -> list[str]:
    """The usual words but for these options and what belongs to them."""
    words = stage.cli.words("Do what is to be done.", stage.folder)
    for option in options:
        at = words.index(option)
        is_alone = at + 1 == len(words) or words[at + 1].startswith("-")
        del words[at : at + (1 if is_alone else 2)]
    return words


def usual(stage: Stage) -> list[str]:
    return without(stage)


Scene = tuple[tuple[Step, ...], Callable[[Stage], list[str]]]
EVERYWHERE: dict[str, Scene] = {
    "done": (WORK, usual),
    "unauthorised": ((Refuse(401),), usual),
    "rate-limited": ((Refuse(429, retry_after=1),), usual),
    "unavailable": ((Refuse(500),), usual),
}
RECOVERED: Scene = ((Refuse(429, times=1, retry_after=1),), usual)
ALSO: dict[str, dict[str, Scene]] = {
    "claude": {
        "recovered": RECOVERED,
        "denied": (WORK, lambda stage: without(stage, "--allowedTools")),
        "over-budget": (WORK, lambda stage: [*usual(stage), "--max-budget-usd", "0.0001"]),
        "too-many-turns": (WORK, lambda stage: [*usual(stage), "--max-turns", "1"]),
    },
    "codex": {"recovered": RECOVERED, "denied": ((Shell("touch /usr/written.txt"), Say("All done.")), usual)},
    "copilot": {"recovered": RECOVERED, "denied": (WORK, lambda stage: without(stage, "--allow-all"))},
    "gemini": {"untrusted": (WORK, usual)},  # it does not recover with the single attempt that clis.py grants it
    "opencode": {"recovered": RECOVERED},
}


def scrubbed(text: str, stage: Stage) -> str:
    """The text without what belongs to this machine."""
    places = {
        str(stage.folder): "/repository",
        str(stage.folder).replace("/", "-"): "-repository",
        str(stage.home): "/home/agent",
        str(PLACE): "/opt/agents",
        stage.model.url: "http://127.0.0.1:1",
        stage.model.url.removeprefix("http://"): "127.0.0.1:1",
    }
    for place, name in places.items():
        text = text.replace(place, name)
    return "".join(line for line in text.splitlines(keepends=True) if not any(noise in line for noise in NOISE))


def record(cli: Cli, name: str, scene: Scene) -> str:
    """One run, written to its files; gives a line about it."""
    script, words = scene
    with tempfile.TemporaryDirectory() as place, staged(cli, [installed(cli.name)], Path(place), script) as stage:
        if name != "untrusted":
            stage.trust()
        ran = stage.run(*words(stage))
        folder = SAMPLES / cli.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.jsonl").write_text(scrubbed(ran.out, stage))
        (folder / f"{name}.stderr").write_text(scrubbed(ran.err, stage))
        usage = stage.folder / "usage.json"
        if usage.exists():
            (folder / f"{name}.usage.json").write_text(json.dumps(json.loads(usage.read_text()), indent=1) + "\n")
        return f"{cli.name} {name}: exit {ran.code}"


def main() -> None:
    exits: dict[str, dict[str, int]] = {}
    for agent in sys.argv[1:] or CLIS:
        for name, scene in (EVERYWHERE | ALSO.get(agent, {})).items():
            line = record(CLIS[agent], name, scene)
            exits.setdefault(agent, {})[name] = int(line.rpartition(" ")[2])
            print(line, flush=True)
        (SAMPLES / agent / "exits.json").write_text(json.dumps(exits[agent], indent=1) + "\n")


if __name__ == "__main__":
    main()
