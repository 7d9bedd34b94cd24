"""Rank metrics against pytrec_eval and their own definitions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragscore.items import Context, ContextSet, Item, Status
from ragscore.judges import AskedClaims
from ragscore.judges.scripted import ScriptedJudge
from ragscore.scorers import RankMetric, Sample
from ragscore.scorers.rank_metrics import Metric, measured

IDS = "abcdefghij"
METRICS: list[Metric] = ["precision_at_k", "recall_at_k", "hit_rate", "mrr", "average_precision", "ndcg_at_k"]
#: How pytrec_eval calls ours: with a cut, and without one.
THEIRS = {
    "precision_at_k": ("P_{k}", None),
    "recall_at_k": ("recall_{k}", None),
    "hit_rate": ("success_{k}", None),
    "mrr": (None, "recip_rank"),
    "average_precision": ("map_cut_{k}", "map"),
    "ndcg_at_k": ("ndcg_cut_{k}", "ndcg"),
}
retrieved = st.lists(st.sampled_from(IDS), min_size=1, max_size=8, unique=True)
judged = st.dictionaries(st.sampled_from(IDS), st.integers(0, 3), min_size=1).filter(lambda each: any(each.values()))


def sample(ids: list[str], grades: dict[str, int]) -> Sample:
    contexts = tuple(Context(f"text {number}", id=each) for number, each in enumerate(ids))
    return Sample(Item("q", "?", metadata={"relevance": grades}), None, ContextSet("response", contexts))


async def value(metric: Metric, ids: list[str], grades: dict[str, int], k: int | None = None) -> Fraction:
    scorer, made, judge = RankMetric(metric, k=k), sample(ids, grades), ScriptedJudge()
    score = scorer.score(made, await scorer.judge(made, judge=judge, claims=AskedClaims(judge)))
    assert score.exact is not None
    assert 0 <= score.exact <= 1
    assert not judge.tasks
    return score.exact


@given(retrieved, judged, st.sampled_from([1, 2, 3, 5, 10]))
async def test_values_are_those_of_pytrec_eval(ids: list[str], grades: dict[str, int], k: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    asked = {name.format(k=k) for pair in THEIRS.values() for name in pair if name}
    families = {"P", "recall", "success", "recip_rank", "map_cut", "map", "ndcg_cut", "ndcg"}
    measures = {
        f"{each}.{k}" if each in {"P", "recall", "success", "map_cut", "ndcg_cut"} else each for each in families
    }
    run = {"q": {each: float(len(ids) - rank) for rank, each in enumerate(ids)}}
    theirs = pytrec_eval.RelevanceEvaluator({"q": grades}, measures).evaluate(run)["q"]
    assert asked <= set(theirs)
    for metric, (cut, whole) in THEIRS.items():
        if cut:
            ours = await value(metric, ids, grades, k)  # type: ignore[arg-type]
            assert float(ours) == pytest.approx(theirs[cut.format(k=k)], abs=1e-9), metric
        if whole:
            assert float(await value(metric, ids, grades)) == pytest.approx(theirs[whole], abs=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", METRICS)
@given(retrieved, judged, st.data())
async def test_a_repeated_id_never_lifts_a_value(
    metric: Metric, ids: list[str], grades: dict[str, int], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(ids) - 1))
    again = data.draw(st.integers(first + 1, len(ids)))
    k = data.draw(st.sampled_from([None, 1, 3, 5]))
    repeated = [*ids[:again], ids[first], *ids[again:]]
    assert await value(metric, repeated, grades, k) <= await value(metric, ids, grades, k)


@pytest.mark.parametrize("metric", METRICS)
async def test_the_ideal_order_is_exactly_1(metric: Metric) -> None:
    assert await value(metric, ["a", "b", "c"], {"a": 3, "b": 2, "c": 1}, 3) == 1
    assert measured(metric, [0, 0], [1]) == 0


async def test_an_item_without_reference_ids_has_its_own_status_and_contexts_without_ids_are_an_error(
    sample: Callable[..., Sample],
) -> None:
    scorer, judge = RankMetric("mrr"), ScriptedJudge()
    claims = AskedClaims(judge)

    async def status(made: Sample) -> Any:
        return scorer.score(made, await scorer.judge(made, judge=judge, claims=claims)).status

    assert await status(sample(["a"])) is Status.NO_REFERENCE
    assert await status(sample([], reference_context_ids=("x",))) is Status.NO_CONTEXT
    assert await status(sample(["a"], reference_context_ids=("x",), answerable=False)) is Status.UNANSWERABLE
    with pytest.raises(ValueError, match="no retrieved context has an id"):
        await status(sample(["a"], reference_context_ids=("x",)))


async def test_the_reason_names_the_ranks_found_and_the_ids_that_are_missing() -> None:
    scorer, made, judge = RankMetric("recall_at_k", k=2), sample(["x", "a", "b"], {"a": 1, "b": 2}), ScriptedJudge()
    score = scorer.score(made, await scorer.judge(made, judge=judge, claims=AskedClaims(judge)))
    assert score.reason.splitlines() == [
        "recall_at_k: 1/2 relevant ids in the first 2",
        "#2 ✓ a: grade 1",
        "✗ b",
    ]
