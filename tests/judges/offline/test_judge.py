"""What the offline judge decides, by kind of fault (numbers, units, dates, negation, scripts, names), and how."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragscore.items import Judgement, Status, Verdict
from ragscore.judges.offline import OfflineJudge
from ragscore.judges.protocol import Judge
from ragscore.judges.tasks import AttributeClaims, Claim, ExtractClaims, Passage, RateContexts, Task

Attribute = Callable[..., Verdict]
Rate = Callable[..., tuple[Verdict, ...]]
Ask = Callable[[Task], Judgement]


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("It cost 1,000 dollars.", "It cost $1000."),
        ("Es kostete 1.000 Euro.", "Es kostete 1000 Euro."),
        ("Es wiegt 1,5 kg.", "Es wiegt 1.5 kg."),
        ("About 20 percent of people agree.", "20% of people agree about it."),
        ("Between 20 and 30 % of people agree.", "20-30% of people agree."),
        ("Revenue was $2.5 million.", "Revenue of $2,500,000."),
        ("The fund holds £3bn of assets.", "The fund holds assets of £3 billion."),
        ("The treaty was signed on June 5th, 2019.", "The treaty was signed on 2019-06-05."),
        ("Three brothers lived there.", "3 brothers lived there."),
        ("There are 12 members in the jury.", "The jury has twelve members."),
        ("The tower is 330 m tall.", "The tower stands 330 metres tall."),
        ("The 19th century brought railways.", "Railways came in the 19. century."),
    ],
)
def test_quantities_written_otherwise_are_found(attribute: Attribute, claim: str, context: str) -> None:
    assert attribute(claim, context).positive


@pytest.mark.parametrize(
    ("claim", "context", "named"),
    [
        ("Edison made the lamp in 1879 in New Jersey.", "Edison made the lamp in 1878 in New Jersey.", "1879"),
        ("Es wiegt 1,5 kg und ist rot.", "Es wiegt 15 kg und ist rot.", "1,5 kg"),
        ("The tower is 330 m tall.", "The tower is 330 feet tall.", "330 m"),
        ("About 20% of people agree.", "About 20 people agree.", "20 %"),
        ("Revenue was $2.5 million in 2020.", "Revenue was $2.5 billion in 2020.", "$2.5 million"),
        ("The treaty was signed on 5 June 2019.", "The treaty was signed on 5 May 2019.", "June"),
        ("The temperature fell to −5 °C.", "The temperature fell to 5 °C.", "-5"),
        ("`__getattr__` is called on failed access.", "`__getattribute__` is called on failed access.", "__getattr__"),
        ("`yield from` delegates to a subgenerator.", "Yield values from it; the subgenerator delegates.", "from"),
        ("The 4G network covers the city.", "The 3G network covers the city.", "4G"),
    ],
)  # fmt: skip
def test_a_number_unit_date_or_name_that_differs_is_missing_and_named(
    attribute: Attribute, claim: str, context: str, named: str
) -> None:
    verdict = attribute(claim, context)
    assert not verdict.positive
    assert verdict.why.startswith(f"not found: {named}")
    assert verdict.evidence == ()


@pytest.mark.parametrize(
    "text",
    [
        "ภาษาไทยเป็นภาษาที่สวยงาม",
        "हिन्दी भारत की एक भाषा है।",
        "اللغة العربية جميلة",
        "השפה העברית עתיקה",
        "東京は日本の首都です。",
        "中国的首都是北京。",
        "대한민국의 수도는 서울이다.",
        "Ελλάδα είναι όμορφη χώρα",
        "Москва — столица России.",
        "ພາສາລາວແມ່ນງາມ",
        "தமிழ் ஒரு மொழி",
        "ქართული ენა ლამაზია",
        "The capital is Paris.",
        "Paris",
    ],
)
def test_identical_text_is_supported_and_relevant_in_any_script(attribute: Attribute, rate: Rate, text: str) -> None:
    assert attribute(text, f"{text}\n\nSomething else.").positive
    assert attribute(text, "Something else.", text).confidence == 1.0
    assert [verdict.positive for verdict in rate("Which one?", text, "Something else.", text)] == [False, True]


def test_another_text_of_the_same_script_is_not_supported(attribute: Attribute) -> None:
    assert not attribute("中国的首都是北京。", "法国的首都是巴黎。").positive
    assert not attribute("ภาษาไทยเป็นภาษาที่สวยงาม", "แมวกินปลาในบ้าน").positive


def test_negation_on_one_side_only_is_a_warning_and_not_a_verdict(attribute: Attribute) -> None:
    verdict = attribute("The drug is effective in children.", "The drug is not effective in children.")
    assert verdict.positive
    assert verdict.warnings == ("the excerpt negates, the claim does not",)
    verdict = attribute("The drug isn’t effective in children.", "The drug is effective in children.")
    assert verdict.warnings == ("the claim negates, the excerpt does not",)
    assert attribute("The drug is not effective.", "The drug is not effective.").warnings == ()


def test_evidence_is_verbatim_and_names_its_passages(attribute: Attribute) -> None:
    texts = ("Ｅdison was born in  1847.\nHe liked tea.", "Later Edison moved to Menlo Park.")
    verdict = attribute("Edison, born in 1847, moved to Menlo Park.", *texts)
    assert verdict.why == "6 of 6 words found in 2 sentences"
    assert {(found.passage, found.quote, found.verified) for found in verdict.evidence} == {
        ("p1", "Ｅdison was born in  1847.", True),
        ("p2", texts[1], True),
    }


def test_why_names_words_that_are_nowhere_and_words_that_are_elsewhere(attribute: Attribute) -> None:
    verdict = attribute(
        "A decorator wraps functions and classes since 1879.", "A parrot wraps. Functions sing. Classes dance."
    )
    assert verdict.why == "not found: decorator, 1879; not found together with the rest: classes (2 of 5 words found)"


@pytest.mark.parametrize("claim", ["...", "—", "🎉", ""])
def test_a_claim_without_words_is_not_supported(attribute: Attribute, claim: str) -> None:
    verdict = attribute(claim, "Anything goes... 🎉 — here.")
    assert (verdict.positive, verdict.confidence) == (False, 0.0)


@pytest.mark.parametrize("claim", ["Yes.", "It is so.", "is not and not in are operators"])
def test_function_words_alone_support_nothing(attribute: Attribute, claim: str) -> None:
    assert not attribute(claim, "Yes, it is. The operators in it are not so few and not here.").positive


def test_without_passages_nothing_is_supported(attribute: Attribute) -> None:
    assert not attribute("The capital is Paris.").positive


def test_keywords_and_dunder_names_of_a_language_reference(attribute: Attribute) -> None:
    reference = (
        'The "with" statement is used to wrap the execution of a block with\nmethods defined by a context manager.\n\n'
        "object.__getattr__(self, name)\n\n   Called when the default attribute access fails with an\n"
        '   "AttributeError".\n\n"async with" may only be used in the body of a coroutine function.'
    )
    for claim in (
        "The `with` statement wraps a block with methods of a context manager.",
        "`__getattr__` is called when default attribute access fails.",
        "`async with` is allowed only in a coroutine's body.",
    ):
        assert attribute(claim, reference).positive, claim
    assert not attribute("The `finally` clause is executed before leaving the `try` statement.", reference).positive


def test_a_short_answer_is_read_with_its_question(rate: Rate) -> None:
    useful, chance = rate(
        "When was the Eiffel Tower finished?",
        "In 1889",
        "The Eiffel Tower was finished by Gustave Eiffel's company in 1889.",
        "A frost ruined the harvest of 1889.",
    )
    assert (useful.positive, chance.positive) == (True, False)
    assert useful.why.startswith('serves "In 1889": ')


def test_relevance_names_the_claim_that_a_passage_serves(rate: Rate) -> None:
    expected = "Decorators wrap a function at definition time. Generators produce their values lazily, one by one."
    first, second, third = rate(
        "What do they do?",
        expected,
        "A generator produces values lazily, one after the other.",
        "Decorators wrap functions at the time of definition.",
        "The cat sat on the mat.",
    )
    assert first.why.startswith('serves "Generators produce their values lazily')
    assert second.why.startswith('serves "Decorators wrap a function')
    assert third.why.startswith('serves no claim; nearest "Decorators')
    assert third.evidence == ()


def test_relevance_without_an_expected_answer_is_abstained(ask: Ask) -> None:
    for expected in (None, " ", "..."):
        judgement = ask(RateContexts("What?", expected, "question", (Passage("p", "text"),)))
        assert judgement.status is Status.ABSTAINED
        assert judgement.verdicts == ()
        assert judgement.error is not None


def test_claims_are_extracted_and_nothing_is_made_of_nothing(ask: Ask) -> None:
    assert ask(ExtractClaims("q", "It floats; it is red. It floats.")).claims == ("It floats", "it is red.")
    assert ask(ExtractClaims("q", " ")).claims == ()


def test_a_judgement_says_who_judged_and_costs_nothing(ask: Ask) -> None:
    judgement = ask(AttributeClaims("q", (Claim("c", "It floats."),), (Passage("p", "It floats."),)))
    assert isinstance(OfflineJudge(), Judge)
    assert (judgement.judge, judgement.prompt_version, judgement.params) == ("offline-lexical-1", "lexical-1", "{}")
    assert (judgement.usage.calls, judgement.usage.cost_usd, judgement.status) == (0, 0.0, Status.OK)


@pytest.mark.parametrize("unit", [".", "a. ", "1 000 ", '"a ', "a;", "\n", "(", "a_", "[1]", "ก", "A.", "...a", "- "])
def test_a_large_hostile_context_does_not_stall(attribute: Attribute, ask: Ask, unit: str) -> None:
    # A rule that is quadratic takes minutes here, not milliseconds; no clock is needed to notice.
    text = unit * (200_000 // len(unit))
    attribute("The capital is Paris.", text)
    ask(ExtractClaims("q", text))
