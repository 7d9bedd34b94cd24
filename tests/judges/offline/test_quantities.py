from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.judges.offline.quantities import plain, readings, scaled, spelled_dates


@pytest.mark.parametrize(
    ("numeral", "values"),
    [
        ("7", {"7"}),
        ("007", {"7"}),
        ("1,000", {"1000"}),
        ("1.000", {"1000", "1.000"}),
        ("1 000", {"1000"}),
        ("1'000'000", {"1000000"}),
        ("12,34,567", {"1234567"}),
        ("1,234.50", {"1234.5"}),
        ("1.234,50", {"1234.5"}),
        ("0,5", {"0.5"}),
        ("0.500", {"0.5"}),
        ("3.14", {"3.14"}),
        ("1000.25", {"1000.25"}),
    ],
)
def test_a_numeral_has_the_readings_of_every_country_that_writes_it_so(numeral: str, values: set[str]) -> None:
    assert set(readings(numeral)[0]) == values


@pytest.mark.parametrize(
    ("numeral", "parts"),
    [("12.03.2019", ("12", "3", "2019")), ("3.11.4", ("3", "11", "4")), ("1,2,3", ("1", "2", "3"))],
)
def test_several_numbers_in_a_row_are_not_one(numeral: str, parts: tuple[str, ...]) -> None:
    assert readings(numeral) == ((), parts)


def test_digits_grouped_by_spaces_may_be_two_numbers() -> None:
    assert readings("12 345") == (("12345",), ("12", "345"))


@given(st.integers(min_value=0, max_value=10**15))
def test_grouping_never_changes_an_integer(value: int) -> None:
    english = f"{value:,}"
    for separator in ",.' ":
        assert str(value) in readings(english.replace(",", separator))[0]


@given(st.decimals(min_value=0, max_value=10**6, places=2))
def test_a_decimal_comma_is_a_decimal_point(value: object) -> None:
    assert readings(str(value)) == readings(str(value).replace(".", ","))


@given(st.integers(0, 10**9), st.integers(0, 12))
def test_scaling_multiplies_by_powers_of_ten(value: int, power: int) -> None:
    assert scaled(str(value), power) == str(value * 10**power)


def test_scaling_moves_the_decimal_point() -> None:
    assert scaled("2.5", 6) == "2500000"
    assert scaled("1.2345678", 3) == "1234.5678"


def test_a_numeral_of_any_length_is_read() -> None:
    assert plain("0" * 9000 + "1" * 9000) == "1" * 9000


def test_iso_dates_are_spelled_and_others_left() -> None:
    assert spelled_dates("on 2019-06-05, not 2019-13-05") == "on 5 June 2019, not 2019-13-05"
