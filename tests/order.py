"""`--shuffle SEED`: modules in another order, and the tests of each module too. A test must pass in any order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby

import pytest


def shuffled(items: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """The same order in every process for one seed. A module stays together: its servers start once."""
    chance = random.Random(seed)
    modules = [list(group) for _, group in groupby(items, key=lambda item: item.nodeid.partition("::")[0])]
    chance.shuffle(modules)
    for module in modules:
        chance.shuffle(module)
    return [item for module in modules for item in module]
