"""`store_text: hash` leaves nothing of the corpus to read, and everything to count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ragscore.history import History, findings, item_detail, select, summaries
from ragscore.history.private import fingerprint, labels
from ragscore.items import Call

from .records import RECALL, record, run_row, store

SECRET = "zanzibar"


def _secret(history: History, store_text: str) -> bytes:
    history.start_run(run_row(items=1, store_text=store_text))
    one = record(2)
    assert one.response is not None
    assert one.response.contexts is not None
    assert one.scores is not None
    contexts = tuple(
        replace(context, text=f"{SECRET} {context.text}", metadata={"source": f"{SECRET}"})
        for context in one.response.contexts
    )
    scores = tuple(
        replace(
            score,
            reason=f"because of {SECRET}",
            raw=f"raw {SECRET}",
            calls=(Call("attribute_claims", "m", "text", "ok", prompt_tokens=5, reply=f"it is in {SECRET}"),),
            findings=tuple(
                replace(
                    each,
                    text=f"{SECRET} {each.text}",
                    why=f"why {SECRET}",
                    quotes=tuple(f"{quote} {SECRET}" for quote in each.quotes),
                )
                for each in score.findings
            ),
        )
        for score in one.scores
    )
    one = one.having(
        item=replace(
            one.item,
            input=f"Where is {SECRET}?",
            reference=f"{SECRET} is there.",
            claims=(f"{SECRET} is",),
            metadata={"lang": "en", "n": 3, "note": f"{SECRET} " * 20},
        ),
        response=replace(one.response, output=f"In {SECRET}", contexts=contexts, raw={"text": SECRET}),
        context_sets={"response": replace(one.context_sets["response"], contexts=contexts)},  # type: ignore[index]
        scores=scores,
    )
    assert store(history, "run-1", [one]) == (1, 1, 2)
    assert history.finish_run("run-1", status="complete").ok
    return history.path.read_bytes()


def test_no_text_of_the_corpus_is_in_the_file(history: History, tmp_path: Path) -> None:
    assert SECRET.encode() in _secret(History(tmp_path / "full.duckdb"), "full")  # the search finds what is there
    assert SECRET.encode() not in _secret(history, "hash")
    rows = [
        select(history.path, f"SELECT {table}::VARCHAR FROM {table}").rows
        for table in ("items", "contexts", "scores", "verdicts", "claims", "judge_calls", "context_sets")
    ]
    assert SECRET not in str(rows)
    calls = select(history.path, "SELECT outcome, prompt_tokens, reply FROM judge_calls").rows
    assert calls == [("ok", 5, None), ("ok", 5, None)]


def test_scores_verdicts_and_labels_are_as_ever(history: History, tmp_path: Path) -> None:
    full = History(tmp_path / "full.duckdb")
    _secret(full, "full")
    _secret(history, "hash")
    assert summaries(history, "run-1") == summaries(full, "run-1")
    pairs = zip(findings(history, "run-1"), findings(full, "run-1"), strict=True)
    assert all(
        ours.finding.positive == theirs.finding.positive and ours.finding.text == fingerprint(theirs.finding.text)
        for ours, theirs in pairs
    )
    item = item_detail(history, "run-1", "item-2").item
    assert (item.metadata["lang"], item.metadata["n"]) == ("en", 3)
    assert item.metadata["note"].startswith("sha256:")
    hashes = "SELECT item_hash FROM scores"
    assert select(history.path, hashes).rows == select(full.path, hashes).rows


def test_a_resume_has_to_ask_the_target_again(history: History) -> None:
    _secret(history, "hash")
    assert history.responses("run-1", ["item-2"]) == {}
    assert history.context_sets("run-1", ["item-2"]) == {}
    assert set(history.scored("run-1", ["item-2"])["item-2"]) == {RECALL, "context_precision"}


def test_a_fingerprint_is_the_same_for_the_same_text_and_nothing_stays_nothing() -> None:
    assert fingerprint("a") == fingerprint("a") != fingerprint("b")
    assert (fingerprint(None), fingerprint("")) == (None, "")
    assert labels({"a": ["x", 1, None, True, {"b": "y" * 41}]})["a"][:4] == ["x", 1, None, True]
    assert labels("two\nlines").startswith("sha256:")
