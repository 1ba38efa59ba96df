"""The suite of the validator's contract.

class TestMine(ValidatorSuite):
    def make(self, tmp_path):
        return Mine()

    settings = {"words": 3}
    good = [Output("one two three")]
    bad = [Output("one")]
    broken = [{}, {"words": "three"}]
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from tenure.core.errors import InvalidInput
from tenure.validators.port import LARGEST_DETAILS, LONGEST_REASON, MOST_REASONS, Output, Validator, Verdict


class ValidatorSuite:
    settings: ClassVar[Mapping[str, Any]]  # of a contract that can be met
    good: Sequence[Output]  # outputs that meet it
    bad: Sequence[Output]  # outputs that do not
    broken: Sequence[Mapping[str, Any]]  # settings that no output could be judged by

    def make(self, tmp_path: Path) -> Validator:
        raise NotImplementedError

    @pytest.fixture
    def validator(self, tmp_path: Path) -> Iterator[Validator]:
        validator = self.make(tmp_path)
        yield validator
        close = getattr(validator, "close", None)
        if close is not None:
            close()

    def test_its_name_is_a_word_for_contracts(self, validator: Validator) -> None:
        assert validator.name == validator.name.strip().lower() != ""
        assert isinstance(validator.is_quick, bool)

    def test_settings_that_can_be_met_are_taken(self, validator: Validator) -> None:
        validator.check_settings(self.settings)

    def test_settings_that_no_output_could_be_judged_by_are_refused(self, validator: Validator) -> None:
        for settings in self.broken:
            with pytest.raises(InvalidInput):
                validator.check_settings(settings)

    def test_a_setting_that_nobody_knows_is_refused_by_name(self, validator: Validator) -> None:
        with pytest.raises(InvalidInput, match="no_such_setting"):
            validator.check_settings({**self.settings, "no_such_setting": 1})

    def test_a_good_output_passes(self, validator: Validator) -> None:
        for output in self.good:
            verdict = validator.judge(self.settings, output)
            assert verdict.ok
            assert verdict.reasons == ()

    def test_a_bad_output_is_refused_with_reasons(self, validator: Validator) -> None:
        for output in self.bad:
            verdict = validator.judge(self.settings, output)
            assert not verdict.ok
            assert 1 <= len(verdict.reasons) <= MOST_REASONS
            assert all(0 < len(reason) <= LONGEST_REASON for reason in verdict.reasons)

    def test_a_verdict_can_be_kept(self, validator: Validator) -> None:
        for output in (*self.good, *self.bad):
            verdict = validator.judge(self.settings, output)
            encoded = msgspec.json.encode(verdict)
            assert msgspec.json.decode(encoded, type=Verdict) == verdict
            assert len(msgspec.json.encode(verdict.details)) <= LARGEST_DETAILS

    def test_the_same_output_gets_the_same_verdict(self, validator: Validator) -> None:
        for output in (*self.good, *self.bad):
            assert validator.judge(self.settings, output).ok == validator.judge(self.settings, output).ok

    def test_several_threads_may_ask_at_once(self, validator: Validator) -> None:
        asked = [(output, True) for output in self.good] + [(output, False) for output in self.bad]
        start, wrong, answers = threading.Barrier(4), list[object](), list[bool]()

        def ask() -> None:
            start.wait()
            for output, ok in asked:
                verdict = validator.judge(self.settings, output)
                answers.append(verdict.ok)
                if verdict.ok != ok:
                    wrong.append(verdict)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(answers) == 4 * len(asked)
