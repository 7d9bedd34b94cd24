"""The file of remembered judgements: durable, shared, and never a reason for a run to stop."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ragscore.judges import judgement_store
from ragscore.judges.judgement_store import JudgementStore

KEYS = [f"{number:032x}" for number in range(1200)]


def test_gives_back_what_was_put(tmp_path: Path) -> None:
    value = {"positive": True, "why": "steht da: „ja“ \ud83d", "evidence": [[0, "ja", True]], "confidence": None}
    with JudgementStore(tmp_path / "deep" / "judgements.sqlite") as store:
        assert store.put_many({"k": value}, judge="j", task="t") == {"k": value}
        assert store.get_many(["k", "other"]) == {"k": value}
        assert store.count() == 1
        assert store.notes == ()
    with JudgementStore(store.path) as again:
        assert again.get_many(["k"]) == {"k": value}


def test_many_keys_are_read_and_written_at_once(tmp_path: Path) -> None:
    with JudgementStore(tmp_path / "j.sqlite") as store:
        store.put_many({key: {"n": key} for key in KEYS}, judge="j", task="t")
        assert store.get_many(KEYS) == {key: {"n": key} for key in KEYS}
        assert store.get_many([]) == {}
        assert store.put_many({}, judge="j", task="t") == {}


def test_the_first_value_of_a_key_wins_and_is_told_to_the_second(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with JudgementStore(path) as first, JudgementStore(path) as second:
        first.put_many({"a": {"by": 1}}, judge="j", task="t")
        standing = second.put_many({"a": {"by": 2}, "b": {"by": 2}}, judge="j", task="t")
        assert standing == {"a": {"by": 1}, "b": {"by": 2}}
        assert first.get_many(["a", "b"]) == standing


def test_what_was_learnt_is_kept_apart_and_the_last_wins(tmp_path: Path) -> None:
    with JudgementStore(tmp_path / "j.sqlite") as store:
        assert store.get("model") is None
        store.put("model", {"mode": "json_schema"})
        store.put("model", {"mode": "text"})
        assert store.get("model") == {"mode": "text"}
        assert store.count() == 0


def test_threads_share_one_store(tmp_path: Path) -> None:
    with JudgementStore(tmp_path / "j.sqlite") as store:

        def work(name: int) -> None:
            for key in KEYS[:100]:
                store.put_many({key: {"by": name}}, judge="j", task="t")
                store.get_many([key])

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.count() == 100
        assert store.notes == ()


RACER = """
import json, sys
from pathlib import Path
from ragscore.judges.judgement_store import JudgementStore
sys.stdin.readline()
with JudgementStore(Path(sys.argv[1])) as store:
    seen = {}
    for number in range(150):
        seen |= store.put_many({str(number): {"by": sys.argv[2]}}, judge="j", task="t")
    print(json.dumps({"seen": seen, "notes": store.notes}))
"""


def test_processes_that_race_from_creation_on_agree_on_every_value(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for number in range(4)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    told = [json.loads(racer.communicate(timeout=60)[0]) for racer in racers]
    assert [one["notes"] for one in told] == [[]] * 4
    with JudgementStore(path) as store:
        standing = store.get_many([str(number) for number in range(150)])
    assert len(standing) == 150
    assert all(one["seen"] == standing for one in told)


KILLED = """
import os, signal, sys
from pathlib import Path
from ragscore.judges.judgement_store import JudgementStore
store = JudgementStore(Path(sys.argv[1]))
store.put("model", {"mode": "text"})
store.put_many({"a": {"paid": 1}, "b": {"paid": 2}}, judge="j", task="t")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_kill_right_after_put_many_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    with JudgementStore(path) as store:
        assert store.get_many(["a", "b"]) == {"a": {"paid": 1}, "b": {"paid": 2}}
        assert store.get("model") == {"mode": "text"}


