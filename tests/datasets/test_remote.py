"""Files behind addresses give the items that local ones give; what cannot be fetched says so without its secrets."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.datasets.conftest import Load, Refused, write_jsonl
from tests.datasets.serving import PASSWORD, USER, as_s3, cut_off, over_http

ROWS = [{"id": f"q{number}", "input": f"question {number}?", "reference": "007"} for number in range(3)]


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    served = folder / "served"
    served.mkdir()
    write_jsonl(served / "d.jsonl", ROWS)
    (served / "d.jsonl.gz").write_bytes(gzip.compress((served / "d.jsonl").read_bytes()))
    (served / "encoded.jsonl.gz").write_bytes((served / "d.jsonl.gz").read_bytes())
    (served / "d.csv").write_text("input,reference\nq?,2024-01-01\n", encoding="utf-8")
    with over_http(served) as address:
        yield address


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    lines = [(json.dumps(row) + "\n").encode() for row in ROWS]
    objects = {
        "day/1.jsonl": lines[0],
        "day/2.jsonl": lines[1],
        "day/late/3.jsonl": lines[2],
        "day/2.csv": b"input\nno\n",
        "odd/q#1?.jsonl": lines[0],
        "packed.jsonl": gzip.compress(lines[0]),
        "broken.jsonl": b'{"input": "q?"}\n{"inpu\n',
    }
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with as_s3({"evaluation": objects}) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", address)
        yield


@pytest.mark.parametrize(
    "path", ["/d.jsonl", "/d.jsonl.gz", "/encoded.jsonl.gz", "/d.jsonl?key=secret", "/moved/d.jsonl"]
)
def test_files_over_http_are_read_like_local_ones(load: Load, server: str, path: str) -> None:
    dataset = load(server + path)
    assert [(item.id, item.reference) for item in dataset.items] == [(row["id"], "007") for row in ROWS]
    assert dataset.hash == load("served/d.jsonl").hash


def test_a_query_reads_what_is_behind_an_address(load: Load, server: str) -> None:
    assert load(sql=f"SELECT * FROM '{server}/d.csv'").items[0].reference == "2024-01-01"


def test_a_user_and_a_password_in_the_address_are_sent_and_never_shown(
    load: Load, refused: Refused, server: str
) -> None:
    private = server.replace("://", f"://{USER}:{PASSWORD}@") + "/private/d.jsonl"
    assert len(load(private).items) == 3
    said = refused(private.replace(PASSWORD, "wrong") + "?token=hidden")
    assert (
        said
        == f"{server}/private/d.jsonl: the server answers 401 Unauthorized — check the address and that you may read it"
    )


@pytest.mark.parametrize("password", ["p@ss", "p/ss", "p?ss", "p#ss"])
def test_a_password_with_odd_characters_is_not_shown_in_any_part(refused: Refused, password: str) -> None:
    said = refused(f"http://somebody:{password}@127.0.0.1:9/d.jsonl")
    assert said.startswith("http://127.0.0.1:9/d.jsonl: ")
    assert not any(part in said for part in ("somebody", "p@", "'p", "ss@"))


def test_a_store_that_raises_what_it_likes_is_one_line(refused: Refused) -> None:
    import fsspec

    class Odd(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = "r2"

        def get_file(self, *_: object, **__: object) -> None:
            raise RuntimeError("the token\nhas expired")

    fsspec.register_implementation("r2", Odd, clobber=True)
    said = refused("r2://bucket/d.jsonl")
    assert said.startswith("r2://bucket/d.jsonl: cannot be fetched: the token has expired — ")


def test_keys_of_s3_may_hold_what_ends_an_address_elsewhere(load: Load, bucket: None) -> None:
    (item,) = load("s3://evaluation/odd/q#1?.jsonl").items
    assert item.id == "q0"
    (item,) = load("s3://evaluation/odd/q?1*.jsonl").items
    assert item.id == "q0"


def test_an_object_of_s3_that_is_kept_gzipped_is_unpacked(load: Load, bucket: None) -> None:
    assert [item.id for item in load("s3://evaluation/packed.jsonl").items] == ["q0"]


def test_what_is_not_there_is_said_in_one_line(refused: Refused, server: str) -> None:
    assert "the server answers 404 File not found" in refused(f"{server}/absent.jsonl")
    said = refused("http://127.0.0.1:9/d.jsonl")
    assert said.startswith("http://127.0.0.1:9/d.jsonl: cannot be fetched: ")
    assert "\n" not in said


def test_a_fault_in_a_fetched_file_is_named_by_address_and_line(refused: Refused, bucket: None) -> None:
    said = refused("s3://evaluation/broken.jsonl")
    assert said.startswith("s3://evaluation/broken.jsonl:2: line: is not JSON")


@pytest.mark.parametrize(
    ("path", "ids"),
    [
        ("s3://evaluation/day/1.jsonl", ["q0"]),
        ("s3://evaluation/day/*.jsonl", ["q0", "q1"]),
        ("s3a://evaluation/day/**/*.jsonl", ["q0", "q1", "q2"]),
    ],
)
def test_objects_of_s3_are_read_like_local_files(load: Load, bucket: None, path: str, ids: list[str]) -> None:
    assert [item.id for item in load(path).items] == ids


def test_s3_says_which_object_or_bucket_is_not_there(refused: Refused, bucket: None) -> None:
    assert "s3://evaluation/absent.jsonl: cannot be fetched: " in refused("s3://evaluation/absent.jsonl")
    assert refused("s3://evaluation/night/*.jsonl") == (
        "s3://evaluation/night/*.jsonl: matches no file — check the address"
    )
    assert "s3://elsewhere/*.jsonl: cannot be fetched: " in refused("s3://elsewhere/*.jsonl")


@pytest.mark.parametrize("address", ["{0}/d.jsonl", "s3://evaluation/d.jsonl"])
def test_a_transfer_that_ends_in_the_middle_is_an_error_and_not_a_smaller_dataset(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with cut_off() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server)
        said = refused(address.format(server))
    assert said.startswith(f"{address.format(server)}: cannot be fetched: ")
    assert "\n" not in said


def test_an_address_whose_package_is_not_installed_says_which(refused: Refused) -> None:
    said = refused("gs://bucket/d.jsonl")
    assert "gcsfs" in said
    assert said.endswith("install that package beside ragscore, or copy the data here")
