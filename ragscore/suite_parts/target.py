"""The RAG system under test, and the ways to call it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ragscore import expressions
from ragscore.suite_parts.part import Part, bare
from ragscore.suite_parts.plugin import Plugin


class HttpResponsePart(Part):
    """Where the answer and the contexts stand in the JSON of a reply; JMESPath. A bare string names the contexts."""

    output: str | None = Field(default=None, description="Path of the answer's text.")
    contexts: str | None = Field(default=None, description="Path of the list of contexts.")

    @field_validator("output", "contexts")
    @classmethod
    def _is_a_path(cls, value: str | None) -> str | None:
        return checked_path(value)


class HttpPart(Part):
    """A request per question. `url`, `headers`, `query`, `json` and `form` are Jinja2 templates (sandboxed)."""

    url: str = Field(min_length=1, description="The address, e.g. http://localhost:8000/ask.")
    method: Literal["GET", "POST", "PUT", "PATCH"] | None = Field(
        default=None, description="POST where there is something to send, else GET."
    )
    headers: dict[str, str] = Field(default_factory=dict, description="Headers of the request.")
    query: dict[str, Any] = Field(default_factory=dict, description="Parameters after the `?`.")
    json_: Any = Field(default=None, alias="json", description="What is sent, as JSON.")
    form: dict[str, Any] | None = Field(default=None, description="What is sent, as a form.")
    response: Annotated[HttpResponsePart, bare("contexts")] | None = Field(
        default=None, description="Where output and contexts stand; found by their usual names when left out."
    )
    status: list[int] | None = Field(default=None, description="Statuses of a good answer; any 2xx when left out.")
    connect_timeout_s: float = Field(default=10.0, gt=0, allow_inf_nan=False, description="Seconds to connect.")
    retries: int = Field(default=2, ge=0, le=20, description="Attempts after the first, for passing faults.")
    retry_delay_s: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description="Seconds before the second attempt; doubles, with jitter."
    )
    proxy: str | None = Field(default=None, description="Address of a proxy; else the environment's.")
    ca: str | None = Field(default=None, description="A PEM file of certificates to trust, instead of the usual.")
    verify: bool = Field(default=True, description="Whether the server's certificate is checked.")

    @field_validator("status", mode="before")
    @classmethod
    def _one_status(cls, value: Any) -> Any:
        return [value] if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("proxy", "ca")
    @classmethod
    def _empty_is_none(cls, value: str | None) -> str | None:
        return value or None

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if not value.startswith(("http://", "https://")):
            raise ValueError("does not begin with http:// or https://; write e.g. http://localhost:8000/ask")
        return value

    @field_validator("url", "headers", "query", "json_", "form")
    @classmethod
    def _is_a_template(cls, value: Any) -> Any:
        if (fault := expressions.template_fault(value)) is not None:
            raise ValueError(fault)
        return value

    @model_validator(mode="after")
    def _asks_the_question(self) -> HttpPart:
        if self.json_ is not None and self.form is not None:
            raise ValueError("a request sends `json` or `form`, not both")
        if not expressions.names_the_question([self.url, self.headers, self.query, self.json_, self.form]):
            raise ValueError(
                "the question is not in the request; write {{ input }} where it belongs, e.g. query: {q: '{{ input }}'}"
            )
        return self


class CommandPart(Part):
    """A program that reads one JSON line per question and writes one JSON line per answer. Begun once, kept running."""

    run: list[str] = Field(min_length=1, description="The program and its arguments; begun in the suite's folder.")
    env: dict[str, str] = Field(default_factory=dict, description="Further environment variables.")
    start_s: float = Field(
        default=60.0, ge=0, allow_inf_nan=False, description="Seconds that its first answer may take longer."
    )


def _as_command(value: Any) -> Any:
    if isinstance(value, str):
        import shlex

        return {"run": shlex.split(value)}
    return {"run": value} if isinstance(value, list) else value


def none_as_mapping(value: Any) -> Any:
    """`target: none` for a dataset that already holds what was retrieved."""
    return {"none": True} if value == "none" else value


class TargetPart(Part):
    """The RAG system under test, and how to call it: one of `python`, `http`, `command`, `plugin`, `none`."""

    retriever: str = Field(default="retriever", min_length=1, description="What is compared over time.")
    version: str = Field(default="dev", min_length=1, description="Which version of it this run is about.")
    python: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        description="module:callable, sync or async, or an object with invoke, query, retrieve or run.",
    )
    http: HttpPart | None = Field(default=None, description="A request per question.")
    command: Annotated[CommandPart, BeforeValidator(_as_command)] | None = Field(
        default=None, description="A program that answers JSON lines."
    )
    plugin: Plugin | None = Field(default=None, description="What an installed package offers, by its name.")
    none: Literal[True] | None = Field(
        default=None, description="Nothing is called: the dataset holds contexts and output."
    )
    top_k: int | None = Field(default=None, ge=1, description="Only the first so many contexts are judged.")
    concurrency: int = Field(default=8, ge=1, le=1000, description="Calls of the target in flight at once.")
    rps: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Calls begun per second, at most.")
    timeout_s: float = Field(default=60.0, gt=0, allow_inf_nan=False, description="Seconds that one call may take.")

    @model_validator(mode="after")
    def _one_way(self) -> TargetPart:
        named = [name for name in ("python", "http", "command", "plugin", "none") if getattr(self, name) is not None]
        if not named:
            raise ValueError("the target needs `python: module:callable`, or one of http, command, plugin, none")
        if len(named) > 1:
            raise ValueError(f"a target is called in one way, not by {' and '.join(named)}; remove one")
        return self

    @property
    def kind(self) -> Literal["python", "http", "command", "plugin", "none"]:
        """How the target is called."""
        if self.plugin is not None:
            return "plugin"
        return "python" if self.python else "http" if self.http else "command" if self.command else "none"


def checked_path(expression: str | None) -> str | None:
    if expression is not None and (fault := expressions.path_fault(expression)) is not None:
        raise ValueError(f"{fault}; write e.g. hits[*].text")
    return expression
