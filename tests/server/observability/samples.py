"""Reading back what a registry would tell Prometheus."""

from __future__ import annotations

import platform

from tenure.server.metrics import Metrics


class Told:
    """`told[name, *labels]` is a series' value; of the labels the tenant is left out."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics

    def series(self, name: str) -> dict[tuple[str, ...], float]:
        return {
            tuple(value for label, value in sample.labels.items() if label != "tenant"): sample.value
            for family in self.metrics.registry.collect()
            for sample in family.samples
            if sample.name == name
        }

    def __getitem__(self, asked: tuple[str, ...]) -> float:
        return self.series(asked[0]).get(asked[1:], 0.0)

    def total(self, name: str) -> float:
        return sum(self.series(name).values())

    def metrics_python(self) -> tuple[str]:
        return (platform.python_version(),)
