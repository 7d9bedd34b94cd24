"""The report in a real browser: nothing is requested, everything can be used, whatever the corpus holds."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ragscore.history import History
from ragscore.items import Call, Usage
from ragscore.report.html import contents_of, write_report
from tests.history.example import example
from tests.history.records import precision, recall, record, run_row, store
from tests.report.conftest import make_bench
from tests.report.rows import FACTS, NOISE, item
from tests.workspace import make_workspace

pytestmark = pytest.mark.e2e

CHROMIUM = os.environ.get("RAGSCORE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
#: Chromium asks its maker's hosts for nothing, and runs as root in a container.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE_ID = "a/b?c#d&e=\"f\" <script>alert('id')</script> % ü"
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)> \"'&lt;&#60; \x00\x1b[31m "
    "مرحبا بالعالم \u202egnp.exe\u202c 🙂👩‍🔬 \ufffd \u2028 {{ 7*7 }} ${1+1} `x`"
)


@dataclass
class Watched:
    """A page in the browser and what went wrong in it."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, file: Path, hash: str = "") -> Watched:
        self.page.goto(f"{file.as_uri()}{hash}")
        self.page.wait_for_selector("html[data-ready]")
        return self

    def refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def shown(self) -> list[str]:
        """The ids of the items in the list, in its order."""
        return [str(each) for each in self.page.locator("#rows tr:visible th a").all_inner_texts()]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A page at desktop width; at the end there was no complaint and no request but for the file itself."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = Watched(context.new_page())
    found.page.on("console", lambda said: found.complaints.append(f"{said.type}: {said.text}"))
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.on("dialog", found.refuse)
    found.page.on("request", lambda request: found.requests.append(request.url))
    yield found
    assert found.complaints == []
    assert [url for url in found.requests if not url.startswith(("file:", "data:"))] == []
    context.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of `ragscore demo`."""
    workspace = make_workspace(tmp_path_factory.mktemp("demo"))
    assert workspace.ragscore("demo", "--engine", "local").returncode == 0
    done = workspace.ragscore("report")
    assert done.returncode == 0, done.stderr
    return workspace.folder / "report.html"


def made(folder: Path, rows: Sequence[dict[str, Any]], *versions: str) -> Path:
    """The report of the last of these runs, made in another thread: the browser holds the event loop of this one."""
    bench = make_bench(folder)
    file = folder / "report.html"
    with ThreadPoolExecutor(1) as thread:
        for version in versions:
            thread.submit(bench.run, rows, version=version).result()
    write_report(contents_of(bench.history, bench.history.run("last")), file)
    return file


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run of 1,000 items with up to five contexts of about 1,000 characters each, no two alike."""
    folder = tmp_path_factory.mktemp("thousand")
    noise = random.Random(11)
    words = ["".join(noise.choices("abcdefghijklmnopqrstuvwxyz", k=noise.randint(3, 9))) for _ in range(5_000)]

    def passage() -> str:
        return " ".join(noise.choices(words, k=150)) + "."

    rows = [
        item(number, *(f"{passage()} {fact}" for fact in FACTS[: noise.randint(0, 3)]), passage(), passage())
        for number in range(1_000)
    ]
    pytest.MonkeyPatch().syspath_prepend(folder)
    return made(folder, rows, "v1")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a corpus that wants to be more than text."""
    folder = tmp_path_factory.mktemp("hostile")
    rows: Sequence[dict[str, Any]] = [
        item(
            1, HOSTILE, NOISE, id=HOSTILE_ID, input=HOSTILE, reference=f"{HOSTILE}. {FACTS[0]}", metadata={"k": HOSTILE}
        ),
        item(2, "x" * 50_000 + " " + FACTS[1] + " " + "long " * 10_000, *FACTS, metadata={"k": "other"}),
        item(3, "עברית בשורה הראשונה. " + FACTS[0], input="שאלה בעברית?", metadata={"k": "other"}),
        item(4, "", "\x00", input="\x00\x01", metadata={"k": "other"}),
    ]
    pytest.MonkeyPatch().syspath_prepend(folder)
    return made(folder, rows, "<b>v1</b>", "<b>v2</b>")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a few weeks of use: deploys, gates, a model as judge, its calibration, noise and spend."""
    folder = tmp_path_factory.mktemp("used")
    history = example(folder / "history.duckdb")
    write_report(contents_of(history, history.run("last")), folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def replied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose judge said hostile things, nothing, far too much, or was not asked again."""
    folder = tmp_path_factory.mktemp("replied")
    history = History(folder / "history.duckdb")
    history.start_run(run_row(items=3, judge="openai/m"))
    replies = {0: (HOSTILE, None, "", "word " * 3_000), 1: (), 3: ("x" * 450_000,)}
    for number, said in replies.items():
        calls = tuple(
            Call("attribute_claims", "openai/m", "json_schema", "timeout" if each is None else "ok", reply=each)
            for each in said
        )
        score = replace(recall(number), calls=calls)
        if not calls:
            known = tuple(replace(finding, remembered=True) for finding in score.findings)
            score = replace(score, findings=known, usage=Usage(remembered=len(known)))
        store(history, "run-1", [record(number).having(scores=(score, precision(number)))])
    assert history.finish_run("run-1", status="complete").ok
    write_report(contents_of(history, history.run("last")), folder / "report.html")
    return folder / "report.html"


def faults(page: Any) -> list[str]:
    """All faults that axe finds with everything unfolded."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: {json.dumps([node['target'] for node in each['nodes']][:3])}"
        for each in found
    ]


