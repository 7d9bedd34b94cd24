"""`run_evals` and `scorer.run`: data of every kind, isolation of items, thresholds, the synchronous twins."""

from __future__ import annotations

import asyncio
import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import ragscore
from ragscore import (
    ContextPrecision,
    ContextRecall,
    ItemResult,
    PrecisionAtK,
    ScriptedJudge,
    evaluate,
    run_evals,
    scorer,
)
from ragscore.errors import ConfigError, DatasetError, JudgeUnavailable, RagscoreError, UsageError
from ragscore.history import select
from ragscore.items import Judgement, Status
from ragscore.judges import ExtractClaims
from ragscore.judges.tasks import Task
from ragscore.scorers import Judged

ROWS = [
    {"id": "lamp", "input": "Return a lamp?", "reference": "Lamps go back within 30 days."},
    {"id": "tea", "input": "What is tea?", "reference": "Tea is made from leaves."},
]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def target(question: str) -> list[str]:
    return ["Lamps go back within 30 days."] if "lamp" in question else ["It rains."]


def recall(**options: Any) -> ContextRecall:
    return ContextRecall(context_extractor="response", **options)


@dataclasses.dataclass
class Question:
    input: str
    groundTruth: str


def frames() -> list[Any]:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    return [pandas.DataFrame(ROWS), polars.DataFrame(ROWS), polars.DataFrame(ROWS).to_arrow()]


async def test_all_kinds_of_data_give_the_same_scores(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("id,input,reference\n" + "\n".join(",".join(row.values()) for row in ROWS), encoding="utf-8")
    classes = [Question(row["input"], row["reference"]) for row in ROWS]
    named = [{"question": row["input"], "ground_truth": row["reference"]} for row in ROWS]
    items = [ragscore.Item(**row) for row in ROWS]  # type: ignore[arg-type]
    for data in (ROWS, iter(ROWS), classes, named, items, path, str(path), *frames()):
        result = await run_evals(data=data, scorers=[recall()], target=target)
        assert [item.scores["context_recall"].score for item in result.items] == [1.0, 0.0], type(data)
        assert result.scores == {"context_recall": 0.5}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "holds no items"),
        ({"input": "?"}, "is a dict, not rows"),
        ([{"reference": "x"}], "no column is known to hold the question"),
        ([{"input": "?", "reference": {"a": 1}}, {"input": ""}], "data[1]: input: is missing or empty"),
        ([*ROWS, ROWS[0]], "data[2]: id: 'lamp' stands in an earlier row already"),
        (["a question"], "data[0]: is a str, not a mapping"),
        ("missing.jsonl", "missing.jsonl: no such file"),
    ],
)
async def test_wrong_data_is_told_with_its_rows_before_anything_is_asked(data: Any, said: str) -> None:
    asked: list[str] = []

    def noting(question: str) -> list[str]:
        asked.append(question)
        return []

    with pytest.raises(DatasetError) as error:
        await run_evals(data=data, scorers=[recall()], target=noting)
    assert said in str(error.value)
    assert not asked


async def test_rows_of_equal_input_without_ids_stay_apart() -> None:
    rows = [{"input": "same?", "reference": text} for text in ("a lamp", "a chair")]
    result = await run_evals(data=rows, scorers=[recall()], target=lambda question: ["a lamp"])
    assert [item.scores["context_recall"].score for item in result.items] == [1.0, 0.0]
    assert len({item.id for item in result.items}) == 2


