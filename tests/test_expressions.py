"""Expressions in suites: what is no JMESPath or template is said, and templates fill in without surprises."""

from __future__ import annotations

from typing import Any

import pytest

from ragscore.expressions import Template, names_the_question, path_fault, template_fault

VALUES = {"input": "a <b> & 'c'", "id": "q", "metadata": {"k": 3, "none": None, "deep": {"x": [1]}}, "messages": [1]}


@pytest.mark.parametrize("expression", ["hits[*].text", "@", "a || b", "hits[?score > `0.5`]"])
def test_a_path_that_is_right(expression: str) -> None:
    assert path_fault(expression) is None


@pytest.mark.parametrize("expression", ["", "hits[*", "a..b", "nope(@"])
def test_a_path_that_is_wrong_names_itself(expression: str) -> None:
    assert str(path_fault(expression)).startswith(f"{expression!r} is not a JMESPath expression: ")


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("{{ input }}", VALUES["input"]),
        ("{{input}}", VALUES["input"]),
        ("{{- input -}}", VALUES["input"]),
        ("Q: {{ input }}\n", f"Q: {VALUES['input']}\n"),
        ("{{ metadata.k }}", 3),
        ("{{ metadata.k + 1 }}", 4),
        ("{{ metadata.k }}0", "30"),
        (" {{ metadata.k }}", " 3"),
        ("{{ metadata.k }}{{ metadata.k }}", "33"),
        ("{{ metadata.none }}", None),
        ("{{ metadata.deep }}", {"x": [1]}),
        ("{{ metadata.nope | default('en') }}", "en"),
        ("{% if metadata.k > 2 %}many{% endif %}", "many"),
        ("{{ '007' }}", "007"),
        ("{{ id | upper }}", "Q"),
        ({"a": ["{{ id }}", 1, None, True, {"b": "{{ metadata.k }}"}]}, {"a": ["q", 1, None, True, {"b": 3}]}),
        ("plain {x}", "plain {x}"),
        (5, 5),
    ],
    ids=str,
)
def test_a_lone_expression_keeps_its_type_and_all_else_is_text(value: Any, filled: Any) -> None:
    assert template_fault(value) is None
    found = Template(value).filled(VALUES)
    assert (found, type(found)) == (filled, type(filled))


@pytest.mark.parametrize(
    "value",
    [
        "{{ metadata.nope }}",
        "x {{ metadata.nope }}",
        "{{ metadata.k.real.nope.x }}",
        "{{ metadata.k / 0 }}",
        "{{ input + 1 }}",
        "{{ input.__class__.__mro__[1].__subclasses__() }}",
        "{{ metadata.deep.update({'y': 1}) }}",
    ],
)
def test_what_has_no_value_or_is_not_allowed_fails(value: str) -> None:
    with pytest.raises(ValueError, match="cannot be filled"):
        Template(value).filled(VALUES)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("{{ input", "is not a template: unexpected end"),
        ({"a": ["{% if %}"]}, "is not a template"),
        ("{{ reference }}", "a template names 'reference'; known are input, id, metadata, messages"),
        ("{{ input | nofilter }}", None),
    ],
    ids=str,
)
def test_faults_are_found_without_filling_anything_in(value: Any, fault: str | None) -> None:
    assert fault is None or fault in str(template_fault(value))


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("{{ input }}", True),
        ({"a": [1, "{{ messages[-1] }}"]}, True),
        ("{{ id }}", False),
        ("input", False),
        (None, False),
    ],
)
def test_whether_the_question_is_asked(value: Any, named: bool) -> None:
    assert names_the_question(value) is named
