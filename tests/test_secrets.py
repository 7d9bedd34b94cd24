"""What came from variables is shown as the variable; what is secret by its name is not shown."""

from __future__ import annotations

from typing import Any

import pytest

from ragscore.secrets import Secrets


@pytest.mark.parametrize(
    ("written", "filled", "hidden"),
    [
        ("${KEY}", "abcdef", "${KEY}"),
        ("Bearer ${KEY}", "Bearer abcdef", "${KEY}"),
        ("${KEY:-other}", "abcdef", "${KEY}"),
        ("${KEY:-${OTHER}}", "abcdef", "${KEY}"),
        ("$${KEY}/${KEY}", "${KEY}/abcdef", "${KEY}"),
        ({"a": ["x", "${KEY}"]}, {"a": ["x", "abcdef"]}, "${KEY}"),
        ("${KEY:-abcdef}", "abcdef", "abcdef"),  # a default stands in the file
        ("abcdef", "abcdef", "abcdef"),
        ("x", None, "abcdef"),
        (None, "x", "abcdef"),
    ],
    ids=str,
)
def test_the_value_of_a_variable_is_shown_as_the_variable(written: Any, filled: Any, hidden: str) -> None:
    assert Secrets.of(written, filled).hidden("it is abcdef, abcdef") == f"it is {hidden}, {hidden}"


def test_several_variables_in_one_text() -> None:
    secrets = Secrets.of("${USER_NAME}:${PASSWORD}", "somebody:pass:word")
    assert secrets.hidden("somebody with pass:word") == "${USER_NAME} with ${PASSWORD}"


def test_the_longest_is_replaced_first_and_quoted_forms_too() -> None:
    secrets = Secrets.of(["${A}", "${B}"], ["abcd", 'abcd"/ é'])
    assert secrets.hidden('x abcd"/ é y') == "x ${B} y"
    assert secrets.hidden('abcd\\"/ \\u00e9, abcd%22%2F%20%C3%A9, abcd') == "${B}, ${B}, ${A}"


def test_what_is_too_short_to_be_a_secret_is_left_alone() -> None:
    assert Secrets.of("${K}", "3").hidden("3 hits") == "3 hits"


def test_headers_that_are_secret_by_their_name() -> None:
    secrets = Secrets.of_headers({}, {"Authorization": "Bearer abcdef", "X-API-Key": "ghijkl", "Accept": "text/html"})
    assert secrets.hidden("abcdef ghijkl text/html Bearer abcdef") == "*** *** text/html ***"