def test_search_filters_order_and_empty_lists_work(watched: Watched, demo: Path) -> None:
    page = watched.open(demo).page
    everything = watched.shown()
    assert len(everything) == 46
    page.fill("#search", "ASSERT optimization")
    assert "assert-optimised" in watched.shown()
    assert 0 < len(watched.shown()) < 46
    assert page.inner_text("#shown") == f"{len(watched.shown())} of 46"
    page.fill("#search", "nothing has this in it")
    assert watched.shown() == []
    page.click("#clear")
    assert watched.shown() == everything
    page.select_option("#filter", "worse")
    worse = watched.shown()
    assert 17 <= len(worse) < 46
    page.select_option("#filter", "unscored")
    assert len(watched.shown()) == 1
    page.select_option("#filter", "")
    page.select_option("#order", "miss")
    missing = [int(each or 0) for each in page.locator("#rows tr td:last-child").all_inner_texts()]
    assert missing == sorted(missing, reverse=True)
    page.select_option("#order", "low")
    assert watched.shown() == everything


def test_an_item_opens_by_link_keyboard_and_address(watched: Watched, demo: Path) -> None:
    page = watched.open(demo, "#item=mutable-default").page
    assert page.inner_text("#item h1").startswith("Why does my function remember")
    assert not page.is_visible("#main")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.keyboard.press("Escape")
    page.wait_for_selector("#main:visible")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#item=mutable-default"
    page.keyboard.press("/")
    page.keyboard.type("assert-optimised")
    page.locator("#rows tr:visible th a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#item:visible")
    assert page.inner_text("#item .id") == "assert-optimised"
    page.go_back()
    page.wait_for_selector("#main:visible")
    page.fill("#search", "")
    first, second = watched.shown()[:2]
    page.click(f"#rows a[href='#item={first}']")
    page.keyboard.press("j")
    page.wait_for_function(f"document.querySelector('#item .id').textContent === '{second}'")
    page.goto(f"{demo.as_uri()}#item=nosuch")
    page.wait_for_selector("text=No such item")
    page.click("nav a[href='#compare']")
    page.wait_for_selector("#compare:visible")


def test_contexts_fold_and_quotes_stand_at_their_place(watched: Watched, hostile: Path) -> None:
    page = watched.open(hostile, "#item=q2").page
    first = page.locator("details.ctx").first
    assert first.get_attribute("open") is not None
    assert FACTS[1] in first.locator("mark").all_inner_texts()
    first.locator("summary").click()
    assert not first.locator(".text").is_visible()
    assert page.locator("#item mark.yes").count() >= 3


