"""Shipped for whoever tests with tenure or extends it: suites for adapters, a clock that is moved by hand, sample rows.

May import everything below the interfaces. `suites` holds one suite for each port; subclass it and name how to open
yours. To add one: a module in `suites`, one test for each sentence of the port's contract.
"""

from tenure.testing.clock import FakeClock

__all__ = ["FakeClock"]
