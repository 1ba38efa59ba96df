from typing import Any

import pytest

from tenure.core.commands import Land
from tenure.core.errors import InvalidInput
from tenure.core.landings import check_branch, check_landing, is_nothing

A, B = "a" * 40, "b" * 40


def landing(**fields: Any) -> Land:
    return Land(**{"project": "p", "receipt": "x", "branch": "main", "old": A, "new": B, **fields})


@pytest.mark.parametrize(
    "branch", ["main", "team/parser", "B-003@7", "ünï", "a.b", "a-", "x{y}", "v1.0", "@x", "a@b", "lock", "x" * 200]
)
def test_a_branch_that_git_allows_is_taken(branch: str) -> None:
    assert check_branch(branch) == branch


@pytest.mark.parametrize(
    "branch",
    [
        "", "-x", "/x", "x/", "x//y", ".x", "x/.y", "x.", "x..y", "a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b",
        "a\\b", "a@{b", "@", "HEAD", "x.lock", "x.lock/y", "a\nb", "a\x7fb", "a\x00b", "x" * 201,
    ],
)  # fmt: skip
def test_a_branch_that_git_refuses_is_refused(branch: str) -> None:
    with pytest.raises(InvalidInput, match="branch"):
        check_branch(branch)


def test_a_full_ref_is_told_to_be_a_branch() -> None:
    with pytest.raises(InvalidInput, match="without refs/heads/"):
        check_branch("refs/heads/main")


@pytest.mark.parametrize("id", ["", "a" * 39, "a" * 41, "A" * 40, "g" * 40, "a" * 64 + "a", "HEAD", "a" * 40 + "\n"])
@pytest.mark.parametrize("field", ["old", "new"])
def test_what_is_no_commit_id_is_refused(field: str, id: str) -> None:
    with pytest.raises(InvalidInput, match=f"{field} .*40 or 64"):
        check_landing(landing(**{field: id}))


def test_both_kinds_of_ids_are_taken_but_not_mixed() -> None:
    check_landing(landing())
    check_landing(landing(old="a" * 64, new="b" * 64))
    with pytest.raises(InvalidInput, match="old has 40 digits, new 64"):
        check_landing(landing(new="b" * 64))


def test_a_branch_may_be_made_but_never_taken_away() -> None:
    check_landing(landing(old="0" * 40))
    assert is_nothing("0" * 40)
    with pytest.raises(InvalidInput, match="not all zeros"):
        check_landing(landing(new="0" * 40))


def test_landing_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing to land"):
        check_landing(landing(new=A))
