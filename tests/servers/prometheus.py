"""A real Prometheus with the shipped rules, whose durations may be shortened."""

from __future__ import annotations

import json
import re
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.servers import processes

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules.yml"
SCRAPED = 15.0  # seconds between two scrapes, as the shipped files have it
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
# Where PromQL and a rule name a duration: `for: 5m`, `[5m]`, `offset 5m`.
_DURATION = re.compile(r"((?:\bfor: |\[|\boffset ))(\d+)([smhd])\b")


def scaled(rules: str, factor: float) -> str:
    """The rules with every duration divided by the factor."""

    def shorter(found: re.Match[str]) -> str:
        return f"{found[1]}{max(1, round(1000 * int(found[2]) * _SECONDS[found[3]] / factor))}ms"

    return _DURATION.sub(shorter, rules)


class Prometheus(processes.Server):
    """`jobs`: each with the `host:port` that it scrapes and the credentials that it sends."""

    def __init__(self, jobs: dict[str, tuple[str, str]], factor: float = 1.0) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-prometheus-", dir="/tmp"))
        self.log = self.folder / "log"
        self.port = processes.free_port()
        self._jobs, self._factor = jobs, factor

    def start(self) -> None:
        self.log.touch()
        (self.folder / "rules.yml").write_text(scaled(RULES.read_text(), self._factor))
        every = f"{round(1000 * SCRAPED / self._factor)}ms"
        jobs = [
            {"job_name": name, "authorization": {"credentials": sent}, "static_configs": [{"targets": [place]}]}
            for name, (place, sent) in self._jobs.items()
        ]
        timing = {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every}
        settings = {"global": timing, "rule_files": ["rules.yml"], "scrape_configs": jobs}
        file = self.folder / "prometheus.yml"
        file.write_text(json.dumps(settings))  # JSON is YAML
        command: Sequence[str | Path] = [
            processes.found_or_installed("prometheus"), f"--config.file={file}",
            f"--storage.tsdb.path={self.folder / 'data'}", f"--web.listen-address=127.0.0.1:{self.port}",
        ]  # fmt: skip
        self.process = processes.start(command, None, self.log)
        processes.wait_until(self._is_ready, self.process, self.log)

    def _is_ready(self) -> bool:
        try:
            self._ask("/-/ready")
        except OSError:
            return False
        return True

    def firing(self) -> set[tuple[str, str]]:
        """The alerts that fire, each with its job."""
        alerts = json.loads(self._ask("/api/v1/alerts"))["data"]["alerts"]
        return {
            (one["labels"]["alertname"], one["labels"].get("job", "")) for one in alerts if one["state"] == "firing"
        }

    def values(self, query: str) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = json.loads(self._ask(f"/api/v1/query?query={query}"))["data"]["result"]
        return answer

    def _ask(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            text: bytes = answer.read()
        return text
