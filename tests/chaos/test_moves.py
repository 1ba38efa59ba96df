"""A few moves of a tenant by the command that runs many; and that its check sees writes that were not frozen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.running import prove, run
from tests.servers.postgres import PostgresServer

# Nobody is refused while the tenant is copied.
NOT_FROZEN = """
import sys
from tenure.core import tenant_moves
tenant_moves.check_writable = lambda epoch: None
"""
SHORT = """
from tests.reliability.moves import main
raise SystemExit(main(["--moves", "2", "--workers", "2", "--between", "0.5", "--seed", "4"]))
"""


@pytest.mark.nightly
def test_a_tenant_that_moves_loses_nothing(postgres: PostgresServer, tmp_path: Path) -> None:
    ran = prove(tmp_path, "moves", "--moves", "3", "--workers", "2", "--between", "0.5", "--seed", "1")
    assert ran.code == 0, ran.said
    wrong = ("lost", "zombies_accepted", "connections_left", "threads_left", "findings")
    assert {name: ran.numbers[name] for name in wrong} == dict.fromkeys(wrong, 0), ran.said
    assert ran.numbers["moves"] == 3
    assert ran.numbers["accepted"] > 0


@pytest.mark.nightly
def test_writes_that_are_not_frozen_are_found_out(postgres: PostgresServer, tmp_path: Path) -> None:
    """In the workers too, which are other processes."""
    (tmp_path / "sitecustomize.py").write_text(NOT_FROZEN)
    ran = run(tmp_path, "-c", f"import os\nos.environ['PYTHONPATH'] = {str(tmp_path)!r}\n{SHORT}")
    assert ran.code == 1, ran.said
    assert ran.numbers["lost"] > 0, ran.said
