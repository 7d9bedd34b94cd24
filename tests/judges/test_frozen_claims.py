"""The claims of a reference are extracted once, by whoever is first, and stand until a person says otherwise."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragscore.errors import ConfigError, DatasetError
from ragscore.items import Context, Item, Judgement, Status, Usage
from ragscore.judges.claims import ClaimSet, reference_hash
from ragscore.judges.frozen_claims import ClaimsFile, FrozenClaims, FrozenEntry, beside, place
from ragscore.judges.tasks import ExtractClaims, Task


@dataclass
class Splitting:
    """Extracts the sentences of a reference as its claims, and counts."""

    name: str = "splitting"
    status: Status = Status.OK
    asked: list[Task] = field(default_factory=list)

    async def ask(self, task: Task) -> Judgement:
        self.asked.append(task)
        await asyncio.sleep(0)
        assert isinstance(task, ExtractClaims)
        claims = tuple(part for part in task.reference.split(". ") if part)
        if self.status is not Status.OK:
            return Judgement(self.name, self.status, usage=Usage(calls=1), error="it failed")
        return Judgement(self.name, claims=claims, usage=Usage(calls=1), prompt_version="v1")


FOX = Item("fox", "Which fox?", "The fox is red. It has a tail")
HEN = Item("hen", "Which hen?", "Die Henne ist grün – „ja“")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.claims.jsonl"


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def edit(path: Path, number: int, **fields: object) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[number] = json.dumps(json.loads(lines[number]) | fields, ensure_ascii=False)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


async def test_claims_are_asked_once_frozen_and_then_free(path: Path) -> None:
    judge = Splitting()
    claims = FrozenClaims(judge, path)
    assert claims.known(FOX) is None
    assert not path.exists()
    claim_set, judgement = await claims.of(FOX)
    assert claim_set == ClaimSet(("The fox is red", "It has a tail"), "frozen")
    assert judgement is not None
    assert judgement.usage.calls == 1
    assert claims.known(FOX) == claim_set
    assert await claims.of(FOX) == (claim_set, None)
    later = FrozenClaims(judge, path, frozen=True)
    assert await later.of(FOX) == (claim_set, None)
    assert len(judge.asked) == 1


async def test_a_line_can_be_read_and_reviewed_by_people(path: Path) -> None:
    claims = FrozenClaims(Splitting(), path)
    await claims.of(HEN)
    await claims.of(Item("long", "long? " * 50, "word " * 50))
    assert "„ja“" in path.read_text(encoding="utf-8")
    hen, long = rows(path)
    assert hen == {
        "input": "Which hen?",
        "reference": "Die Henne ist grün – „ja“",
        "claims": ["Die Henne ist grün – „ja“"],
        "hash": reference_hash(HEN),
        "judge": "splitting",
        "prompt": "v1",
        "check": ClaimSet(("Die Henne ist grün – „ja“",), "").hash,
    }
    assert len(str(long["input"])) == len(str(long["reference"])) == 80


async def test_claims_of_the_item_come_first_and_are_not_frozen(path: Path) -> None:
    claims = FrozenClaims(Splitting(), path)
    by_hand = Item("fox", FOX.input, FOX.reference, claims=("by hand",))
    await claims.of(FOX)
    assert claims.known(by_hand) == ClaimSet(("by hand",), "item")
    assert await claims.of(by_hand) == (ClaimSet(("by hand",), "item"), None)
    assert len(rows(path)) == 1


async def test_items_that_share_a_reference_share_a_call_and_a_line(path: Path) -> None:
    judge = Splitting()
    claims = FrozenClaims(judge, path)
    twin = Item("twin", FOX.input, FOX.reference, contexts=(Context("other"),))
    got = await asyncio.gather(*(claims.of(item) for item in (FOX, twin, FOX, HEN)))
    assert len(judge.asked) == 2
    assert [judgement.usage.calls for _, judgement in got if judgement is not None] == [1, 0, 0, 1]
    assert got[0][0] == got[1][0] == got[2][0]
    assert len(rows(path)) == 2


async def test_the_same_reference_under_another_question_is_another_line(path: Path) -> None:
    claims = FrozenClaims(Splitting(), path)
    await claims.of(FOX)
    other = Item("fox", "What has a tail?", FOX.reference)
    assert claims.known(other) is None
    await claims.of(other)
    assert len(rows(path)) == 2


async def test_a_reference_without_claims_is_frozen_as_such(path: Path) -> None:
    judge = Splitting()
    nothing = Item("n", "q", ". ")
    assert (await FrozenClaims(judge, path).of(nothing))[0] == ClaimSet((), "frozen")
    assert FrozenClaims(judge, path).known(nothing) == ClaimSet((), "frozen")


async def test_a_failure_is_not_frozen_and_may_be_asked_again(path: Path) -> None:
    judge = Splitting(status=Status.JUDGE_ERROR)
    claims = FrozenClaims(judge, path)
    claim_set, judgement = await claims.of(FOX)
    assert claim_set is None
    assert judgement is not None
    assert judgement.status is Status.JUDGE_ERROR
    assert not path.exists()
    judge.status = Status.OK
    assert (await claims.of(FOX))[0] is not None


async def test_a_judge_that_is_free_reads_the_file_and_writes_nothing(path: Path) -> None:
    await FrozenClaims(Splitting(), path).of(FOX)
    edit(path, 0, claims=["one fact"])
    before = path.read_bytes()
    offline = Splitting("offline")
    claims = FrozenClaims(offline, path, freeze=False)
    assert claims.known(FOX) == ClaimSet(("one fact",), "edited")
    claim_set, _ = await claims.of(HEN)
    assert claim_set == claims.known(HEN) == ClaimSet((HEN.reference or "",), "offline")
    assert path.read_bytes() == before


async def test_with_frozen_what_is_missing_is_named_before_anything_runs(path: Path) -> None:
    await FrozenClaims(Splitting(), path).of(FOX)
    judge = Splitting()
    claims = FrozenClaims(judge, path, frozen=True)
    others = [Item(f"i{n}", "q", f"r{n}") for n in range(7)]
    free = [
        FOX,
        Item("unanswerable", "q", "r", answerable=False),
        Item("no reference", "q"),
        Item("blank", "q", "  "),
        Item("by hand", "q", "r", claims=("c",)),
    ]
    assert claims.missing([*free, *others]) == others
    claims.require(free)
    with pytest.raises(ConfigError, match=r"'i0', .*'i4' and 2 more") as raised:
        claims.require([*free, *others])
    assert raised.value.exit_code == 2
    assert str(path) in str(raised.value)
    with pytest.raises(ConfigError, match="'hen'"):
        await claims.of(HEN)
    assert judge.asked == []


# --- people edit the file ---------------------------------------------------------------------------------------


async def test_an_edit_is_kept_marked_and_another_claim_set(path: Path) -> None:
    frozen, _ = await FrozenClaims(Splitting(), path).of(FOX)
    edit(path, 0, claims=["The fox is red"], note="the tail is not in the docs")
    claims = FrozenClaims(Splitting(), path)
    edited = claims.known(FOX)
    assert edited == ClaimSet(("The fox is red",), "edited")
    assert frozen is not None
    assert edited.hash != frozen.hash
    (entry,) = claims.file.entries()
    assert entry.edited
    assert claims.file.refresh(FOX, ["new"], judge="j", prompt="v2").claims == ("The fox is red",)
    assert rows(path)[0]["note"] == "the tail is not in the docs"
    assert claims.file.refresh(FOX, ["new"], judge="j", prompt="v2", force=True).claims == ("new",)
    assert claims.known(FOX) == FrozenClaims(Splitting(), path).known(FOX) == ClaimSet(("new",), "frozen")


def test_a_line_that_a_person_wrote_needs_only_hash_and_claims(path: Path) -> None:
    path.write_text(json.dumps({"hash": reference_hash(FOX), "claims": ["by hand"]}) + "\n")
    assert FrozenClaims(Splitting(), path).known(FOX) == ClaimSet(("by hand",), "edited")


async def test_refresh_changes_one_line_and_no_other_byte(path: Path) -> None:
    claims = FrozenClaims(Splitting(), path)
    for item in (FOX, HEN):
        await claims.of(item)
    odd = b'{ "hash" : "x",   "claims": ["kept \xe2\x80\xa8 as it is"], "mine": 1 }\r\n\n'
    path.write_bytes(b"\xef\xbb\xbf" + odd + path.read_bytes())
    path.chmod(0o640)
    before = path.read_bytes().split(b"\n")
    entry = claims.file.refresh(FOX, ["a", "b"], judge="j2", prompt="v2")
    after = path.read_bytes().split(b"\n")
    assert [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [2]
    assert path.stat().st_mode & 0o777 == 0o640
    assert ClaimsFile(path).get(reference_hash(FOX)) == entry
    assert sorted(os.listdir(path.parent)) == [f".{path.name}.lock", path.name]
    await claims.of(Item("later", "q", "appended after the refresh"))
    assert len(ClaimsFile(path).entries()) == 4


def test_refresh_of_a_new_reference_adds_a_line(path: Path) -> None:
    file = ClaimsFile(path)
    file.refresh(FOX, ["a"], judge="j", prompt="v")
    file.refresh(HEN, ["b"], judge="j", prompt="v")
    assert [entry.claims for entry in ClaimsFile(path).entries()] == [("a",), ("b",)]


async def test_diff_shows_what_would_be_extracted_now(path: Path) -> None:
    claims = FrozenClaims(Splitting(), path)
    await claims.of(FOX)
    await claims.of(HEN)
    fox, hen = reference_hash(FOX), reference_hash(HEN)
    same = {fox: ["It has  a tail", "The fox is red"], hen: ["Die Henne ist grün – „ja“"]}
    assert claims.file.diff(same) == ()
    new, changed = claims.file.diff({"new": ["x"], fox: ["The fox is red", "The fox is red", "It is a fox"]})
    assert (new.entry, new.added, new.removed) == (None, ("x",), ())
    assert (changed.added, changed.removed) == (("The fox is red", "It is a fox"), ("It has a tail",))
    assert changed.entry == claims.file.get(fox)


LINE = FrozenEntry.of(FOX, ["a"], judge="j", prompt="v")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"hash": "x", "claims": ["a",]}', "is not JSON"),
        (b'{"hash": "x", "claims": ["\xff"]}', "is not JSON"),
        (b"<<<<<<< HEAD", "merge conflict"),
        (b'["x"]', '"hash"'),
        (b'{"claims": ["a"]}', '"hash"'),
        (b'{"hash": "x"}', '"claims" is not a list of texts'),
        (b'{"hash": "x", "claims": "a"}', '"claims" is not a list of texts'),
        (b'{"hash": "x", "claims": ["a", " "]}', '"claims" is not a list of texts'),
    ],
)
def test_a_line_that_cannot_be_understood_is_named_with_its_mend(path: Path, line: bytes, what: str) -> None:
    ClaimsFile(path).append(LINE)
    path.write_bytes(path.read_bytes() + b"\n" + line + b"\n")
    for act in (lambda: ClaimsFile(path), lambda: FrozenClaims(Splitting(), path, freeze=False)):
        with pytest.raises(DatasetError) as raised:
            act()
        assert raised.value.where == f"{path}:3"
        assert what in raised.value.what
        assert raised.value.mend
        assert "\n" not in str(raised.value)


def test_a_reference_that_stands_twice_after_a_merge_has_the_first_claims(path: Path) -> None:
    first = FrozenEntry.of(FOX, ["ours"], judge="j", prompt="v")
    ClaimsFile(path).append(first)
    path.write_bytes(path.read_bytes() + path.read_bytes().replace(b"ours", b"theirs"))
    assert ClaimsFile(path).entries() == (first,)
    ClaimsFile(path).refresh(FOX, ["new"], judge="j", prompt="v")
    assert [row["claims"] for row in rows(path)] == [["new"]]


# --- what befalls the file --------------------------------------------------------------------------------------


def test_a_last_line_without_its_end_is_a_line(path: Path) -> None:
    ClaimsFile(path).append(LINE)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    file = ClaimsFile(path)
    assert file.entries() == (LINE,)
    hen = file.append(FrozenEntry.of(HEN, ["b"], judge="j", prompt="v"))
    assert ClaimsFile(path).entries() == file.entries() == (LINE, hen)


def test_what_a_killed_append_left_is_no_line_and_is_gone_with_the_next(path: Path) -> None:
    ClaimsFile(path).append(LINE)
    whole = path.read_bytes()
    hen = FrozenEntry.of(HEN, ["b"], judge="j", prompt="v")
    ClaimsFile(path).append(hen)
    both = path.read_bytes()
    for cut in range(len(whole) + 1, len(both) - 1):
        path.write_bytes(both[:cut])
        file = ClaimsFile(path)
        assert file.entries() == (LINE,)
        file.append(hen)
        assert path.read_bytes() == both


async def test_what_others_append_is_seen_before_the_judge_is_asked(path: Path) -> None:
    judge = Splitting()
    claims = FrozenClaims(judge, path)
    await claims.of(HEN)
    ClaimsFile(path).append(FrozenEntry.of(FOX, ["theirs"], judge="other", prompt="v"))
    assert await claims.of(FOX) == (ClaimSet(("theirs",), "frozen"), None)
    assert len(judge.asked) == 1


async def test_if_another_is_first_while_the_judge_thinks_its_claims_are_the_ones(path: Path) -> None:
    class Slow(Splitting):
        async def ask(self, task: Task) -> Judgement:
            ClaimsFile(path).append(FrozenEntry.of(FOX, ["theirs"], judge="other", prompt="v"))
            return await super().ask(task)

    claim_set, judgement = await FrozenClaims(Slow(), path).of(FOX)
    assert claim_set == ClaimSet(("theirs",), "frozen")
    assert judgement is not None
    assert (judgement.claims, judgement.usage.calls) == (("theirs",), 1)
    assert len(rows(path)) == 1


@pytest.mark.parametrize("saved", ["in place", "as another file", "deleted"])
async def test_a_file_that_is_saved_or_deleted_during_a_run_does_not_disturb_it(path: Path, saved: str) -> None:
    claims = FrozenClaims(Splitting(), path)
    before, _ = await claims.of(FOX)
    await claims.of(HEN)
    if saved == "in place":
        edit(path, 0, claims=["edited now, and rather longer than it was before"])
    elif saved == "as another file":
        other = path.with_suffix(".new")
        other.write_bytes(path.read_bytes().split(b"\n")[1] + b"\n")
        os.replace(other, path)
    else:
        path.unlink()
    await claims.of(Item("later", "q", "something else"))
    assert claims.known(FOX) == before
    assert [row["claims"] for row in rows(path)][-1] == ["something else"]
    assert len(rows(path)) == {"in place": 3, "as another file": 2, "deleted": 1}[saved]


def test_half_a_character_is_kept_too(path: Path) -> None:
    broken = FrozenEntry.of(FOX, ["half \ud83d"], judge="j", prompt="v")
    ClaimsFile(path).append(broken)
    assert ClaimsFile(path).entries() == (broken,)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.tuples(st.text(max_size=8), st.lists(st.text(min_size=1).filter(str.strip), max_size=3)),
        min_size=1,
        max_size=6,
        unique_by=lambda pair: pair[0],
    )
)
def test_whatever_is_frozen_is_read_back_in_order(texts: list[tuple[str, list[str]]], path: Path) -> None:
    path.unlink(missing_ok=True)
    file = ClaimsFile(path)
    put = tuple(
        file.append(FrozenEntry.of(Item("i", "q", ref), claims, judge="j", prompt="v")) for ref, claims in texts
    )
    assert ClaimsFile(path).entries() == file.entries() == put
    assert not any(entry.edited for entry in put)


# --- places -----------------------------------------------------------------------------------------------------


def test_claims_stand_beside_the_dataset_or_at_home_where_that_cannot_be_written(tmp_path: Path) -> None:
    dataset, home = tmp_path / "support.jsonl", tmp_path / "home"
    assert place(dataset, home) == beside(dataset) == tmp_path / "support.claims.jsonl"
    nowhere = tmp_path / "gone" / "support.jsonl"
    assert place(nowhere, home).parent == home / "claims"
    assert place(nowhere, home) == place(tmp_path / "x" / ".." / "gone" / "support.jsonl", home)
    assert place(nowhere, home) != place(tmp_path / "gone2" / "support.jsonl", home)


async def test_committed_claims_are_read_where_they_cannot_be_written(tmp_path: Path) -> None:
    committed, path = tmp_path / "data.claims.jsonl", tmp_path / "home" / "claims" / "h.claims.jsonl"
    await FrozenClaims(Splitting(), committed).of(FOX)
    before = committed.read_bytes()
    judge = Splitting()
    claims = FrozenClaims(judge, path, committed=committed)
    assert (await claims.of(FOX))[1] is None
    await claims.of(HEN)
    assert committed.read_bytes() == before
    assert [row["claims"] for row in rows(path)] == [[HEN.reference]]
    assert FrozenClaims(judge, path, committed=committed).missing([FOX, HEN]) == []


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "home" / "c.jsonl"
    claims = FrozenClaims(Splitting(), path)
    path.mkdir(parents=True)
    with pytest.raises(DatasetError, match=r"cannot be .*: Is a directory"):
        await claims.of(FOX)
    with pytest.raises(DatasetError, match=r"cannot be written: Is a directory"):
        claims.file.refresh(FOX, ["a"], judge="j", prompt="v")
    with pytest.raises(DatasetError, match="cannot be read"):
        FrozenClaims(Splitting(), tmp_path)


# --- several processes ------------------------------------------------------------------------------------------

RACER = """
import asyncio, json, sys
from pathlib import Path
from ragscore.items import Item, Judgement
from ragscore.judges.frozen_claims import FrozenClaims

