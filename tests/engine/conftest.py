"""The shipped suite's asserts tell what they compared, as those in test files do."""

import pytest

pytest.register_assert_rewrite("tenure.testing.engine")
