"""No part of a user, a password or a query is ever shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.addresses import without_secrets


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://host/a/b.jsonl", "https://host/a/b.jsonl"),
        ("https://user:s3cret@host:8080/a?key=1#x", "https://host:8080/a"),
        ("http://u:p@s3cret@host/a", "http://host/a"),
        ("https://u:p/s3cret@host/a", "https://host/a"),
        ("https://u:p?s3cret@host/a", "https://host/a"),
        ("https://host/users/@me/a.jsonl", "https://host/users/@me/a.jsonl"),
        ("http://[::1]:8000/@me", "http://[::1]:8000/@me"),
        ("s3://bucket/what?.jsonl", "s3://bucket/what?.jsonl"),
        ("s3://bucket/q#1.jsonl", "s3://bucket/q#1.jsonl"),
        ("localhost:8000/v1?key=1", "localhost:8000/v1"),
        ("", ""),
    ],
)
def test_what_is_shown_of_an_address(address: str, shown: str) -> None:
    assert without_secrets(address) == shown


@given(st.text(min_size=1), st.sampled_from(["http", "https", "postgresql"]))
def test_a_password_is_never_shown_whatever_it_holds(password: str, scheme: str) -> None:
    shown = without_secrets(f"{scheme}://somebody:<{password}>@host.example/path")
    assert shown == f"{scheme}://host.example/path"