class Own:
    name = sys.argv[2]
    async def ask(self, task):
        await asyncio.sleep(0)
        return Judgement(self.name, claims=(f"{task.reference} says {self.name}",), prompt_version="v")

async def main():
    claims = FrozenClaims(Own(), Path(sys.argv[1]))
    items = [Item(str(n), "q", f"reference {n}") for n in range(60)]
    sys.stdin.readline()
    sets = await asyncio.gather(*(claims.of(item) for item in items))
    return [(list(s.claims), s.hash, s.origin) for s, _ in sets]

print(json.dumps(asyncio.run(main())))
"""


def test_processes_that_race_to_freeze_the_same_references_agree(path: Path) -> None:
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, str(path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in ("one", "two", "three")
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    told = [json.loads(racer.communicate(timeout=60)[0]) for racer in racers]
    assert told[0] == told[1] == told[2]
    assert len({row["hash"] for row in rows(path)}) == len(rows(path)) == 60


KILLED = """
import os, signal, sys
from pathlib import Path
from ragscore.items import Item
from ragscore.judges.frozen_claims import ClaimsFile, FrozenEntry
ClaimsFile(Path(sys.argv[1])).append(FrozenEntry.of(Item("i", "q", "r"), ["a"], judge="j", prompt="v"))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_kill_right_after_an_append_loses_nothing_and_leaves_no_lock(path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False).returncode < 0
    file = ClaimsFile(path)
    assert [entry.claims for entry in file.entries()] == [("a",)]
    file.append(LINE)
    assert len(rows(path)) == 2