async def test_a_scorer_that_raises_or_gives_no_score_concerns_its_own_row_only() -> None:
    values: list[Any] = [float("nan"), 7, "good", None, 0.5, True, -0.1, 1]

    @scorer
    def strange(item: Any, response: Any) -> Any:
        return values[int(item.id)]

    @scorer(name="raising", scale=10)
    async def raising(item: Any, response: Any) -> Any:
        raise LookupError("nothing there")

    rows = [{"id": str(number), "input": f"{number}?", "reference": "It rains."} for number in range(len(values))]
    result = await run_evals(data=rows, scorers=[strange, raising, recall()], target=target)
    assert [item.scores["strange"].score for item in result.items] == [None, None, None, None, 0.5, 1.0, None, 1.0]
    assert {item.scores["raising"].status for item in result.items} == {"scorer_error"}
    assert result.items[0].scores["raising"].error == "LookupError: nothing there"
    assert result.items[1].scores["strange"].reason == "the scorer failed: ValueError: gave 7, outside of 0 to 1"
    assert result.scores["context_recall"] == 1.0
    assert result.coverage["strange"] == 3 / 8
    assert not result.passed
    assert "coverage of raising is 0" in "\n".join(result.faults)


@pytest.mark.parametrize("wrapped", [False, True])
async def test_what_numpy_holds_for_true_is_all_of_the_scale_and_a_third_is_a_third(wrapped: bool) -> None:
    numpy = pytest.importorskip("numpy")
    values = [numpy.True_, numpy.False_, numpy.float64(5), Fraction(10, 3), 10 / 3, 2.5]

    @scorer(scale=10)
    def given(item: Any, response: Any) -> Any:
        value = values[int(item.id)]
        return ragscore.scored(value) if wrapped else value

    rows = [{"id": str(number), "input": f"{number}?"} for number in range(len(values))]
    result = await run_evals(data=rows, scorers=[given])
    third = Fraction(1, 3)
    expected = [1, 0, Fraction(1, 2), third, third, Fraction(1, 4)]
    assert [item.scores["given"].exact for item in result.items] == expected


async def test_an_item_that_fails_is_a_row_and_the_order_is_that_of_the_data() -> None:
    async def slow(question: str) -> list[str]:
        await asyncio.sleep(0.05 if "lamp" in question else 0)
        if "tea" in question:
            raise ValueError("no index")
        return ["Lamps go back within 30 days."]

    done: list[str] = []
    result = await run_evals(
        data=ROWS, scorers=[recall()], target=slow, on_item_complete=lambda item: done.append(item.id)
    )
    assert done == ["tea", "lamp"]
    assert [item.id for item in result.items] == ["lamp", "tea"]
    failed = result.items[1].scores["context_recall"]
    assert (failed.score, failed.status, result.scores) == (None, "target_error", {"context_recall": 1.0})
    assert result.coverage == {"context_recall": 0.5}


async def test_what_on_item_complete_raises_comes_out_after_all_items_are_done() -> None:
    seen: list[ItemResult] = []

    async def told(item: ItemResult) -> None:
        seen.append(item)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        await run_evals(data=ROWS, scorers=[recall()], target=target, on_item_complete=told)
    assert len(seen) == 2


def test_a_task_that_on_item_complete_begins_is_awaited() -> None:
    kept: list[str] = []

    async def keep(result: ItemResult) -> None:
        await asyncio.sleep(0.01)
        kept.append(result.id)

    began = lambda result: asyncio.ensure_future(keep(result))  # noqa: E731
    ragscore.run_evals_sync(data=ROWS, scorers=[recall()], target=target, on_item_complete=began)
    assert sorted(kept) == ["lamp", "tea"]


async def test_concurrency_bounds_the_items_in_flight() -> None:
    flying = most = 0

    async def counting(question: str) -> list[str]:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.01)
        flying -= 1
        return ["x"]

    rows = [{"input": f"{number}?", "reference": "x"} for number in range(20)]
    await run_evals(data=rows, scorers=[recall()], target=counting, concurrency=3)
    assert most == 3


