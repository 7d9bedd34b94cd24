"""Targets behind HTTP, against a real server: what is sent, what is read, what fails, and what stays secret."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from ragscore.assembly import assemble
from ragscore.engine import evaluate_locally
from ragscore.errors import ConfigError, SuiteError
from ragscore.history import History
from ragscore.items import Context, Item, Response
from ragscore.runs import begin
from ragscore.suite_file import check_suite, read_suite
from ragscore.targets import Target, TargetFailure, close, described, make_target
from tests.targets.conftest import Answer, Request, Server, serving
from tests.workspace import TOPICS, Workspace

ITEM = Item("q1", 'a "quoted" <question> & more, für 007', metadata={"lang": "de", "k": 3, "deep": {"list": [1, None]}})
Ask = Callable[..., Any]


def target_of(part: dict[str, Any], folder: Path = Path(), *, environment: dict[str, str] | None = None) -> Target:
    """The target of a suite whose `http:` is `part`."""
    written = {"http": {"retry_delay_s": 0, **part}, "timeout_s": 5}
    document = {"name": "n", "dataset": "d", "target": written}
    file = check_suite(document, base_dir=folder, environment=environment or {})
    return make_target(file.suite.target, written=written, base_dir=folder, where=partial(file.where, "target"))


@pytest.fixture
async def ask() -> AsyncIterator[Ask]:
    opened: list[Target] = []

    async def asked(part: dict[str, Any], item: Item = ITEM, **more: Any) -> Response:
        target = target_of(part, **more)
        opened.append(target)
        return await target.invoke(item)

    yield asked
    for target in opened:
        await close(target)


async def failure(ask: Ask, part: dict[str, Any], **more: Any) -> TargetFailure:
    with pytest.raises(TargetFailure) as caught:
        await ask(part, **more)
    assert "\n" not in str(caught.value)
    return caught.value


async def test_json_is_sent_as_written_with_the_question_unescaped_and_types_kept(server: Server, ask: Ask) -> None:
    server.answer({"answer": "said", "contexts": [{"text": "a", "id": 7, "score": 0.5}]})
    body = {
        "q": "{{ input }}",
        "k": "{{ metadata.k }}",
        "n": 5,
        "note": "{{ id }}: {{ metadata.lang | upper }}",
        "deep": "{{ metadata.deep }}",
        "chat": "{{ messages }}",
        "list": [True, None, "{{ metadata.k }}0"],
    }
    response = await ask({"url": f"{server.url}/ask", "json": body})
    (request,) = server.requests
    assert (request.method, request.path, request.headers["content-type"]) == ("POST", "/ask", "application/json")
    assert request.json == {
        "q": ITEM.input,
        "k": 3,
        "n": 5,
        "note": "q1: DE",
        "deep": {"list": [1, None]},
        "chat": [{"role": "user", "content": ITEM.input}],
        "list": [True, None, "30"],
    }
    assert (response.output, response.contexts) == ("said", (Context("a", id="7", score=0.5),))
    assert response.raw["answer"] == "said"
    assert response.latency_ms > 0


@pytest.mark.parametrize("text", ["007", "1e5", "null", "true", "{{ 7 }}", "NaN", "[1]"])
async def test_a_question_that_looks_like_a_number_or_a_template_is_sent_as_that_text(
    server: Server, ask: Ask, text: str
) -> None:
    server.answer("x")
    await ask({"url": server.url, "json": {"q": "{{ input }}", "both": "{{ input }} "}}, Item("q", text))
    assert server.requests[0].json == {"q": text, "both": f"{text} "}


async def test_query_form_headers_and_address_are_templates(server: Server, ask: Ask) -> None:
    server.answer(["a", "b"])
    part = {
        "url": f"{server.url}/{{{{ metadata.lang }}}}/ask?fixed=1",
        "method": "PUT",
        "headers": {"X-Item": "{{ id }}"},
        "query": {"q": "{{ input }}", "many": ["{{ id }}", 2], "yes": True, "left_out": None},
        "form": {"q": "{{ input }}"},
    }
    response = await ask(part)
    (request,) = server.requests
    assert (request.method, request.path.partition("?")[0]) == ("PUT", "/de/ask")
    assert request.query == {"fixed": ["1"], "q": [ITEM.input], "many": ["q1", "2"], "yes": ["true"]}
    assert request.form == {"q": [ITEM.input]}
    assert request.headers["x-item"] == "q1"
    assert response.contexts == (Context("a"), Context("b"))


@pytest.mark.parametrize("template", ["{{ input }}", "{{ input | urlencode }}", "{{ input[:4] }}{{ input[4:] }}"])
async def test_a_question_within_the_address_arrives_whole(server: Server, ask: Ask, template: str) -> None:
    server.answer(["a"])
    question = "R&D in C#: is 50% + 1/2 = 1? für 007"
    await ask({"url": f"{server.url}/ask?q={template}&k=3"}, Item("q", question))
    await ask({"url": f"{server.url}/ask?q={template}", "query": {"k": "3"}}, Item("q", question))
    assert [request.query for request in server.requests] == [{"q": [question], "k": ["3"]}] * 2


async def test_a_web_page_and_a_stream_of_events_are_failures_though_the_status_is_good(
    server: Server, ask: Ask
) -> None:
    part = {"url": server.url, "query": {"q": "{{ input }}"}}
    server.answer("\n<!DOCTYPE html>\n<title>Log in</title>", content_type="text/html; charset=utf-8")
    assert str(await failure(ask, part)) == "answered with a web page: <!DOCTYPE html> <title>Log in</title>"
    server.answers.clear()
    server.answer('data: {"answer": "said"}\n\n', content_type="text/event-stream")
    assert str(await failure(ask, part)).startswith("answered with a stream of events; ask it for a whole answer")
    server.answers.clear()
    server.answer("<b>plain</b> text", content_type="text/html")  # what Flask says of any text
    assert (await ask(part)).output == "<b>plain</b> text"


async def test_without_a_body_it_is_a_get(server: Server, ask: Ask) -> None:
    server.answer("plain text")
    response = await ask({"url": server.url, "query": {"q": "{{ input }}"}})
    assert (server.requests[0].method, response.output, response.contexts) == ("GET", "plain text", None)


async def test_the_answer_is_found_by_its_path(server: Server, ask: Ask) -> None:
    server.answer({"data": {"said": "yes", "chat": [{"role": "assistant", "content": "from messages"}]}, "n": 1})
    part = {"url": server.url, "query": {"q": "{{ input }}"}}
    assert (await ask({**part, "response": {"output": "data.said"}})).output == "yes"
    assert (await ask({**part, "response": {"output": "data.chat"}})).output == "from messages"
    said = str(await failure(ask, {**part, "response": {"output": "data.sad"}}))
    assert said == "there is nothing at 'data.sad'; the response has the keys data, n"
    assert "a int, not text at 'n'" in str(await failure(ask, {**part, "response": {"output": "n"}}))


def test_contexts_by_the_path_of_the_response_are_judged(workspace: Workspace, server: Server) -> None:
    def found(request: Request) -> Answer:
        topic = next(text for name, text in TOPICS.items() if name in request.json["q"])
        return 200, {"data": {"hits": [{"body": topic, "id": "t", "score": 1}, {"body": "noise", "id": "n"}]}}, {}

    server.answers.append(found)
    http = {"url": server.url, "json": {"q": "{{ input }}"}, "response": "data.hits"}
    workspace.write_suite(target={"version": "v1", "http": http, "top_k": 1})
    run = begin(assemble(read_suite(workspace.suite)), History(workspace.history))
    asyncio.run(evaluate_locally(run))
    assert run.history.finish_run(run.run_id, status="complete").ok
    assert workspace.sql("select distinct status, score from scores") == [("ok", 1.0)]
    assert workspace.sql("select distinct context_set, context_id, rank from contexts") == [("path:data.hits", "t", 1)]
    assert workspace.sql("select count(*) from items where latency_ms > 0") == [(4,)]


async def test_expected_statuses(server: Server, ask: Ask) -> None:
    server.answer({"answer": "said"}, status=404)
    part = {"url": server.url, "query": {"q": "{{ input }}"}}
    assert (await ask({**part, "status": [200, 404]})).output == "said"
    assert (await ask({**part, "status": 404})).output == "said"
    fault = await failure(ask, part)
    assert str(fault) == f'{server.url} answered 404 Not Found: {{"answer": "said"}}'
    assert not fault.passing


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504])
async def test_a_fault_that_may_pass_is_tried_again(server: Server, ask: Ask, status: int) -> None:
    server.answer("busy", status=status)
    server.answer("busy", status=status, retry_after="0")
    server.answer({"answer": "at last"})
    response = await ask({"url": server.url, "json": {"q": "{{ input }}"}, "retries": 2})
    assert (response.output, len(server.requests)) == ("at last", 3)


async def test_when_the_attempts_are_used_up_the_fault_is_a_passing_one(server: Server, ask: Ask) -> None:
    server.answer("busy", status=503)
    fault = await failure(ask, {"url": server.url, "json": {"q": "{{ input }}"}, "retries": 1})
    assert (str(fault), fault.passing) == (f"{server.url} answered 503 Service Unavailable: busy", True)
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
async def test_a_fault_that_will_not_pass_is_not_tried_again(server: Server, ask: Ask, status: int) -> None:
    server.answer("no", status=status)
    assert not (await failure(ask, {"url": server.url, "json": {"q": "{{ input }}"}})).passing
    assert len(server.requests) == 1


async def test_a_redirect_is_not_followed_since_keys_would_go_along(server: Server, ask: Ask) -> None:
    server.answer("", status=302, location="http://elsewhere.test/ask?token=1")
    said = str(await failure(ask, {"url": server.url, "json": {"q": "{{ input }}"}}))
    assert said.endswith("302 Found, see http://elsewhere.test/ask; write the address it points to")


async def test_nobody_there_and_a_late_answer_may_pass(server: Server, ask: Ask) -> None:
    part = {"json": {"q": "{{ input }}"}, "retries": 0}
    fault = await failure(ask, {"url": "http://127.0.0.1:9/ask", **part})
    assert fault.passing
    assert str(fault).startswith("http://127.0.0.1:9/ask: ConnectError")

    release = threading.Event()

    def late(request: Request) -> Answer:
        release.wait(10)
        return 200, "late", {}

    server.answers.append(late)
    document = {"name": "n", "dataset": "d", "target": {"http": {"url": server.url, **part}, "timeout_s": 0.05}}
    file = check_suite(document, environment={})
    target = make_target(file.suite.target, written={}, base_dir=Path(), where=partial(file.where, "target"))
    with pytest.raises(TargetFailure, match=f"no answer from {server.url} within 0.05 s") as caught:
        await target.invoke(ITEM)
    release.set()
    await close(target)
    assert caught.value.passing


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{broken", "answered with what is no JSON: "),
        ('{"foo": 1}', "returned dict with the keys foo; expected text"),
        ("3", "returned int; expected text"),
    ],
)
async def test_a_reply_that_cannot_be_read_says_what_came(server: Server, ask: Ask, body: str, said: str) -> None:
    server.answer(body, content_type="application/json")
    assert str(await failure(ask, {"url": server.url, "json": {"q": "{{ input }}"}})).startswith(said)


async def test_a_name_that_an_item_lacks_is_a_failure_of_that_item(server: Server, ask: Ask) -> None:
    said = str(await failure(ask, {"url": server.url, "json": {"q": "{{ input }}", "x": "{{ metadata.nope }}"}}))
    assert said.startswith("the request cannot be made: the template '{{ metadata.nope }}' cannot be filled: ")
    assert "no attribute 'nope'" in said


async def test_messages_of_a_chat_completion_are_read(server: Server, ask: Ask) -> None:
    server.answer({"choices": [{"message": {"role": "assistant", "content": "said"}}]})
    response = await ask({"url": server.url, "json": {"messages": "{{ messages }}"}})
    assert (response.output, response.contexts) == ("said", None)


SECRET = "s3cr3t/token+123"


@pytest.mark.parametrize(
    "part",
    [
        {"headers": {"Authorization": "Bearer ${TOKEN}"}, "json": {"q": "{{ input }}"}},
        {"json": {"q": "{{ input }}", "key": "${TOKEN}"}},
        {"query": {"q": "{{ input }}", "key": "${TOKEN}"}},
        {"form": {"q": "{{ input }}", "key": "${TOKEN}"}},
        {"headers": {"X-Api-Key": SECRET}, "json": {"q": "{{ input }}"}},
        {"headers": {"Authorization": f"Bearer {SECRET}"}, "json": {"q": "{{ input }}"}},
    ],
    ids=["header", "json", "query", "form", "written out", "bearer written out"],
)
async def test_a_secret_that_the_server_repeats_is_not_in_the_message(
    server: Server, ask: Ask, part: dict[str, Any]
) -> None:
    def echo(request: Request) -> Answer:
        seen = f"{request.headers.get('authorization')} {request.headers.get('x-api-key')} {request.body}"
        return 401, f"bad key {SECRET} in {seen} {request.path}", {}

    server.answers.append(echo)
    fault = await failure(ask, {"url": f"{server.url}/ask", **part}, environment={"TOKEN": SECRET})
    assert "401 Unauthorized: bad key " in str(fault)
    assert SECRET not in str(fault)
    (request,) = server.requests
    assert SECRET in f"{unquote(request.path)} {unquote(request.body)} {request.headers}"


async def test_a_secret_of_a_header_that_the_server_repeats_is_not_kept(server: Server, ask: Ask) -> None:
    server.answers.append(lambda request: (200, {"answer": request.headers["authorization"]}, {}))
    part = {"url": server.url, "headers": {"Authorization": "Bearer ${TOKEN}"}, "json": {"q": "{{ input }}"}}
    response = await ask(part, environment={"TOKEN": SECRET})
    assert (response.output, response.raw) == ("***", {"answer": "***"})


async def test_user_and_password_of_an_address_are_sent_and_not_shown(server: Server, ask: Ask) -> None:
    server.answer("no", status=403)
    url = server.url.replace("http://", "http://me:hunter22@")
    said = str(await failure(ask, {"url": f"{url}/ask?key=abcdef", "json": {"q": "{{ input }}"}}))
    assert said == f"{server.url}/ask answered 403 Forbidden: no"
    assert server.requests[0].headers["authorization"].startswith("Basic ")


def test_the_history_names_the_target_as_it_is_written(workspace: Workspace, server: Server) -> None:
    server.answer({"contexts": []})
    http = {"url": "${BASE}/ask/${TOKEN}", "json": {"q": "{{ input }}"}, "headers": {"Authorization": "${TOKEN}"}}
    workspace.write_suite(target={"version": "v1", "http": http})
    done = workspace.ragscore("run", "suite.yaml", "--engine", "local", BASE=server.url, TOKEN=SECRET)
    assert workspace.sql("select target from runs") == [("http:POST ${BASE}/ask/${TOKEN}",)]
    assert SECRET not in done.stdout + done.stderr
    assert SECRET.encode() not in workspace.history.read_bytes()
    assert server.requests[0].path == f"/ask/{SECRET}"


def test_a_target_is_described_without_what_its_variables_hold() -> None:
    written = {"http": {"url": "${URL}", "form": {"q": "{{ input }}"}}}
    document = {"name": "n", "dataset": "d", "target": written}
    file = check_suite(document, environment={"URL": "http://h/?key=1"})
    assert described(file.suite.target, written) == "http:POST ${URL}"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"url": "http://h", "json": {"q": "x"}}, "the question is not in the request; write {{ input }}"),
        ({"url": "http://h", "json": {"q": "{{ input"}}, "'{{ input' is not a template: unexpected end"),
        ({"url": "http://h", "json": {"q": "{{ question }}"}}, "a template names 'question'; known are input, id"),
        ({"url": "http://h", "json": {"q": "{{ reference }}"}}, "a template names 'reference'"),
        ({"url": "ftp://h", "json": {"q": "{{ input }}"}}, "target.http.url: does not begin with http:// or https://"),
        ({"url": "http://h", "json": {"q": "{{ input }}"}, "form": {"a": "b"}}, "sends `json` or `form`, not both"),
        ({"url": "http://h", "json": "{{ input }}", "response": "a[*"}, "'a[*' is not a JMESPath expression"),
        ({"url": "http://h", "json": "{{ input }}", "response": {"output": "a..b"}}, "is not a JMESPath expression"),
        ({"url": "http://h", "jsn": "{{ input }}"}, "unknown key `jsn`"),
    ],
)
def test_what_is_wrong_with_a_request_is_found_when_the_suite_is_read(part: dict[str, Any], said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        check_suite({"name": "n", "dataset": "d", "target": {"http": part}}, environment={})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"ca": "nowhere.pem"}, "suite: target.http.ca: no file nowhere.pem"),
        ({"ca": "empty.pem"}, "suite: target.http.ca: empty.pem holds no certificates"),
        ({"url": "http://"}, "suite: target.http.url: names no host"),
        ({"url": "http://h:port"}, "suite: target.http.url: is no address"),
        ({"proxy": "me:pass@host"}, "suite: target.http.proxy: is no address of a proxy"),
        ({"headers": {"Authorization": "Bearer abcdef\n"}}, "target.http.headers.Authorization: holds a line break"),
    ],
)
def test_what_would_fail_for_every_item_is_found_before_the_first(
    tmp_path: Path, part: dict[str, Any], said: str
) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(ConfigError) as caught:
        target_of({"url": "http://h", "json": "{{ input }}", **part}, tmp_path)
    assert said in str(caught.value)
    assert "abcdef" not in str(caught.value)
    assert "pass@" not in str(caught.value)


def test_templates_are_sandboxed(server: Server) -> None:
    part = {"url": server.url, "json": "{{ input.__class__.__mro__ }}"}
    with pytest.raises(TargetFailure, match="the request cannot be made"):
        asyncio.run(target_of(part).invoke(ITEM))
    assert not server.requests


async def test_through_a_proxy(server: Server, ask: Ask) -> None:
    server.answer({"answer": "by proxy"})
    part = {"url": "http://behind.test/ask", "json": "{{ input }}", "proxy": server.url}
    assert (await ask(part)).output == "by proxy"
    assert server.requests[0].path == "http://behind.test/ask"


async def test_a_certificate_is_trusted_when_its_authority_is_named_or_nothing_is_verified(
    tmp_path: Path, ask: Ask
) -> None:
    certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    serve = serving(context)
    server = next(serve)
    server.answer({"answer": "said"})
    part = {"url": server.url, "json": "{{ input }}", "retries": 0}
    assert (await ask({**part, "ca": "ca.pem"}, folder=tmp_path)).output == "said"
    assert (await ask({**part, "verify": False})).output == "said"
    fault = await failure(ask, part)
    assert "CERTIFICATE_VERIFY_FAILED" in str(fault)
    assert not fault.passing
    serve.close()


def self_signed(folder: Path) -> Path:
    """Key and certificate of 127.0.0.1 in one file, beside ca.pem with the certificate alone."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    (folder / "ca.pem").write_bytes(certificate)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "both.pem").write_bytes(private + certificate)
    return folder / "both.pem"


def test_the_keys_that_are_known_are_named_as_they_are_written() -> None:
    with pytest.raises(SuiteError, match="known here: ca, connect_timeout_s, form, headers, json, method"):
        check_suite({"name": "n", "dataset": "d", "target": {"http": {"url": "http://h", "zzzz": 1}}}, environment={})
