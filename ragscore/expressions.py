"""Expressions that users write into a suite: JMESPath over a response, Jinja2 templates for a request.

Both are checked when the suite is read and carried out later by the parts that use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

#: What a template may name. The reference is not among them: a system under test must not see its answer.
TEMPLATE_NAMES = ("input", "id", "metadata", "messages")
_EXAMPLE = "write e.g. {{ input }}"


def path_fault(expression: str) -> str | None:
    """What is wrong with a JMESPath expression, with an example; None when nothing is."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        jmespath.compile(expression)
    except JMESPathError as error:
        said = str(error).splitlines()[0].rstrip(": ") if str(error) else type(error).__name__
        return f"{expression!r} is not a JMESPath expression: {said}"
    return None


def template_fault(value: Any) -> str | None:
    """What is wrong with the first faulty template in a value as YAML gives it; None when nothing is."""
    from jinja2 import TemplateSyntaxError, meta

    for text in _texts(value):
        try:
            names = meta.find_undeclared_variables(_environment().parse(text)) - {"range", "dict"}
        except TemplateSyntaxError as error:
            return f"{text!r} is not a template: {error.message}; {_EXAMPLE}"
        unknown = sorted(names - set(TEMPLATE_NAMES))
        if unknown:
            return f"a template names {unknown[0]!r}; known are {', '.join(TEMPLATE_NAMES)}"
    return None


def names_the_question(value: Any) -> bool:
    """Whether a template in the value names the question: `input` or `messages`."""
    from jinja2 import meta

    parsed = (_environment().parse(text) for text in _texts(value))
    return any({"input", "messages"} & meta.find_undeclared_variables(tree) for tree in parsed)


def formula_fault(expression: str, names: Iterable[str]) -> str | None:
    """What is wrong with an expression over `names` that gives a number; None when nothing is."""
    from jinja2 import TemplateSyntaxError, meta

    known = sorted(names)
    try:
        used = meta.find_undeclared_variables(_environment().parse("{{ " + expression + " }}"))
        _environment().compile_expression(expression)
    except TemplateSyntaxError as error:
        return f"{expression!r} is not an expression: {error.message}; write e.g. {known[0] if known else 1} / 10"
    unknown = sorted(used - set(known))
    return f"the expression names {unknown[0]!r}; known are {', '.join(known)}" if unknown else None


def formula(expression: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression over `values`; sandboxed.

    Raises:
        ValueError: it fails on these values.
    """
    from jinja2 import TemplateError

    try:
        return _environment().compile_expression(expression, undefined_to_none=False)(**values)
    except (TemplateError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise ValueError(f"the expression {expression!r} fails: {error}") from error


class Template:
    """A value as YAML gives it (text, list, mapping, number) whose texts are Jinja2 templates, sandboxed.

    A text that is one expression alone keeps that expression's type: `"{{ metadata.k }}"` is a number where the
    metadata holds one. Nothing is ever HTML-escaped, and text that looks like a number stays text.

    Args:
        value: The value.
        address: Whether it is an address: what an expression gives is percent-encoded then (what `urlencode` has
            encoded is not encoded again). A question with `#` or `&` would be cut off otherwise.
    """

    def __init__(self, value: Any, *, address: bool = False) -> None:
        self._value = _One(value, address=True) if address else _compiled(value)

    def filled(self, values: Mapping[str, Any]) -> Any:
        """The value with its templates filled in.

        Raises:
            ValueError: a name in it has no value (`metadata.lang` of an item without), or it fails.
        """
        return _filled(self._value, values)


class _One:
    """One text: as an expression that keeps its type, or as a template that gives text."""

    def __init__(self, text: str, *, address: bool = False) -> None:
        self.text = text
        expression = None if address else _lone_expression(text)
        environment = _environment(address=address)
        self._expression = (
            environment.compile_expression(expression, undefined_to_none=False) if expression is not None else None
        )
        self._template = environment.from_string(text)

    def filled(self, values: Mapping[str, Any]) -> Any:
        from jinja2 import TemplateError, Undefined

        try:
            if self._expression is None:
                return self._template.render(values)
            value = self._expression(**values)
            if isinstance(value, Undefined):
                str(value)  # a strict undefined says what is missing
            return value
        except (TemplateError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise ValueError(f"the template {self.text!r} cannot be filled: {error}") from error


def _compiled(value: Any) -> Any:
    if isinstance(value, str):
        return _One(value) if "{" in value else value
    if isinstance(value, Mapping):
        return {key: _compiled(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_compiled(each) for each in value]
    return value


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, _One):
        return value.filled(values)
    if isinstance(value, Mapping):
        return {key: _filled(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, values) for each in value]
    return value


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for each in value.values() for text in _texts(each)]
    if isinstance(value, (list, tuple)):
        return [text for each in value for text in _texts(each)]
    return []


def _lone_expression(text: str) -> str | None:
    """The expression of `{{ expression }}` when the text is nothing else."""
    from jinja2 import nodes

    body = _environment().parse(text).body
    if len(body) != 1 or not isinstance(body[0], nodes.Output) or len(body[0].nodes) != 1:
        return None
    if isinstance(body[0].nodes[0], nodes.TemplateData):
        return None
    inner = text.strip()
    # A text around white space only would be more than the expression; the tree has shown that there is none.
    return inner[2:-2].strip().strip("-").strip() if inner == text and inner.startswith("{{") else None


class _Encoded(str):
    """Text that is percent-encoded already."""


def _encoded(value: Any) -> str:
    return value if isinstance(value, _Encoded) else _Encoded(quote(str(value), safe="/:"))


@lru_cache(maxsize=2)
def _environment(*, address: bool = False) -> SandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.filters import do_urlencode
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Native types would come from literal_eval, which takes "007" for 7: see `_One` for how types are kept instead.
    environment = ImmutableSandboxedEnvironment(
        autoescape=False, undefined=StrictUndefined, keep_trailing_newline=True, finalize=_encoded if address else None
    )
    if address:
        environment.filters["urlencode"] = lambda value: _Encoded(do_urlencode(value))
    return environment
