"""What holds for every test: how asserts speak, how Hypothesis searches."""

import atexit
import os
import shutil
import tempfile

import pytest
from hypothesis import settings

from tests.servers.fixtures import bwrap, pgbouncer, postgres

__all__ = ["bwrap", "pgbouncer", "postgres"]

# A user's state is not for tests: they have their own, which goes with them.
os.environ["TENURE_STATE"] = tempfile.mkdtemp(prefix="tenure-state-")
atexit.register(shutil.rmtree, os.environ["TENURE_STATE"], ignore_errors=True)

# The shipped suites' asserts tell what they compared, as those in test files do.
pytest.register_assert_rewrite("tenure.testing.engine", "tenure.testing.suites")

# derandomize: a red test is red for everybody, on every run. Fresh seeds are the reliability runs' job.
settings.register_profile("default", max_examples=50, derandomize=True, deadline=None)
settings.register_profile("ci", settings.get_profile("default"), max_examples=200, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
