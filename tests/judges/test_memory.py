"""Nothing is asked twice, and what comes from memory is what was said, whatever ids and order it is asked in."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragscore.errors import JudgeUnavailable
from ragscore.items import Call, Evidence, Judgement, Status, Usage, Verdict
from ragscore.judges.judgement_store import JudgementStore
from ragscore.judges.memory import RememberingJudge
from ragscore.judges.protocol import PreparedJudge
from ragscore.judges.tasks import AttributeClaims, Claim, ExtractClaims, Passage, RateContexts, Task


@dataclass
class CountingJudge:
    """Says yes where texts share a word, counts what it is asked, and can be told to fail."""

    name: str = "counting"
    identity: str = '{"model":"m"}'
    version: str = "1"
    status: Status = Status.OK
    leaves_out: frozenset[str] = frozenset()
    asked: list[Task] = field(default_factory=list)
    gate: asyncio.Event | None = None
    raises: Exception | None = None

    def prompt_version(self, task: Task) -> str:
        return f"{task.name}-{self.version}"

    async def prepare(self) -> None:
        self.identity = '{"model":"m","prepared":true}'

    async def ask(self, task: Task) -> Judgement:
        self.asked.append(task)
        if self.gate is not None:
            await self.gate.wait()
        if self.raises is not None:
            raise self.raises
        verdicts: list[Verdict] = []
        claims: tuple[str, ...] = ()
        match task:
            case ExtractClaims():
                claims = tuple(task.reference.split(". "))
            case AttributeClaims():
                for claim in task.claims:
                    found = [p for p in task.passages if set(claim.text.split()) & set(p.text.split())]
                    verdicts.append(verdict(claim.id, found))
            case RateContexts():
                for p in task.passages:
                    verdicts.append(verdict(p.id, [p] if set(p.text.split()) & set(task.question.split()) else []))
        usage = Usage(calls=1, prompt_tokens=100, completion_tokens=10, cost_usd=None)
        return Judgement(
            judge=self.name,
            status=self.status,
            claims=claims,
            verdicts=tuple(v for v in verdicts if v.id not in self.leaves_out),
            usage=usage,
            calls=(Call(task.name, "m", "text", "ok"),),
            prompt_version=self.prompt_version(task),
            params='{"temperature":0}',
            error=None if self.status is Status.OK else "it failed",
            raw=None if self.status is Status.OK else "raw reply",
        )


def verdict(id: str, found: list[Passage]) -> Verdict:
    evidence = tuple(Evidence(p.id, p.text[:5], verified=True) for p in found)
    warnings = () if found else ("nothing found",)
    return Verdict(id, bool(found), why=f"about {id}", evidence=evidence, warnings=warnings, confidence=0.25)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JudgementStore]:
    with JudgementStore(tmp_path / "j.sqlite") as opened:
        yield opened


P = tuple(Passage(f"p{n}", text) for n, text in enumerate(["red fox", "blue hen", "a fox", "green", "owl"], 1))
EXTRACT = ExtractClaims("which fox", "red fox. blue hen")
ATTRIBUTE = AttributeClaims("which fox", (Claim("c1", "red"), Claim("c2", "hen"), Claim("c3", "elk")), P)
RATE = RateContexts("which fox", "the red one", "reference", P)
TASKS: list[Task] = [EXTRACT, ATTRIBUTE, RATE]


def as_remembered(judgement: Judgement) -> Judgement:
    decisions = len(judgement.verdicts) or 1
    verdicts = tuple(replace(v, remembered=True) for v in judgement.verdicts)
    return replace(judgement, verdicts=verdicts, usage=Usage(remembered=decisions), calls=())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_a_second_time_it_costs_nothing_and_says_the_same(task: Task, store: JudgementStore) -> None:
    inner = CountingJudge()
    judge = RememberingJudge(inner, store)
    first = await judge.ask(task)
    assert first == await CountingJudge().ask(task)
    assert await judge.ask(task) == as_remembered(first)
    other = CountingJudge()
    assert await RememberingJudge(other, store).ask(task) == as_remembered(first)
    assert len(inner.asked) == 1
    assert other.asked == []


async def test_it_is_a_prepared_judge_and_follows_what_preparing_learns(store: JudgementStore) -> None:
    inner = CountingJudge()
    judge = RememberingJudge(inner, store)
    prepared: PreparedJudge = judge
    assert prepared is judge
    before = judge.keys(RATE)
    await judge.prepare()
    assert judge.name == "counting"
    assert judge.identity == inner.identity == '{"model":"m","prepared":true}'
    assert not set(before) & set(judge.keys(RATE))


async def test_relevance_asks_only_for_passages_that_are_new(store: JudgementStore) -> None:
    inner = CountingJudge()
    judge = RememberingJudge(inner, store)
    await judge.ask(RATE)
    # One of five was swapped, so that all ids moved.
    changed = tuple(Passage(f"p{n}", t) for n, t in enumerate(["owl", "a new fox", "green", "red fox", "a fox"], 1))
    got = await judge.ask(replace(RATE, passages=changed))
    assert inner.asked[1] == replace(RATE, passages=(changed[1],))
    assert [v.id for v in got.verdicts] == ["p1", "p2", "p3", "p4", "p5"]
    assert [v.positive for v in got.verdicts] == [False, True, False, True, True]
    assert [v.remembered for v in got.verdicts] == [True, False, True, True, True]
    assert [e.passage for v in got.verdicts for e in v.evidence] == ["p2", "p4", "p5"]
    assert got.usage == Usage(calls=1, remembered=4, prompt_tokens=100, completion_tokens=10, cost_usd=None)
    assert len(got.calls) == 1


async def test_attribution_does_not_know_the_order_of_passages_and_evidence_follows_the_text(
    store: JudgementStore,
) -> None:
    inner = CountingJudge()
    judge = RememberingJudge(inner, store)
    first = await judge.ask(ATTRIBUTE)
    turned = tuple(Passage(f"x{n}", p.text) for n, p in enumerate(reversed(P)))
    claims = tuple(Claim(f"k{n}", c.text) for n, c in enumerate(ATTRIBUTE.claims))
    again = await judge.ask(replace(ATTRIBUTE, claims=claims, passages=turned))
    assert len(inner.asked) == 1
    assert [v.id for v in again.verdicts] == ["k0", "k1", "k2"]
    text_then, text_now = {p.id: p.text for p in P}, {p.id: p.text for p in turned}
    for then, now in zip(first.verdicts, again.verdicts, strict=True):
        assert [text_then[e.passage] for e in then.evidence] == [text_now[e.passage] for e in now.evidence]
        assert (then.positive, then.why, then.warnings) == (now.positive, now.why, now.warnings)


async def test_a_passage_that_stands_twice_is_asked_once_and_answered_twice(store: JudgementStore) -> None:
    inner = CountingJudge()
    twice = replace(RATE, passages=(P[0], P[1], Passage("p9", P[0].text)))
    got = await RememberingJudge(inner, store).ask(twice)
    assert inner.asked == [replace(RATE, passages=P[:2])]
    assert [(v.id, v.positive) for v in got.verdicts] == [("p1", True), ("p2", False), ("p9", True)]


async def test_nothing_to_decide_is_decided_without_asking(store: JudgementStore) -> None:
    inner = CountingJudge()
    got = await RememberingJudge(inner, store).ask(replace(RATE, passages=()))
    assert (got.status, got.verdicts, got.judge, inner.asked) == (Status.OK, (), "counting", [])


@pytest.mark.parametrize("status", [Status.JUDGE_ERROR, Status.ABSTAINED, Status.BUDGET])
@pytest.mark.parametrize("task", [EXTRACT, ATTRIBUTE], ids=lambda task: task.name)
async def test_failures_are_told_in_full_and_not_remembered(task: Task, status: Status, store: JudgementStore) -> None:
    inner = CountingJudge(status=status, leaves_out=frozenset({"c2"}))
    judge = RememberingJudge(inner, store)
    assert await judge.ask(task) == await replace(inner, asked=[]).ask(task)
    assert store.count() == 0
    inner.status, inner.leaves_out = Status.OK, frozenset()
    assert (await judge.ask(task)).status is Status.OK
    assert len(inner.asked) == 2


async def test_attribution_that_lacks_a_verdict_is_not_remembered(store: JudgementStore) -> None:
    inner = CountingJudge(leaves_out=frozenset({"c2"}))
    got = await RememberingJudge(inner, store).ask(ATTRIBUTE)
    assert (got.status, [v.id for v in got.verdicts]) == (Status.OK, ["c1", "c3"])
    assert store.count() == 0


@pytest.mark.parametrize("status", [Status.JUDGE_ERROR, Status.BUDGET, Status.OK])
async def test_relevance_verdicts_that_were_paid_for_are_kept_when_the_rest_failed(
    status: Status, store: JudgementStore
) -> None:
    inner = CountingJudge(status=status, leaves_out=frozenset({"p2", "p4"}))
    judge = RememberingJudge(inner, store)
    failed = await judge.ask(RATE)
    assert failed == await replace(inner, asked=[]).ask(RATE)
    inner.status, inner.leaves_out = Status.OK, frozenset()
    got = await judge.ask(RATE)
    assert inner.asked[1] == replace(RATE, passages=(P[1], P[3]))
    assert (got.status, got.error, got.raw) == (Status.OK, None, None)
    assert [v.id for v in got.verdicts] == ["p1", "p2", "p3", "p4", "p5"]
    assert got.usage.remembered == 3


async def test_abstentions_keep_no_verdict(store: JudgementStore) -> None:
    await RememberingJudge(CountingJudge(status=Status.ABSTAINED), store).ask(RATE)
    assert store.count() == 0


async def test_evidence_in_a_passage_that_was_never_given_out_stays_nowhere(store: JudgementStore) -> None:
    class Inventing(CountingJudge):
        async def ask(self, task: Task) -> Judgement:
            told = await super().ask(task)
            invented = Evidence("p77", "made up", verified=False)
            return replace(told, verdicts=tuple(replace(v, evidence=(invented,)) for v in told.verdicts))

    judge = RememberingJudge(Inventing(), store)
    for _ in range(2):
        got = await judge.ask(ATTRIBUTE)
        assert {v.evidence for v in got.verdicts} == {(Evidence("", "made up", verified=False),)}


async def test_unknown_ids_are_dropped_and_of_two_verdicts_the_first_counts(store: JudgementStore) -> None:
    class Babbling(CountingJudge):
        async def ask(self, task: Task) -> Judgement:
            told = await super().ask(task)
            more = (replace(told.verdicts[0], positive=not told.verdicts[0].positive), Verdict("c9", True))
            return replace(told, verdicts=told.verdicts + more)

    got = await RememberingJudge(Babbling(), store).ask(ATTRIBUTE)
    assert [(v.id, v.positive) for v in got.verdicts] == [("c1", True), ("c2", True), ("c3", False)]


# --- asked at the same time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_the_same_question_asked_at_once_is_asked_once_and_billed_once(task: Task, store: JudgementStore) -> None:
    inner = CountingJudge(gate=asyncio.Event())
    judge = RememberingJudge(inner, store)
    asking = [asyncio.create_task(judge.ask(task)) for _ in range(3)]
    await asyncio.sleep(0)
    assert inner.gate is not None
    inner.gate.set()
    first, *others = await asyncio.gather(*asking)
    assert len(inner.asked) == 1
    assert first.usage.calls == 1
    assert others == [as_remembered(first)] * 2


async def test_overlapping_sets_of_passages_share_what_they_have_in_common(store: JudgementStore) -> None:
    inner = CountingJudge(gate=asyncio.Event())
    judge = RememberingJudge(inner, store)
    left, right = replace(RATE, passages=P[:3]), replace(RATE, passages=P[4:0:-1])
    asking = [asyncio.create_task(judge.ask(task)) for task in (left, right)]
    await asyncio.sleep(0)
    assert inner.gate is not None
    inner.gate.set()
    one, two = await asyncio.gather(*asking)
    assert inner.asked == [left, replace(RATE, passages=(P[4], P[3]))]
    assert [v.id for v in one.verdicts] == ["p1", "p2", "p3"]
    assert [v.id for v in two.verdicts] == ["p5", "p4", "p3", "p2"]
    assert two.usage.remembered == 2


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_whoever_waits_shares_a_failure_and_does_not_pay_for_it(task: Task, store: JudgementStore) -> None:
    inner = CountingJudge(gate=asyncio.Event(), status=Status.JUDGE_ERROR, leaves_out=frozenset({"c1", "p1"}))
    judge = RememberingJudge(inner, store)
    asking = [asyncio.create_task(judge.ask(task)) for _ in range(2)]
    await asyncio.sleep(0)
    assert inner.gate is not None
    inner.gate.set()
    first, second = await asyncio.gather(*asking)
    assert len(inner.asked) == 1
    assert (second.status, second.error, second.raw) == (Status.JUDGE_ERROR, "it failed", "raw reply")
    assert [v.id for v in second.verdicts] == [v.id for v in first.verdicts]
    assert (second.usage.calls, second.calls) == (0, ())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_when_the_first_is_cancelled_the_next_one_asks(task: Task, store: JudgementStore) -> None:
    inner = CountingJudge(gate=asyncio.Event())
    judge = RememberingJudge(inner, store)
    asking = [asyncio.create_task(judge.ask(task)) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    assert inner.gate is not None
    inner.gate.set()
    gone, second, third = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    assert isinstance(second, Judgement)
    assert isinstance(third, Judgement)
    assert len(inner.asked) == 2
    assert (second.usage.calls, third.usage.calls) == (1, 0)


async def test_when_one_who_waits_is_cancelled_the_others_go_on(store: JudgementStore) -> None:
    inner = CountingJudge(gate=asyncio.Event())
    judge = RememberingJudge(inner, store)
    asking = [asyncio.create_task(judge.ask(RATE)) for _ in range(3)]
    await asyncio.sleep(0)
    asking[1].cancel()
    await asyncio.sleep(0)
    assert inner.gate is not None
    inner.gate.set()
    first, gone, third = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(gone, asyncio.CancelledError)
    assert isinstance(first, Judgement)
    assert third == as_remembered(first)
    assert len(inner.asked) == 1


async def test_a_judge_that_raises_raises_for_everybody_and_nothing_is_left_hanging(store: JudgementStore) -> None:
    inner = CountingJudge(gate=asyncio.Event(), raises=JudgeUnavailable("does not answer"))
    judge = RememberingJudge(inner, store)
    asking = [asyncio.create_task(judge.ask(RATE)) for _ in range(2)]
    await asyncio.sleep(0)
    assert inner.gate is not None
    inner.gate.set()
    got = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(error) for error in got] == [JudgeUnavailable, JudgeUnavailable]
    inner.raises = None
    assert (await judge.ask(RATE)).status is Status.OK


# --- keys -------------------------------------------------------------------------------------------------------

TEXTS = st.text(max_size=12)
MANY = st.lists(TEXTS, min_size=1, max_size=5, unique=True)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def keys_of(task: Task, store: JudgementStore, *, salt: str = "", **about: str) -> tuple[str, ...]:
    return RememberingJudge(CountingJudge(**about), store, salt=salt).keys(task)  # type: ignore[arg-type]


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    passages = tuple(Passage(f"p{n}", text) for n, text in enumerate(draw(MANY)))
    claims = tuple(Claim(f"c{n}", text) for n, text in enumerate(draw(MANY)))
    kinds: list[Callable[[], Task]] = [
        lambda: ExtractClaims(draw(TEXTS), draw(TEXTS)),
        lambda: AttributeClaims(draw(TEXTS), claims, passages),
        lambda: RateContexts(
            draw(TEXTS), draw(st.none() | TEXTS), draw(st.sampled_from(["reference", "output"])), passages
        ),
    ]
    return draw(st.sampled_from(kinds))()


@QUICK
@given(task=tasks(), order=st.randoms(use_true_random=False))
def test_keys_do_not_depend_on_order_or_ids(task: Task, order: random.Random, store: JudgementStore) -> None:
    if not isinstance(task, AttributeClaims | RateContexts):
        assert keys_of(replace(task), store) == keys_of(task, store)
        return
    texts = [passage.text for passage in task.passages]
    order.shuffle(texts)
    turned = replace(task, passages=tuple(Passage(f"q{n}", text) for n, text in enumerate(texts)))
    assert sorted(keys_of(turned, store)) == sorted(keys_of(task, store))


@QUICK
@given(
    task=tasks(),
    identity=st.fixed_dictionaries({"model": TEXTS, "base_url": st.none() | TEXTS, "temperature": st.floats(0, 2)}),
    version=TEXTS,
    salt=TEXTS,
)
def test_any_change_of_judge_prompt_or_salt_changes_every_key(
    task: Task, identity: dict[str, object], version: str, salt: str, store: JudgementStore
) -> None:
    about = {"identity": json.dumps(identity), "version": version}
    keys = set(keys_of(task, store, salt=salt, **about))
    for name, value in identity.items():
        other = f"{value}x" if isinstance(value, str) else (value or 0) + 1 if isinstance(value, float) else "url"
        changed = json.dumps({**identity, name: other})
        assert not keys & set(keys_of(task, store, salt=salt, **{**about, "identity": changed}))
    assert not keys & set(keys_of(task, store, salt=salt, **{**about, "version": version + "x"}))
    salted = set(keys_of(task, store, salt=salt + "x", **about))
    assert salted == keys if isinstance(task, ExtractClaims) else not keys & salted


@QUICK
@given(one=tasks(), two=tasks())
def test_tasks_of_different_content_share_keys_only_for_the_passages_they_share(
    one: Task, two: Task, store: JudgementStore
) -> None:
    shared = set(keys_of(one, store)) & set(keys_of(two, store))
    if isinstance(one, RateContexts) and isinstance(two, RateContexts):
        same = (one.question, one.expected, one.against) == (two.question, two.expected, two.against)
        texts = {p.text for p in one.passages} & {p.text for p in two.passages} if same else set()
        assert len(shared) == len(texts)
    elif isinstance(one, AttributeClaims) and isinstance(two, AttributeClaims):
        same = (one.question, [c.text for c in one.claims], {p.text for p in one.passages}) == (
            two.question,
            [c.text for c in two.claims],
            {p.text for p in two.passages},
        )
        assert bool(shared) == same
    else:
        assert bool(shared) == (one == two)


CHANGED: list[Task] = [
    replace(ATTRIBUTE, question="another"),
    replace(ATTRIBUTE, claims=ATTRIBUTE.claims[::-1]),
    replace(ATTRIBUTE, claims=ATTRIBUTE.claims[:2]),
    replace(ATTRIBUTE, passages=P[1:]),
    replace(ATTRIBUTE, passages=(*P[1:], Passage("p1", "red  fox"))),
    replace(RATE, question="another"),
    replace(RATE, expected="another"),
    replace(RATE, expected=None),
    replace(RATE, against="output"),
    replace(EXTRACT, question="another"),
    replace(EXTRACT, reference="another"),
]


@pytest.mark.parametrize("changed", CHANGED)
def test_whatever_the_answer_depends_on_is_in_the_key(changed: Task, store: JudgementStore) -> None:
    original = next(task for task in TASKS if task.name == changed.name)
    assert not set(keys_of(changed, store)) & set(keys_of(original, store))


async def test_a_salt_judges_again_once_and_leaves_claims_alone(store: JudgementStore) -> None:
    await RememberingJudge(CountingJudge(), store).ask(EXTRACT)
    await RememberingJudge(CountingJudge(), store).ask(RATE)
    fresh = CountingJudge()
    for _ in range(2):  # the run, and its resume
        judge = RememberingJudge(fresh, store, salt="run-1")
        await judge.ask(EXTRACT)
        await judge.ask(RATE)
    assert fresh.asked == [RATE]


# --- several processes ------------------------------------------------------------------------------------------

RACER = """
import asyncio, json, sys
from pathlib import Path
from ragscore.items import Judgement, Usage, Verdict
from ragscore.judges.judgement_store import JudgementStore
from ragscore.judges.memory import RememberingJudge
from ragscore.judges.tasks import Passage, RateContexts

class Fickle:
    name = identity = "fickle"
    async def prepare(self): pass
    def prompt_version(self, task): return "1"
    async def ask(self, task):
        await asyncio.sleep(0)
        yes = sys.argv[2] == "0"
        return Judgement("fickle", verdicts=tuple(Verdict(p.id, yes) for p in task.passages), usage=Usage(calls=1))

async def main(judge):
    told = {}
    for number in range(60):
        passages = tuple(Passage(f"p{n}", f"text {n} {number}") for n in range(3))
        got = await judge.ask(RateContexts("q", "e", "reference", passages))
        told[number] = [v.positive for v in got.verdicts]
    return told

sys.stdin.readline()
with JudgementStore(Path(sys.argv[1])) as store:
    print(json.dumps(asyncio.run(main(RememberingJudge(Fickle(), store)))))
"""


def test_processes_that_judge_the_same_at_once_end_with_the_same_verdicts(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / "j.sqlite"), str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(3)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    told = [json.loads(racer.communicate(timeout=60)[0]) for racer in racers]
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 60
