"""Ed25519 keys whose signatures prove nothing: which they are, that the library accepts them, and that we do not."""

from __future__ import annotations

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tenure.core.errors import InvalidInput
from tenure.core.signed_results import check_public_key, weakness_of
from tenure.sealing.signing import SigningKey, is_signed

PRIME = 2**255 - 19
D = -121665 * pow(121666, -1, PRIME) % PRIME
Point = tuple[int, int]


def added(a: Point, b: Point) -> Point:
    """The group law of the curve, as RFC 8032 has it."""
    product = D * a[0] * b[0] * a[1] * b[1]
    x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + product, -1, PRIME)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, PRIME)
    return x % PRIME, y % PRIME


def times_eight(point: Point) -> Point:
    for _ in range(3):
        point = added(point, point)
    return point


def small_points() -> set[Point]:
    """All points that eight times themselves is the neutral one: the multiples of one of order 8.

    Such a point doubles to one of order 4, (±√-1, 0), so x = ±√-1·y and d·y⁴ + 2y² - 1 = 0 over the curve.
    """
    root = pow(2, (PRIME - 1) // 4, PRIME)  # of -1
    found: set[Point] = set()
    for x_over_y in (root, PRIME - root, 1, PRIME - 1):
        # -x² + y² = 1 + d·x²·y² with x = c·y: d·c²·z² + (c² - 1)·z + 1 = 0 for z = y²
        a, b = D * x_over_y**2 % PRIME, (x_over_y**2 - 1) % PRIME
        for z in roots_of(a, b, 1):
            for y in square_roots(z):
                point = (x_over_y * y % PRIME, y)
                if times_eight(point) == (0, 1):
                    found |= multiples(point)
    return found


def square_roots(value: int) -> list[int]:
    root = pow(value, (PRIME + 3) // 8, PRIME)
    for candidate in (root, root * pow(2, (PRIME - 1) // 4, PRIME) % PRIME):
        if candidate * candidate % PRIME == value % PRIME:
            return [candidate, PRIME - candidate]
    return []


def roots_of(a: int, b: int, c: int) -> list[int]:
    if a == 0:
        return [-c * pow(b, -1, PRIME) % PRIME] if b else []
    return [(root - b) * pow(2 * a, -1, PRIME) % PRIME for root in square_roots((b * b - 4 * a * c) % PRIME)]


def multiples(point: Point) -> set[Point]:
    found, at = {(0, 1)}, point
    while at != (0, 1):
        found.add(at)
        at = added(at, point)
    return found


def encodings(point: Point) -> list[str]:
    """Every 32 bytes that a library may read as the point: also with a height beyond the prime, and a sign of zero."""
    x, y = point
    signs = (0, 1) if x == 0 else (x & 1,)
    heights = [height for height in (y, y + PRIME) if height < 1 << 255]
    return [(height | sign << 255).to_bytes(32, "little").hex() for height in heights for sign in signs]


SMALL = sorted(encoding for point in small_points() for encoding in encodings(point))


def test_there_are_eight_points_of_small_order() -> None:
    assert len(small_points()) == 8
    assert len(SMALL) == len(set(SMALL)) == 14


@pytest.mark.parametrize("key", SMALL)
def test_a_key_of_small_order_is_refused_however_it_is_written(key: str) -> None:
    assert "small order" in weakness_of(key)
    with pytest.raises(InvalidInput, match="small order"):
        check_public_key(key)


def test_the_library_accepts_one_signature_of_such_a_key_for_every_text() -> None:
    neutral = "01" + "00" * 31
    forged = neutral + "00" * 32
    for text in (b"one result", b"another"):
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(neutral)).verify(bytes.fromhex(forged), text)
        assert not is_signed(neutral, forged, text)


def test_a_point_that_is_written_in_another_way_is_refused() -> None:
    """Of the 19 heights below 2²⁵⁵ that the prime can be added to, those that are on the curve."""
    on_curve = [y for y in range(2, 19) if square_roots((y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME)]
    assert on_curve
    for y in on_curve:
        assert weakness_of(y.to_bytes(32, "little").hex()) == ""
        assert "canonical" in weakness_of((y + PRIME).to_bytes(32, "little").hex())


def test_what_is_no_point_at_all_is_refused_and_keys_that_were_made_are_not() -> None:
    assert "not a point" in weakness_of("02" + "00" * 31)
    for bad in ("", "00", "zz" * 32, "0" * 63):
        assert weakness_of(bad) == "is not an Ed25519 public key"
    for _ in range(50):
        assert weakness_of(SigningKey(os.urandom(32)).public) == ""