def test_hostile_text_is_shown_as_text(watched: Watched, hostile: Path) -> None:
    page = watched.open(hostile).page
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    page.click("#rows a >> nth=0")
    for link in page.locator("#rows a").all():
        page.evaluate("href => { location.hash = href }", link.get_attribute("href"))
        page.wait_for_selector("#item:visible")
        assert page.locator("#item img, #item script, #item svg[onload]").count() == 0
    page.evaluate("id => { location.hash = '#item=' + encodeURIComponent(id) }", HOSTILE_ID)
    page.wait_for_function("document.querySelector('#item .id').textContent.startsWith('a/b?c')")
    said = page.inner_text("#item h1")
    for part in ("</script><script>alert(1)</script>", "onerror=alert(2)", "␀", "مرحبا", "🙂", "{{ 7*7 }}"):
        assert part in said
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("report", ["demo", "used", "hostile", "thousand", "replied"])
def test_axe_finds_no_fault_and_nothing_is_wider_than_the_screen(
    watched: Watched, report: str, request: pytest.FixtureRequest
) -> None:
    page = watched.open(request.getfixturevalue(report)).page
    first = page.locator("#rows a").nth(1).get_attribute("href")
    # The rows of a long list are alike, and axe takes a quarter of a minute for a thousand.
    page.evaluate("document.querySelectorAll('#rows tr:nth-child(n+50)').forEach(row => row.remove())")
    for view in ("#overview", first):
        page.evaluate("view => { location.hash = view }", view)
        page.wait_for_selector("#item h1" if view == first else "#main:visible")
        for width, scheme in itertools.product((1280, 390), ("light", "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            assert faults(page) == [], f"{view} at {width} px, {scheme}"
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_judges_reply_is_folded_away_and_says_what_it_is(watched: Watched, demo: Path, used: Path) -> None:
    page = watched.open(used, "#item=refund").page
    reply = page.locator("details[data-reply=context_recall]")
    assert reply.get_attribute("open") is None
    reply.locator("summary").click()
    assert "not word for word" in reply.inner_text()
    lines = [json.loads(line) for line in reply.locator("pre").inner_text().splitlines()]
    assert lines[0] == {"claim": 1, "verdict": "missing", "why": "not in any context"}
    assert lines[1] == {"claim": 2, "verdict": "supported", "quotes": ["about"], "contexts": [1], "why": "found"}
    assert "attribute claims: ok (openai/gpt-5-mini, json_schema, 900 + 80 tokens" in reply.inner_text()
    page = watched.open(demo, "#item=mutable-default").page
    reply = page.locator("details[data-reply=context_precision]")
    reply.locator("summary").click()
    assert "this judge writes no reply" in reply.inner_text()
    assert len(reply.locator("pre").inner_text().splitlines()) == page.locator("details.ctx").count()


def test_replies_are_shown_word_for_word_as_text_and_what_is_not_there_is_said(watched: Watched, replied: Path) -> None:
    page = watched.open(replied, "#item=item-0").page
    reply = page.locator("details[data-reply=context_recall]")
    assert not reply.locator("pre").first.is_visible()
    reply.locator("summary").click()
    said = reply.locator("li pre").all_inner_texts()
    assert said[0] == HOSTILE.replace("\x00", "␀").replace("\x1b", "␛")
    assert said[1].split() == ["word"] * 3_000
    assert reply.locator("img, script, svg").count() == 0
    lines = reply.locator("li").all_inner_texts()
    assert "timeout" in lines[1]
    assert "The reply was empty." in lines[2]
    assert "not word for word" not in reply.inner_text()
    page.evaluate("location.hash = '#item=item-1'")
    page.wait_for_function("document.querySelector('#item .id').textContent === 'item-1'")
    reply.locator("summary").click()
    assert "Nothing was asked for this score: 3 of 3 were remembered from an earlier reply." in reply.inner_text()
    page.evaluate("location.hash = '#item=item-3'")
    page.wait_for_function("document.querySelector('#item .id').textContent === 'item-3'")
    reply.locator("summary").click()
    assert "show run-1 --item item-3 --replies" in reply.inner_text()


def test_a_run_of_1000_items_stays_below_2_mb_and_is_quick_to_search(watched: Watched, thousand: Path) -> None:
    assert thousand.stat().st_size < 2_000_000
    page = watched.open(thousand).page
    assert len(watched.shown()) == 1_000
    assert "long texts are cut to" in page.inner_text("#main > header")
    page.fill("#search", "lighthouse 777?")
    assert watched.shown() == ["q777"]
    page.click("#rows tr:visible a")
    page.wait_for_selector("#item:visible")
    assert page.locator("details.ctx").count() >= 2
    assert page.locator("#item mark.yes").count() == 2 * page.locator("#item .claims li.yes").count()


def test_the_switch_of_light_and_dark_and_of_the_charts_work(watched: Watched, demo: Path) -> None:
    page = watched.open(demo).page
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) != before
    page.click("#theme")
    assert page.evaluate(ground) == before
    page.locator("button[data-way=version]").first.click()
    assert page.locator("div[data-way=version]").first.is_visible()
    assert not page.locator("div[data-way=run]").first.is_visible()


def test_what_matters_is_printed_dark_on_light_and_unfolded(watched: Watched, demo: Path) -> None:
    page = watched.open(demo).page
    page.emulate_media(color_scheme="dark")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    folded = page.locator("details:not([open])").count()
    assert len(page.pdf(format="A4")) > 20_000
    assert page.locator("details:not([open])").count() == folded, "folded again afterwards"
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not page.is_visible(".top")
    assert not page.is_visible("#filters")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    printed = page.inner_text("body")
    for said in (
        "python-reference v2",
        "95 % interval",
        "Chance hardly explains this: it is worse",
        "17 worse",
        "1 better",
        "The public names are determined by checking the module's namespace",  # of the last fold of all
        "tuple-mutability",
        "This file is complete",
    ):
        assert said in printed
    assert printed.count("✗ lost") > 30
    page.set_viewport_size({"width": 680, "height": 900})  # about A4 between its margins
    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll, .card')].filter(each => each.checkVisibility())"
        ".filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.outerHTML.slice(0, 200))"
    )
    assert cut == []
    page.goto(f"{demo.as_uri()}#item=mutable-default")
    page.wait_for_selector("#item h1")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not page.is_visible(".bar2")
    printed = page.inner_text("body")
    for said in ("✗ missing", "A function definition defines a user-defined function object", "the judge's reply"):
        assert said in printed