async def test_thresholds_are_exact_and_in_the_scorers_scale() -> None:
    rows = [{"input": f"{n}?", "reference": "It rains." if n else "Snow falls."} for n in range(3)]
    for limit, passed in ((6.66, True), ("20/3", True), (6.67, False)):
        result = await run_evals(
            data=rows, scorers=[recall(scale=10)], target=target, thresholds={"context_recall": limit}
        )
        assert result.passed is passed
        assert result.scores == {"context_recall": 6.6667}
    with pytest.raises(AssertionError, match=r"context_recall: mean 6\.667, at least 6\.67 is asked for"):
        result.assert_passes()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scorers": []}, "there are no scorers"),
        ({"scorers": [recall(), recall()]}, "two scorers are named 'context_recall'"),
        ({"thresholds": {"recall": 1}}, "no scorer is named 'recall' — here are: context_recall"),
        ({"thresholds": {"context_recall": 1.5}}, "outside of its scale"),
        ({"scorers": ["context_recall"]}, "'context_recall' is no scorer"),
        ({"scorers": "context_recall"}, "'context_recall' is no scorer"),
        ({"scorers": 7}, "7 is no scorer"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"target": 7}, "which has none of"),
    ],
)
async def test_wrong_arguments_are_told_before_anything_is_asked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        await run_evals(**{"data": ROWS, "scorers": [recall()], "target": target, **options})
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "has no contexts to judge"),
        ({"context": []}, "`context` is empty"),
        ({"context": ["a", " "]}, "has an entry without text"),
        ({"context_extractor": "answers"}, "context_extractor='answers' is not known"),
        ({"context_extractor": {"path": "hits[*"}}, "not a JMESPath expression"),
        ({"context_extractor": lambda input: []}, "cannot be called with input and output"),
        ({"context": ["a"], "scale": 0}, "scale is 0"),
        ({"context": ["a"], "model": {"modell": "x"}}, "model.modell"),
    ],
)
@pytest.mark.parametrize("kind", [ContextRecall, ContextPrecision])
def test_a_scorer_that_cannot_work_is_an_error_when_it_is_made(kind: Any, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        kind(**arguments)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ContextPrecision(context=["a"], against="expected"), "against is 'expected' — write one of 'auto', "),  # type: ignore[arg-type]
        (lambda: ContextPrecision(context=["a"], duplicates="no"), "duplicates is 'no'"),  # type: ignore[arg-type]
        (lambda: recall(missing_reference="skip"), "missing_reference is 'skip'"),
        (lambda: recall(fused="output"), "fused is 'output'"),
        (lambda: ragscore.AnswerSimilarity(measure="F1"), "measure is 'F1'"),  # type: ignore[arg-type]
        (lambda: ragscore.AnswerRelevancy(unsure=3), "unsure is 3"),
        (lambda: ragscore.ContextRelevance(context=["a"], unused=-5), "unused is -5"),
        (lambda: PrecisionAtK("5", context=["a"]), "k is '5'"),  # type: ignore[arg-type]
        (lambda: PrecisionAtK(0, context=["a"]), "k is 0"),
        (lambda: ragscore.PromptScorer("?", reply={"a": "bool"}, score="a", model="offline"), "reply: a is 'bool'"),  # type: ignore[dict-item]
        (lambda: recall(model=ScriptedJudge), "model is the class ScriptedJudge"),
        (lambda: recall(model=None), "model is a NoneType"),
    ],
)
def test_a_slip_in_a_setting_is_an_error_and_not_another_setting(make: Any, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        make()
    assert said in str(error.value)


async def test_of_static_contexts_and_an_extractor_recall_takes_the_extractor_for_agent_messages_only() -> None:
    judge = ScriptedJudge(default=True)
    both: dict[str, Any] = {"model": judge, "context": ["static"], "context_extractor": lambda input, output: ["found"]}
    messages: dict[str, Any] = {
        "input": [{"role": "user", "content": "why?"}],
        "output": [{"role": "assistant", "content": "so"}],
    }
    text = {"input": "why?", "output": "so"}
    for kind, named, expected in (
        (ContextRecall, text, "static"),
        (ContextRecall, messages, "found"),
        (ContextPrecision, text, "found"),
        (ContextPrecision, messages, "found"),
    ):
        await kind(**both).run(reference="because", **named)
        assert [p.text for p in judge.tasks[-1].passages] == [expected]  # type: ignore[union-attr]


async def test_an_extractor_may_be_async_and_may_take_the_item_and_what_it_raises_is_that_items_status() -> None:
    async def extract(input: str, output: str, item: ragscore.Item) -> list[str]:
        if item.id == "bad":
            raise KeyError("hits")
        return [f"{input} {output} {item.metadata['lang']}"]

    judge = ScriptedJudge(default=True)
    scorer = ContextRecall(model=judge, context_extractor=extract)
    more: dict[str, Any] = {"reference": "r", "metadata": {"lang": "de"}}
    assert (await scorer.run(input="i", output="o", **more)).score == 1.0
    assert judge.tasks[-1].passages[0].text == "i o de"  # type: ignore[union-attr]
    failed = await scorer.run(input="i", output="o", id="bad", **more)
    assert (failed.score, failed.status, failed.error) == (None, "context_error", "KeyError: 'hits'")


async def test_the_reference_is_known_by_its_usual_names_and_given_once() -> None:
    scorer = ContextRecall(context=["It rains."])
    for name in ("reference", "ground_truth", "groundTruth", "expected_output"):
        assert (await scorer.run(input="?", **{name: "It rains."})).score == 1.0
    with pytest.raises(UsageError, match="are the same"):
        await scorer.run(input="?", reference="a", ground_truth="b")
    nothing = await scorer.run(input="?")
    assert (nothing.score, nothing.exact, nothing.status) == (0.0, Fraction(0), "no_reference")


async def test_the_synchronous_twins_refuse_inside_a_running_loop_and_say_what_to_await() -> None:
    for call, instead in (
        (lambda: recall().run_sync(input="?"), "await scorer.run(…)"),
        (lambda: ragscore.run_evals_sync(data=ROWS, scorers=[recall()]), "await run_evals(…)"),
        (lambda: ragscore.evaluate_sync({}), "await evaluate(…)"),
    ):
        with pytest.raises(UsageError, match="running event loop") as error:
            call()
        assert instead in str(error.value)


async def test_a_judge_that_cannot_be_asked_is_raised_and_one_judge_is_shared_by_its_scorers() -> None:
    down = ScriptedJudge(raises=JudgeUnavailable("nobody answers"))
    with pytest.raises(JudgeUnavailable, match="nobody answers"):
        await run_evals(data=ROWS, scorers=[recall(model=down)], target=target)
    judge = ScriptedJudge(default=True)
    both = [recall(model=judge), recall(model=judge, name="again")]
    result = await run_evals(data=ROWS, scorers=both, target=target)
    assert judge.asked["extract_claims"] == 2  # one per reference, though two scorers need them
    assert result.usage.calls == 2 + 4


class _Late(ScriptedJudge):
    """Knows what it depends on when it is ready, as a judge that asks a model does."""

    is_ready = 0

    @property
    def identity(self) -> str:
        if not self.is_ready:
            raise RuntimeError("known after prepare")
        return '{"model": "late"}'

    async def prepare(self) -> None:
        self.is_ready += 1

    async def ask(self, task: Task) -> Judgement:
        assert self.is_ready, "asked before it was ready"
        return await super().ask(task)


async def test_a_judge_that_was_made_elsewhere_is_made_ready_before_it_is_asked(tmp_path: Path) -> None:
    judge = _Late(default=True)
    score = await ContextRecall(model=judge, context=["It rains."]).run(input="Weather?", reference="It rains.")
    assert (score.score, judge.is_ready) == (1.0, 1)
    row = {"input": "Weather?", "reference": "It rains.", "contexts": ["It rains."]}
    evaluation = await evaluate(
        [row], judge=_Late(default=True), scorers=["context_recall"], history=tmp_path / "h", name="n"
    )
    assert evaluation.scores == {"context_recall": 1.0}
    assert select(tmp_path / "h", "SELECT judge_params FROM runs").rows == [('{"model": "late"}',)]


async def test_a_rank_metric_needs_no_judge_and_no_text() -> None:
    row = {"input": "?", "reference_context_ids": ["a", "b"], "context_ids": ["a", "x", "a"]}
    result = await run_evals(data=[row], scorers=[PrecisionAtK(2, context_extractor="item")])
    assert result.scores == {"precision_at_k": 0.5}
    assert result.usage.calls == 0


async def test_a_class_of_ones_own_asks_the_judge_that_is_named_and_functions_make_none_ready() -> None:
    class Asks:
        name = "asks"

        async def judge(self, sample: Any, *, judge: Any, claims: Any) -> str:
            return str(judge.name)

        def score(self, sample: Any, judged: Any) -> bool:
            return bool(judged.value == "mine")

    judge = ScriptedJudge(name="mine")
    assert (await run_evals(data=ROWS, scorers=[Asks()], model=judge)).scores == {"asks": 1.0}
    nobody = {"model": "openai/nobody", "api_key_env": "NO_SUCH_KEY"}
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        await run_evals(data=ROWS, scorers=[Asks()], model=nobody)
    assert (await run_evals(data=ROWS, scorers=[scorer(lambda item, response: 1)], model=nobody)).passed


@pytest.mark.parametrize("whole", [False, True])
async def test_what_a_class_of_ones_own_asks_is_on_its_bill_once(whole: bool) -> None:
    class Asks:
        name = "asks"

        async def judge(self, sample: Any, *, judge: Any, claims: Any) -> Any:
            answers = [await judge.ask(ExtractClaims("?", text)) for text in ("It rains.", "It is cold.")]
            return Judged(Status.OK, judgement=answers[0]) if whole else answers

        def score(self, sample: Any, judged: Any) -> bool:
            return True

    result = await run_evals(data=ROWS, scorers=[Asks()], model=ScriptedJudge(name="mine"))
    assert [item.scores["asks"].usage.calls for item in result.items] == [2, 2]


async def test_claims_without_a_reference_are_enough_for_the_recall_of_an_answer() -> None:
    judge = ScriptedJudge(supported={"It rains.": True})
    recalled = ragscore.AnswerSimilarity(model=judge, measure="recall")
    result = await recalled.run(input="?", claims=["It rains.", "It is cold."], output="It rains.")
    assert (result.status, result.score) == ("ok", 0.5)
    result = await ragscore.AnswerSimilarity(model=judge).run(input="?", claims=["It rains."], output="It rains.")
    assert (result.status, result.score) == ("no_reference", 0.0)


async def test_grades_in_a_frame_or_a_columnar_file_are_those_of_their_own_row(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = [
        {"input": "a?", "relevance": {"a": 2}, "context_ids": ["a"]},
        {"input": "b?", "relevance": {"b": 1}, "context_ids": ["a"]},
    ]
    frame = polars.DataFrame(rows)
    frame.write_parquet(tmp_path / "rows.parquet")
    for data in (rows, frame, frame.to_arrow(), tmp_path / "rows.parquet"):
        result = await run_evals(data=data, scorers=[ragscore.RecallAtK(context_extractor="item")])
        assert [item.scores["recall_at_k"].score for item in result.items] == [1.0, 0.0]


async def test_a_frame_of_results_has_one_row_per_item() -> None:
    pytest.importorskip("pandas")
    frame = (await run_evals(data=ROWS, scorers=[recall()], target=target)).to_dataframe()
    assert list(frame["context_recall"]) == [1.0, 0.0]
    assert list(frame["context_recall_status"]) == ["ok", "ok"]


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in ragscore.__all__:
        assert getattr(ragscore, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ragscore.nothing
    assert issubclass(ConfigError, RagscoreError)
