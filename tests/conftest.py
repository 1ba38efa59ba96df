"""What holds for every test: how asserts speak, how Hypothesis searches."""

import os

import pytest
from hypothesis import settings

from tests.servers.fixtures import bwrap, pgbouncer, postgres

__all__ = ["bwrap", "pgbouncer", "postgres"]

# The shipped suites' asserts tell what they compared, as those in test files do.
pytest.register_assert_rewrite("tenure.testing.engine", "tenure.testing.suites")

# derandomize: a red test is red for everybody, on every run. Fresh seeds are the reliability runs' job.
settings.register_profile("default", max_examples=50, derandomize=True, deadline=None)
settings.register_profile("ci", settings.get_profile("default"), max_examples=200, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
