from __future__ import annotations

from collections.abc import Callable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ragscore.items import Judgement, Verdict
from ragscore.judges.offline.rules import statement
from ragscore.judges.offline.sentences import claims, spans
from ragscore.judges.tasks import AttributeClaims, Claim, Passage, RateContexts, Task

Ask = Callable[[Task], Judgement]

# A small vocabulary, so that texts overlap by chance; with all that is treated in a way of its own.
_WORDS = """
tower river Paris decorators wraps function the is not in of never 1889 1,000 20 % $5 million June 5 metres km __init__
`with` "yield from" 東京 首都です 서울 ภาษา हिन्दी Dr. U.S. e.g. ; . ? 。 - [1] three 3D °C don't
"""
_texts = st.one_of(
    st.lists(st.sampled_from([*_WORDS.split(), "\n", "\n- ", ". The"]), min_size=1, max_size=30).map(" ".join),
    st.text(max_size=80),
)
_passages = st.lists(_texts, min_size=1, max_size=4)
untimed = settings(deadline=None)


def verdicts(ask: Ask, statements: list[str], texts: list[str]) -> tuple[Verdict, ...]:
    task = AttributeClaims(
        "Which tower?",
        tuple(Claim(f"c{at}", text) for at, text in enumerate(statements)),
        tuple(Passage(f"p{at}", text) for at, text in enumerate(texts)),
    )
    return ask(task).verdicts


@untimed
@given(_passages, st.data())
def test_a_claim_that_is_a_sentence_of_a_passage_is_supported(ask: Ask, texts: list[str], data: st.DataObject) -> None:
    found = [text[start:end] for text in texts for start, end in spans(text, longest=None)]
    found = [sentence for sentence in found if statement(sentence).words]
    assume(found)
    (verdict,) = verdicts(ask, [data.draw(st.sampled_from(found))], texts)
    assert verdict.positive
    assert verdict.confidence == 1.0


@untimed
@given(_texts)
def test_the_claims_of_a_text_are_supported_by_the_text_itself(ask: Ask, text: str) -> None:
    whole = [text[start:end] for start, end in spans(text, longest=None)]
    stated = [claim for claim in claims(text) if claim in whole and statement(claim).words]
    assert all(verdict.positive for verdict in verdicts(ask, stated, [text]))


@untimed
@given(st.lists(_texts, max_size=3), _passages)
def test_the_order_of_passages_has_no_influence(ask: Ask, stated: list[str], texts: list[str]) -> None:
    def told(found: tuple[Verdict, ...]) -> list[object]:
        return [(v.id, v.positive, v.why, v.confidence, v.warnings, [e.quote for e in v.evidence]) for v in found]

    assert told(verdicts(ask, stated, texts)) == told(verdicts(ask, stated, texts[::-1]))


@untimed
@given(_texts, _passages, _texts)
def test_a_further_passage_never_takes_support_away(ask: Ask, claim: str, texts: list[str], further: str) -> None:
    (before,) = verdicts(ask, [claim], texts)
    (after,) = verdicts(ask, [claim], [*texts, further])
    assert after.positive >= before.positive
    assert (after.confidence or 0) >= (before.confidence or 0)


@untimed
@given(st.lists(_texts, max_size=4), _passages)
def test_each_claim_is_judged_by_itself(ask: Ask, stated: list[str], texts: list[str]) -> None:
    together = verdicts(ask, stated, texts)
    assert [verdict.id for verdict in together] == [f"c{at}" for at in range(len(stated))]
    for at, claim in enumerate(stated):
        (alone,) = verdicts(ask, [claim], texts)
        assert (alone.positive, alone.why, alone.evidence) == (
            together[at].positive,
            together[at].why,
            together[at].evidence,
        )


@untimed
@given(_texts, _texts, _passages)
def test_each_passage_is_rated_by_itself(ask: Ask, question: str, expected: str, texts: list[str]) -> None:
    passages = tuple(Passage(f"p{at}", text) for at, text in enumerate(texts))
    together = ask(RateContexts(question, expected, "reference", passages)).verdicts
    assert [verdict.id for verdict in together] in ([], [passage.id for passage in passages])
    for verdict, passage in zip(together, passages, strict=False):
        assert ask(RateContexts(question, expected, "reference", (passage,))).verdicts == (verdict,)


@untimed
@given(_texts, _passages)
def test_evidence_is_verbatim_and_only_for_support(ask: Ask, claim: str, texts: list[str]) -> None:
    (verdict,) = verdicts(ask, [claim], texts)
    assert bool(verdict.evidence) == verdict.positive
    assert 0 <= (verdict.confidence or 0) <= 1
    assert verdict.why
    for found in verdict.evidence:
        assert found.verified
        assert found.quote in texts[int(found.passage[1:])]