@pytest.mark.parametrize("content", [b"this is no database " * 500, b"SQLite format 3\x00" + b"\xff" * 8192])
def test_a_damaged_file_is_moved_aside_and_said_once(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j.sqlite"
    for number in (1, 2):
        path.write_bytes(content)
        caplog.clear()
        with caplog.at_level(logging.WARNING), JudgementStore(path) as store:
            store.put_many({"a": {"n": number}}, judge="j", task="t")
            assert store.get_many(["a"]) == {"a": {"n": number}}
        assert len(store.notes) == len(caplog.records) == 1
        assert f"j.sqlite.damaged-{number}" in store.notes[0]
        assert (tmp_path / f"j.sqlite.damaged-{number}").read_bytes() == content


def test_damage_found_in_the_middle_of_a_run_costs_what_was_remembered_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with JudgementStore(path) as before:
        before.put_many({key: {"text": key * 20} for key in KEYS}, judge="j", task="t")
    with JudgementStore(path) as store:
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xa5" * (len(content) - 4096)
        path.write_bytes(content)
        assert store.get_many(KEYS[-3:]) == {}
        assert store.put_many({"a": {"n": 1}}, judge="j", task="t") == {"a": {"n": 1}}
        assert store.get_many(["a"]) == {"a": {"n": 1}}
    assert [name for name in os.listdir(tmp_path) if name.endswith(".damaged-1")] == ["j.sqlite.damaged-1"]
    assert len(store.notes) == 1


def test_a_single_unreadable_value_is_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with JudgementStore(path) as store:
        store.put_many({"a": {"n": 1}}, judge="j", task="t")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE judgements SET value = '{\"n\": '")
    connection.commit()
    connection.close()
    with JudgementStore(path) as store:
        assert store.get_many(["a"]) == {}
        assert store.put_many({"a": {"n": 2}}, judge="j", task="t") == {"a": {"n": 2}}
        assert store.get_many(["a"]) == {"a": {"n": 2}}


def test_a_place_that_cannot_be_used_means_no_memory_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING), JudgementStore(tmp_path / "file" / "j.sqlite") as store:
        assert store.put_many({"a": {"n": 1}}, judge="j", task="t") == {"a": {"n": 1}}
        assert store.get_many(["a"]) == {}
        store.put("model", {"mode": "text"})
        assert store.get("model") is None
        assert store.count() == 0
    assert not store.remembers
    assert len(store.notes) == len(caplog.records) == 1
    assert "without memory" in store.notes[0]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is read-only to this user")
def test_a_read_only_file_means_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    JudgementStore(path).close()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        with JudgementStore(path) as store:
            assert store.put_many({"a": {"n": 1}}, judge="j", task="t") == {"a": {"n": 1}}
        assert "without memory" in store.notes[0]
    finally:
        tmp_path.chmod(0o755)


def test_a_file_of_a_later_ragscore_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE judgements (key, something_else)")
    connection.execute(f"PRAGMA user_version = {judgement_store.VERSION + 1}")
    connection.commit()
    connection.close()
    with JudgementStore(path) as store:
        store.put_many({"a": {"n": 1}}, judge="j", task="t")
    assert "later ragscore" in store.notes[0]
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM judgements").fetchone() == (0,)
    connection.close()


def test_what_cannot_be_written_for_now_is_used_and_written_by_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with JudgementStore(path, busy_timeout_s=0.01) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert store.put_many({"a": {"n": 1}}, judge="j", task="t") == {"a": {"n": 1}}
        assert store.put_many({"a": {"n": 2}}, judge="j", task="t") == {"a": {"n": 1}}
        assert store.get_many(["a"]) == {"a": {"n": 1}}
        assert store.count() == 0
        other.execute("ROLLBACK")
        other.close()
        assert store.put_many({"a": {"n": 3}, "b": {"n": 3}}, judge="j", task="t") == {"a": {"n": 1}, "b": {"n": 3}}
        assert store.count() == 2
        assert len(store.notes) == 1


def test_a_full_disk_does_not_stop_judging(tmp_path: Path) -> None:
    with JudgementStore(tmp_path / "j.sqlite") as store:
        assert store._connection is not None
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        big = {key: {"text": "x" * 2000} for key in KEYS[:50]}
        assert store.put_many(big, judge="j", task="t") == big
        assert store.get_many(KEYS[:50]) == big
        assert "full" in store.notes[0]
        store._connection.execute("PRAGMA max_page_count = 1000000")
    with JudgementStore(store.path) as again:  # written when the store was closed
        assert again.get_many(KEYS[:50]) == big


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = JudgementStore(tmp_path / "j.sqlite")
    store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        store.get_many(["a"])
