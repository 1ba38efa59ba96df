"""Seeded bugs in what closes: a part that raises, and the rest that stays open."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TEST_CLOSING = "tests/test_closing.py"
TEST_MOVING = "tests/server/test_moving_tenants.py"

CLOSING = (
    Mutant(
        "closing: the first error cuts the rest short",
        "core/errors.py",
        """            if first is None:
                first = error
                continue
""",
        """            raise
""",
        f"{TEST_CLOSING}::test_each_part_is_closed_whatever_the_others_raise",
    ),
    Mutant(
        "closing: an interruption is lost behind an error",
        "core/errors.py",
        "            if isinstance(first, Exception) and not isinstance(error, Exception):",
        "            if False:",
        f"{TEST_CLOSING}::test_an_interruption_comes_before_an_error_and_cuts_nothing_short",
    ),
    Mutant(
        "closing: a tenant that is frozen keeps its leader from stopping",
        "engine/duties/coordinator.py",
        "        except Exception as error:  # noqa: BLE001 - the lease will expire",
        "        except StoreError as error:  # noqa: BLE001 - the lease will expire",
        f"{TEST_MOVING}::test_a_tenant_that_moves_leaves_no_connection_and_no_thread[6]",
    ),
    Mutant(
        "closing: the store of a tenant that has moved stays open",
        "server/service.py",
        """            self.reader.join,
            self.store.close,
""",
        """            self.reader.join,
""",
        f"{TEST_MOVING}::test_a_tenant_that_moves_leaves_no_connection_and_no_thread[6]",
    ),
    Mutant(
        "closing: an error that ends a thread is printed bare",
        "processes/thread_errors.py",
        "    before, threading.excepthook = threading.excepthook, report",
        "    before = threading.excepthook",
        f"{TEST_CLOSING}::test_an_error_that_ends_a_thread_is_one_sentence_with_what_it_means",
    ),
)
