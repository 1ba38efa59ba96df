"""Texts without secrets."""

from __future__ import annotations

import pytest

from tenure.core import keys
from tenure.core.redaction import without_secrets

ID, SECRET = "0123456789abc", "s" * 52


@pytest.mark.parametrize("tenant", ["local", "acme-2", "a", "0123456789abc", "x" * 40])
def test_the_secret_of_a_key_is_taken_out(tenant: str) -> None:
    key = keys.spelled(tenant, ID, SECRET)
    assert without_secrets(f"with {key}, and {key.upper()}.") == (
        f"with tnr_{tenant}_{ID}_…, and TNR_{tenant.upper()}_{ID.upper()}_…."
    )


def test_the_secret_of_a_key_from_before_tenants_is_taken_out() -> None:
    assert without_secrets(f"tnr_{ID}_{SECRET}") == f"tnr_{ID}_…"
    assert without_secrets(f"tnr_{ID}_{SECRET[:9]}") == f"tnr_{ID}_…"
