"""How a Python object is called with a question: functions, and objects with invoke, query, retrieve or run.

LangChain's retrievers and chains, LlamaIndex's retrievers and query engines, and Haystack's pipelines are recognised by
the methods that they have; none of these packages is imported.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_origin

from ragscore.errors import ConfigError
from ragscore.items import Item

#: In this order. A blocking method runs in a thread of its own, so that it is taken before its async twin: the twins
#: of many packages are the blocking method in disguise, and would stop the event loop. `module:object.ainvoke` names
#: a twin expressly.
METHODS = ("invoke", "query", "retrieve", "run", "ainvoke", "aquery", "aretrieve", "run_async")
#: Inputs of a pipeline that take the question although they could be left out.
QUESTIONS = frozenset({"query", "question"})


@dataclass(frozen=True, slots=True)
class Way:
    """`function(argument(item))` asks the target."""

    function: Callable[..., Any]
    argument: Callable[[Item], Any]


def way_to_call(found: Any, *, name: str, where: str) -> Way:
    """How to ask what `module:callable` names; a class is made an instance, without arguments, once.

    Raises:
        ConfigError: it cannot be called with one argument, a class needs arguments, a pipeline needs more than text.
    """
    if inspect.isclass(found):
        found = _instance(found, name, where)
    if _is_pipeline(found):
        return _pipeline(found, name, where)
    function = _function(found)
    if function is None:
        raise ConfigError(
            f"{name} is {_kind(found)}, which has none of {', '.join(METHODS)}",
            where=where,
            mend="name a function, or an object with one of them",
        )
    _check_one_argument(function, name, where)
    return Way(function, _argument(found, function))


def conversation(item: Item) -> list[Any]:
    """The messages that ask the item's question: its own where the dataset holds them, else the text as one."""
    held = item.metadata.get("messages")
    return list(held) if isinstance(held, (list, tuple)) and held else [{"role": "user", "content": item.input}]


def _instance(kind: type, name: str, where: str) -> Any:
    try:
        return kind()
    except Exception as error:  # the user's own code
        raise ConfigError(
            f"{name} is a class, and {kind.__name__}() fails: {type(error).__name__}: {error}",
            where=where,
            mend=f"write e.g. `retriever = {kind.__name__}(…)` in the module and name `retriever`",
        ) from error


def _function(found: Any) -> Callable[..., Any] | None:
    if inspect.isroutine(found) or isinstance(found, functools.partial):
        return found
    for name in METHODS:
        method = getattr(found, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
        if name == "invoke" and callable(found):
            return found  # type: ignore[no-any-return]
    return None


def _check_one_argument(function: Callable[..., Any], name: str, where: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in, without a signature
        return
    try:
        signature.bind("question")
    except TypeError as error:
        mend = "give its other parameters defaults"
        if not signature.parameters:
            mend = "if it builds the retriever, write `retriever = …()` in the module and name `retriever`"
        raise ConfigError(
            f"{name} cannot be called with the question alone: {error}", where=where, mend=mend
        ) from error


def _argument(found: Any, function: Callable[..., Any]) -> Callable[[Item], Any]:
    """The text; the conversation where the parameter is called `messages`; a mapping where a chain takes one."""
    try:
        first = next(iter(inspect.signature(function).parameters), None)
    except (TypeError, ValueError):
        first = None
    if first == "messages":
        return conversation
    keys = _keys_of_a_chain(found)
    if "messages" in keys:
        return lambda item: {"messages": conversation(item)}
    if len(keys) == 1:
        return lambda item: {keys[0]: item.input}
    return lambda item: item.input


def _keys_of_a_chain(found: Any) -> list[str]:
    """The keys of the mapping that a LangChain runnable must be given; none where it takes text."""
    schema_of = getattr(found, "get_input_jsonschema", None)
    if not callable(schema_of):
        return []
    try:
        schema = schema_of()
    except Exception:  # noqa: BLE001 - some chains cannot tell; text is what most take
        return []
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return []
    properties = schema.get("properties", {})
    return ["messages"] if "messages" in properties else list(schema.get("required", ()) or properties)


def _is_pipeline(found: Any) -> bool:
    return all(callable(getattr(found, name, None)) for name in ("run", "inputs", "outputs")) and hasattr(
        found, "graph"
    )


def _pipeline(pipeline: Any, name: str, where: str) -> Way:
    """A Haystack pipeline: the question goes to every free input that must have text."""
    asked: dict[str, list[str]] = {}
    for component, inputs in pipeline.inputs().items():
        for each, spec in inputs.items():
            if spec.get("is_mandatory"):
                if not _takes_text(spec.get("type")):
                    raise ConfigError(
                        f"{name} is a pipeline whose {component}.{each} needs {spec.get('type')}",
                        where=where,
                        mend="write a function that takes the question and runs the pipeline, and name that",
                    )
            elif each not in QUESTIONS:
                continue
            asked.setdefault(component, []).append(each)
    outputs = pipeline.outputs(include_components_with_connected_outputs=True)
    order = _in_order(pipeline.graph)
    documents = {component for component in order if "documents" in outputs.get(component, {})}

    def run(data: Mapping[str, Any]) -> Mapping[str, Any]:
        # A pipeline gives the outputs of its last components only, the retriever's not.
        result = pipeline.run(data, include_outputs_from=documents)
        return {component: result[component] for component in order if component in result}

    return Way(run, lambda item: {component: dict.fromkeys(names, item.input) for component, names in asked.items()})


def _takes_text(kind: Any) -> bool:
    return kind is Any or kind is str or (get_origin(kind) is not None and str in getattr(kind, "__args__", ()))


def _in_order(graph: Any) -> Sequence[str]:
    """The components from the first to the last, each after those that feed it as far as there is no circle."""
    left: list[str] = list(graph.nodes)
    done: list[str] = []
    while left:
        ready = next((each for each in left if set(graph.predecessors(each)) <= {*done, each}), left[0])
        left.remove(ready)
        done.append(ready)
    return done


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
