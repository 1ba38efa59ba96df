"""Names of things: ids sort by time, base32 and keys come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import ids
from tenure.core.errors import InvalidInput

times = st.integers(0, (1 << 48) * 1000 - 1)
randoms = st.binary(min_size=ids.IdMaker.RANDOM_BYTES, max_size=ids.IdMaker.RANDOM_BYTES)


@given(times, times, randoms, randoms)
def test_ids_sort_by_time(one: int, other: int, chance: bytes, other_chance: bytes) -> None:
    a, b = ids.IdMaker(one, chance).next("task"), ids.IdMaker(other, other_chance).next("task")
    assert len(a) == len(b) == len("task_") + 26
    if one // 1000 != other // 1000:
        assert (a < b) == (one < other)


@given(times, randoms)
def test_ids_of_one_transaction_sort_in_the_order_of_their_making(now: int, chance: bytes) -> None:
    maker = ids.IdMaker(now, chance)
    made = [maker.next("evt") for _ in range(40)]
    assert made == sorted(set(made))


def test_ids_are_ulids() -> None:
    assert ids.IdMaker(1469918176385 * 1000, bytes(10)).next("task") == "task_01ARYZ6S410000000000000001"


@given(st.binary(max_size=40))
def test_base32_comes_back_as_it_was(data: bytes) -> None:
    text = ids.encode_base32(data)
    assert ids.decode_base32(text, len(data)) == data
    assert ids.decode_base32(text.lower(), len(data)) == data
    assert set(text) <= set(ids.CROCKFORD)


@given(st.text(st.sampled_from(ids.CROCKFORD + "ILOU!é "), max_size=36), st.integers(0, 22))
def test_one_token_has_one_spelling(text: str, size: int) -> None:
    data = ids.decode_base32(text, size)
    assert data is None or ids.encode_base32(data) == text


def test_no_letter_that_people_mistake_is_used() -> None:
    assert not set("ILOU") & set(ids.CROCKFORD)
    assert ids.decode_base32("0O", 1) is None


tracks = st.text(st.sampled_from("ABXZ"), min_size=1, max_size=4)
slugs = st.from_regex(r"[A-Za-z0-9_-]{1,50}", fullmatch=True)


@given(tracks, st.integers(1, 10**9), slugs, st.lists(st.integers(0, 200), max_size=5))
def test_a_key_is_taken_apart_as_it_was_put_together(track: str, number: int, slug: str, path: list[int]) -> None:
    ref = ids.ref_of(track, number)
    tail = "".join(f"::{n}" for n in path)
    key = ids.parse_key(f"{ref}-{slug}{tail}")
    assert key == ids.Key(track, number, slug, tuple(path))
    assert key.ref == ref + tail
    short = ids.parse_key(ref + tail)
    assert short is not None
    assert (short.ref, short.slug) == (ref + tail, "")


@pytest.mark.parametrize(
    "text",
    ["", "B", "B-", "B-1", "B-12", "b-003", "B-003-", "B-003::", "B-003::x", "B-003-a b", " B-003", "B-003\n", "-003"],
)
def test_what_is_no_key_is_none(text: str) -> None:
    assert ids.parse_key(text) is None


@given(st.text(max_size=30))
def test_any_text_is_a_key_or_none(text: str) -> None:
    ids.parse_key(text)


@pytest.mark.parametrize("text", ["B-" + "9" * 5000, "B-003::" + "9" * 5000, "B-" + "0" * 10_000 + "-x"])
def test_a_number_of_any_length_is_a_key_or_none(text: str) -> None:
    assert ids.parse_key(text) is None


@pytest.mark.parametrize("text", ["B-٠٠٣", "B-００３-x", "B-003::²"])
def test_only_ascii_digits_count(text: str) -> None:
    assert ids.parse_key(text) is None


@given(st.text(min_size=1, max_size=255))
def test_a_slug_is_kebab_case_short_and_never_empty(title: str) -> None:
    slug = ids.slug_of(title)
    assert 1 <= len(slug) <= ids.SLUG_LENGTH
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert slug.strip("-") == slug
    assert ids.parse_key(f"B-003-{slug}") is not None


def test_a_slug_reads_like_its_title() -> None:
    assert ids.slug_of("Implement the Repositories (v2)!") == "implement-the-repositories-v2"
    assert ids.slug_of("…") == "task"


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "@all", "a|b", "a\x00", "a\n", "x" * 129, "a\u2028b"])
def test_names_that_would_confuse_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="agent"):
        ids.check_name(name, "agent")


@pytest.mark.parametrize("name", ["ann", "claude-1", "x" * 128, "naïve", "a.b:c", "🙂"])
def test_other_names_are_taken(name: str) -> None:
    assert ids.check_name(name, "agent") == name


@pytest.mark.parametrize("code", ["", "b", "B1", "B-", "Ä", "A\n"])
def test_a_track_is_capital_letters(code: str) -> None:
    with pytest.raises(InvalidInput, match="track"):
        ids.check_track_code(code)
    assert ids.check_track_code("CORE") == "CORE"
