"""The tree of errors: one line with what, where and mend; exit codes by who must act; fit for other processes."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore import errors
from ragscore.errors import HistoryTooNew, RagscoreError
from ragscore.suite_file import SuiteErrors


def tree(kind: type[RagscoreError] = RagscoreError) -> list[type[RagscoreError]]:
    """The kind and all below it that `ragscore.errors` defines."""
    below = [each for each in kind.__subclasses__() if each.__module__ == errors.__name__]
    return [kind, *(one for each in below for one in tree(each))]


@pytest.mark.parametrize(
    ("where", "mend", "said"),
    [
        (None, None, "is wrong"),
        ("suite.yaml:3", None, "suite.yaml:3: is wrong"),
        (None, "write 3", "is wrong — write 3"),
        ("suite.yaml:3", "write 3", "suite.yaml:3: is wrong — write 3"),
    ],
)
def test_an_error_reads_where_what_and_mend(where: str | None, mend: str | None, said: str) -> None:
    assert str(RagscoreError("is wrong", where=where, mend=mend)) == said


@given(st.text(), st.none() | st.text(), st.none() | st.text())
def test_an_error_is_one_line_whatever_it_quotes(what: str, where: str | None, mend: str | None) -> None:
    said = str(RagscoreError(what, where=where, mend=mend))
    assert len(said.splitlines()) <= 1
    assert "  " not in said


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_an_error_survives_pickling_and_copying_with_all_that_it_says(kind: type[RagscoreError]) -> None:
    error = kind("is wrong", where="here", mend="write 3")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is kind
        assert (again.what, again.where, again.mend, str(again)) == (error.what, error.where, error.mend, str(error))


@pytest.mark.parametrize("kind", tree(), ids=lambda kind: kind.__name__)
def test_every_error_stands_in_the_drawing(kind: type[RagscoreError]) -> None:
    assert f" {kind.__name__} " in f" {errors.__doc__} "
    assert kind.__doc__


def test_exit_codes_say_who_must_act() -> None:
    for kind in tree():
        must_change_files = issubclass(kind, (errors.ConfigError, HistoryTooNew))
        assert kind.exit_code == (2 if must_change_files else 3)


def test_what_may_pass_is_marked_so() -> None:
    assert {kind.__name__ for kind in tree() if kind.transient} == {"TargetDown", "JudgeUnavailable", "HistoryLocked"}


def test_several_faults_are_one_line_each() -> None:
    faults = [errors.SuiteError("is wrong", where=f"suite.yaml:{line}") for line in (1, 2)]
    assert str(SuiteErrors(faults)) == "suite.yaml:1: is wrong\nsuite.yaml:2: is wrong"
