"""regex: found in linear time, or refused when the task is made."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tenure.core.errors import InvalidInput
from tenure.testing.suites.validators import ValidatorSuite
from tenure.validators.patterns import Regex
from tenure.validators.port import Output, Validator
from tenure.validators.workers import Workers


@pytest.fixture(scope="module")
def pool() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.close()


class TestRegex(ValidatorSuite):
    settings: ClassVar = {"pattern": "^[a-z]+-[0-9]{3}$"}
    good = (Output("report-001"),)
    bad = (Output("report"), Output("x report-001"), Output(7), Output({"a": 1}), Output("x" * 10_000))
    broken = ({}, {"pattern": 7}, {"pattern": "("}, {"pattern": "x", "of": "title"}, {"pattern": "x" * 5000})

    @pytest.fixture(autouse=True)
    def shared_pool(self, pool: Workers) -> None:
        self.pool = pool

    def make(self, tmp_path: Path) -> Validator:
        return Regex(self.pool)


@pytest.fixture
def regex(pool: Workers) -> Regex:
    return Regex(pool)


def test_it_is_found_anywhere_in_the_text_or_the_json(regex: Regex) -> None:
    assert regex.judge({"pattern": "b+"}, Output("abbbc")).ok
    assert regex.judge({"pattern": '"status":"done"'}, Output({"status": "done"})).ok
    assert regex.judge({"pattern": "(?i)DONE", "of": "summary"}, Output(None, "all done")).ok
    assert not regex.judge({"pattern": "done", "of": "summary"}, Output("done", "no")).ok
    assert regex.judge({"pattern": "^.$"}, Output("ü")).ok


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){20}", "(x+x+)+y"])
def test_patterns_that_explode_elsewhere_do_not_here(regex: Regex, pattern: str) -> None:
    regex.check_settings({"pattern": pattern})
    began = time.monotonic()
    regex.judge({"pattern": pattern}, Output("a" * 50_000 + "!"))
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "pattern", ["(?=a)b", "(?<!a)b", "(a)\\1", "a{1000}{1000}{1000}", "(?P<x>a)(?P=x)", "[", "a\\"]
)
def test_patterns_that_cannot_be_matched_in_linear_time_are_refused(regex: Regex, pattern: str) -> None:
    with pytest.raises(InvalidInput, match="regular expression"):
        regex.check_settings({"pattern": pattern})
    assert not regex.judge({"pattern": pattern}, Output("ab")).ok  # never an error, wherever it came from


def test_an_output_of_50_mb_is_refused(regex: Regex) -> None:
    assert not regex.judge({"pattern": "x"}, Output("x" * 50_000_000)).ok


def test_half_a_pair_of_surrogates_is_a_text_that_does_not_match(regex: Regex) -> None:
    assert not regex.judge({"pattern": "^x$", "of": "summary"}, Output(None, "\ud800")).ok
