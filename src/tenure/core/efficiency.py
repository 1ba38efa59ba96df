"""Whether a result is worth its tokens: the lines changed, compared with what the tokens should have changed.

Lines are as the submitter counts them; a test file counts for as many lines as a small test has.
"""

from __future__ import annotations

from tenure.core import limits

BASELINE = 150  # tokens per changed line
TEST_FILE = 40  # lines
LEAST_TOKENS = limits.EFFICIENCY_MIN


def is_thin(tokens: int, lines: int, test_files: int, baseline: int = BASELINE) -> bool:
    """Whether fewer than half of the expected lines were changed."""
    return tokens >= LEAST_TOKENS and 2 * (lines + TEST_FILE * test_files) * baseline < tokens


def told(tokens: int, lines: int, test_files: int, baseline: int = BASELINE) -> str:
    tests = f" and {test_files} test files" if test_files else ""
    return f"review: {lines} changed lines{tests} for {tokens:,} tokens, {tokens // baseline} lines expected"
