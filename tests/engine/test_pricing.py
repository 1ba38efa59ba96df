"""The shipped prices, and a user's own before them."""

from pathlib import Path

import pytest

from tenure.core.errors import InvalidInput
from tenure.engine.models.tables import price_table

LATER = 1_790_000_000_000_000


def test_the_shipped_table_is_read_once() -> None:
    assert price_table() is price_table()
    found = price_table().find("claude-opus-4-6", LATER)
    assert found is not None
    assert found.rate.cost(fresh=1_000_000) == 5_000_000_000


def test_a_users_file_comes_first(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('[models."claude-opus-4-6"]\nfresh = "1"\noutput = "2.5"\n')
    found = price_table(str(tmp_path / "prices.toml")).find("claude-opus-4-6", LATER)
    assert found is not None
    assert (found.provider, found.rate) == ("own", (10**9, 10**9, 10**9, 2_500_000_000, False))


@pytest.mark.parametrize(
    "text",
    ["models = 3", "fresh = 1", "[models.x]\nfresh = 1\noutput = 2", "[", "[models.x]\nfresh = '1'", "x" * 2_000_000],
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "prices.toml").write_text(text)
    with pytest.raises(InvalidInput):
        price_table(str(tmp_path / "prices.toml"))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        price_table(str(tmp_path / "prices.toml"))
