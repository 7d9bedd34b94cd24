"""Reading suites: a mistake is one line with file, line, field and mend; what is right is kept as it was written."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragscore.errors import SuiteError
from ragscore.suite import Suite
from ragscore.suite_file import SuiteFile, check_suite, read_suite, read_suites
from tests.documents import suites_of

HEAD = "name: docs\ndataset: data.jsonl\ntarget: {python: 'app:search'}\n"
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        path = tmp_path / "suite.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return written


def complaint(path: Path, **environment: str) -> str:
    """What is said about the suite, the folder left out."""
    with pytest.raises(SuiteError) as caught:
        read_suite(path, environment=environment)
    return str(caught.value).replace(f"{path.parent}/", "")


def suite_of(path: Path, **environment: str) -> Suite:
    return read_suite(path, environment=environment).suite


@pytest.mark.parametrize(
    ("text", "line", "field", "what", "mend"),
    [
        pytest.param(HEAD + "scorer: []\n", 4, "scorer", "unknown key", "did you mean `scorers`?", id="top key"),
        pytest.param(HEAD + "1: x\n", 4, "1", "unknown key `1`", "known here: batch_size", id="number as key"),
        pytest.param(
            "name: d\ndataset: d\ntarget:\n  python: a:b\n  retreiver: x\n",
            5,
            "target.retreiver",
            "unknown key",
            "did you mean `retriever`?",
            id="nested key",
        ),
        pytest.param(
            HEAD + "gate: {covrage: 1}\n", 4, "gate.covrage", "unknown key", "`coverage`", id="key in flow style"
        ),
        pytest.param(
            HEAD + "scorers:\n  - context_precision:\n      name: p\n      scal: 10\n",
            7,
            "scorers.0.context_precision.scal",
            "unknown key",
            "did you mean `scale`?",
            id="option of a scorer",
        ),
        pytest.param(
            HEAD + "scorers:\n  - context_recall:\n      contexts:\n        pth: hits\n",
            7,
            "scorers.0.context_recall.contexts.pth",
            "unknown key",
            "did you mean `path`?",
            id="contexts of a scorer",
        ),
        pytest.param(
            HEAD + "scorers:\n  - context_recall\n  - context_precison\n",
            6,
            "scorers.1",
            "'context_precison' is not known here",
            "did you mean `context_precision`?",
            id="kind as text",
        ),
        pytest.param(
            HEAD + "scorers:\n  - context_recal: {scale: 2}\n",
            5,
            "scorers.0",
            "'context_recal' is not known here",
            "`context_recall`",
            id="kind as key",
        ),
        pytest.param(
            HEAD + "scorers:\n  - scale: 2\n    kind: recall\n",
            6,
            "scorers.0.kind",
            "'recall' is not known here",
            "context_recall",
            id="kind as value",
        ),
        pytest.param(
            HEAD + "scorers:\n  - context_precision:\n    scale: 10\n",
            5,
            "scorers.0",
            "a scorer is one kind",
            "indent options under it",
            id="options not indented",
        ),
        pytest.param(
            HEAD + "scorers: [{context_recall: 3}]\n",
            4,
            "scorers.0",
            "no mapping",
            "{scale: 10}",
            id="options a number",
        ),
        pytest.param(HEAD + "scorers:\n  -\n", 5, "scorers.0", "is empty", "write a value", id="empty entry"),
        pytest.param(HEAD + "duplicates: onec\n", 4, "duplicates", "'onec'", "did you mean `once`?", id="enum near"),
        pytest.param(HEAD + "duplicates: 7\n", 4, "duplicates", "7 is not known", "one of: count, once", id="enum far"),
        pytest.param(
            HEAD + "batch_size: many\n", 4, "batch_size", "'many'", "write a whole number", id="word as number"
        ),
        pytest.param(HEAD + "batch_size: 2.5\n", 4, "batch_size", "2.5", "write a whole number", id="half as whole"),
        pytest.param(HEAD + "batch_size: yes\n", 4, "batch_size", "true or false", "write a number", id="boolean"),
        pytest.param(HEAD + "batch_size: 0\n", 4, "batch_size", "0 is out of range", "or equal to 1", id="too small"),
        pytest.param(HEAD + "batch_size:\n", 4, "batch_size", "is empty", "write a value", id="nothing as number"),
        pytest.param(HEAD + "scorers: context_recall\n", 4, "scorers", "is text, not a list", "`- `", id="no list"),
        pytest.param(HEAD + "scorers: []\n", 4, "scorers", "is empty", "write a value", id="no scorer"),
        pytest.param("name: d\ndataset: d\ntarget: a:b\n", 3, "target", "is text, not a mapping", "python", id="text"),
        pytest.param("name: d\ndataset: d\ntarget:\n", 3, "target", "is empty", "write a value", id="nothing below"),
        pytest.param("name:\ndataset: d\ntarget: {python: 'a:b'}\n", 1, "name", "is empty", "write a value", id="null"),
        pytest.param(
            "dataset: d\ntarget: {python: 'a:b'}\n", 1, None, "`name` is missing", "add `name:`", id="missing top key"
        ),
        pytest.param(
            "name: d\ndataset: d\ntarget:\n  version: 1\n", 3, "target", "needs `python: module:callable`", "", id="way"
        ),
        pytest.param(
            "name: d\ndataset: d\ntarget: {python: app}\n",
            3,
            "target.python",
            "'app' is not of the form module:callable",
            "my_app.search:retrieve",
            id="no callable",
        ),
        pytest.param(HEAD + "judge: {model: 2024-01-01}\n", 4, "judge.model", "is a date", "in quotes", id="date"),
        pytest.param(HEAD + "judge: {model: 2024-13-45}\n", 4, "judge.model", "timestamp", "in quotes", id="no date"),
        pytest.param(HEAD + "contexts: {static: []}\n", 4, "contexts.static", "cannot be judged", "name some", id="st"),
        pytest.param(
            HEAD + "contexts: {static: [a, ' ']}\n",
            4,
            "contexts.static",
            "without text",
            "remove it",
            id="blank static",
        ),
        pytest.param(
            HEAD + "contexts: {static: [1]}\n", 4, "contexts.static.0", "is a number", "quotes", id="static 1"
        ),
        pytest.param(
            HEAD + "contexts:\n  item: true\n  path: hits\n", 4, "contexts", "not item and path", "name one", id="two"
        ),
        pytest.param(HEAD + "contexts: {}\n", 4, "contexts", "name a source", "static", id="no source"),
        pytest.param(HEAD + "contexts: {item: false}\n", 4, "contexts.item", "false", "leave it out", id="false"),
        pytest.param(
            HEAD + "scorers:\n  - context_recall: {against: output}\n",
            5,
            "scorers.0",
            "`against` is an option of context_precision",
            "",
            id="against on recall",
        ),
        pytest.param(
            HEAD + "scorers: [context_recall, context_recall]\n",
            4,
            "scorers",
            "two scorers are named 'context_recall'",
            "another `name`",
            id="same name",
        ),
    ],
)
def test_a_mistake_is_one_line_with_file_line_field_and_mend(
    write: Write, text: str, line: int, field: str | None, what: str, mend: str
) -> None:
    said = complaint(write(text))
    assert "\n" not in said
    assert said.startswith(f"suite.yaml:{line}: " + (f"{field}: " if field else ""))
    assert what in said
    assert mend in said
    if field is not None:  # the line number is where that key, or entry, stands
        key = field.rpartition(".")[2]
        assert key.isdigit() or key in text.splitlines()[line - 1]


@pytest.mark.parametrize(
    "scale", ["0", "-1", "-0.5", ".inf", "-.inf", ".nan", "inf", "nan", "abc", "''", "[1]", "true"]
)
def test_a_scale_that_is_no_finite_number_above_zero_is_refused(write: Write, scale: str) -> None:
    said = complaint(write(HEAD + f"scorers:\n  - context_recall\n  - context_precision:\n      scale: {scale}\n"))
    assert said.startswith("suite.yaml:7: scorers.1.context_precision.scale: ")
    assert "write a number" in said


@pytest.mark.parametrize(("scale", "read"), [("10", 10), ("0.5", 0.5), ("1e3", 1000), ("'7'", 7), ("0.835", 0.835)])
def test_a_scale_above_zero_is_taken(write: Write, scale: str, read: float) -> None:
    suite = suite_of(write(HEAD + f"scorers: [{{context_recall: {{scale: {scale}}}}}]\n"))
    assert suite.scorers[0].scale == read


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (HEAD + "name: other\n", 4, "`name` stands twice"),
        ("name: d\ntarget:\n  version: 1\n  python: a:b\n  version: 2\n", 5, "`version` stands twice"),
        (HEAD + "scorers:\n\t- context_recall\n", 5, "indent with spaces, not tabs"),
        (HEAD + "judge: {model: x\n", 5, "is not YAML"),
        (HEAD + "judge: 'x\n", 5, "is not YAML"),
        (HEAD + "judge: *nobody\n", 4, "undefined alias"),
        (HEAD + "judge: !!python/object:os.system x\n", 4, "is not YAML"),
        (HEAD + "judge: \x07\n", 4, "U+0007 is not allowed"),
        (HEAD + "---\nname: other\n", 4, "another document"),
        (HEAD + "? [a, b]\n: c\n", 4, "a key is not text"),
        (HEAD + "judge: &a\n  params: *a\n", 4, "an alias stands within what it names"),
    ],
)
def test_what_is_not_one_plain_yaml_document_is_one_line_with_its_number(
    write: Write, text: str, line: int, what: str
) -> None:
    said = complaint(write(text))
    assert "\n" not in said
    assert said.startswith(f"suite.yaml:{line}: ")
    assert what in said
    assert " — " in said


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "- a\n- b\n", "docs\n", "---\n"])
def test_a_file_that_holds_no_mapping_says_how_a_suite_starts(write: Write, text: str) -> None:
    assert complaint(write(text)) == "suite.yaml: is empty or not a mapping — a suite starts with `name:`"


def test_brackets_without_end_do_not_exhaust_the_stack(write: Write) -> None:
    assert "suite.yaml" in complaint(write("a: " + "[" * 5000))


def test_a_file_that_is_not_utf8_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_bytes("name: Prüfung\n".encode("latin-1"))
    assert complaint(path) == "suite.yaml: is not UTF-8 text — save the file as UTF-8"


def test_a_missing_file_names_the_nearest_one(write: Write, tmp_path: Path) -> None:
    write(HEAD)
    assert complaint(
        tmp_path / "suit.yml"
    ) == f"suit.yml: no such file — did you mean {tmp_path / 'suite.yaml'}?".replace(f"{tmp_path}/", "")
    assert "give the path of a suite file" in complaint(tmp_path / "absent" / "other.yaml")


def test_a_folder_is_not_a_suite_file(tmp_path: Path) -> None:
    assert "is a directory, not a suite file — name the YAML file in it" in complaint(tmp_path)


def test_several_mistakes_are_several_lines_in_the_order_of_the_file(write: Write) -> None:
    said = complaint(
        write(
            "nam: docs\ndataset: data.jsonl\ntarget:\n  python: app:search\n  timeout_s: 0\n"
            "duplicates: x\nscorers:\n  - context_recal\nbatch_size: 0\n"
        )
    )
    assert [re.findall(r"^suite\.yaml:(\d+): ", line) for line in said.splitlines()] == [
        ["1"],
        ["1"],
        ["5"],
        ["6"],
        ["8"],
        ["9"],
    ]


def test_a_folder_with_a_colon_and_digits_does_not_disturb_the_order(tmp_path: Path) -> None:
    folder = tmp_path / "a:99"
    folder.mkdir()
    (folder / "suite.yaml").write_text(HEAD + "batch_size: 0\nduplicates: x\n", encoding="utf-8")
    first, second = complaint(folder / "suite.yaml").splitlines()
    assert first.startswith("suite.yaml:4: ")
    assert second.startswith("suite.yaml:5: ")


def test_several_mistakes_survive_pickling(write: Write) -> None:
    with pytest.raises(SuiteError) as caught:
        read_suite(write(HEAD + "batch_size: 0\nretries: -1\n"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.exit_code) == (str(caught.value), 2)


def test_an_unset_variable_names_line_field_and_mend_and_all_are_named_at_once(write: Write) -> None:
    said = complaint(write("name: ${NAME}\ndataset: d\ntarget:\n  python: a:b\n  version: v${MAJOR}\n"))
    assert said.splitlines() == [
        "suite.yaml:1: name: the environment variable NAME is not set — set it, or write ${NAME:-default}",
        "suite.yaml:5: target.version: the environment variable MAJOR is not set — set it, or write ${MAJOR:-default}",
    ]


@pytest.mark.parametrize(
    ("written", "environment", "read"),
    [
        ("${V}", {"V": "v2"}, "v2"),
        ("a-${V}-${W}", {"V": "1", "W": "2"}, "a-1-2"),
        ("${V:-dev}", {}, "dev"),
        ("${V:-dev}", {"V": "v2"}, "v2"),
        ("${V:-dev}", {"V": ""}, "dev"),
        ("x${V:-}", {}, "x"),
        ("x${V}", {"V": ""}, "x"),
        ("$${V}", {}, "${V}"),
        ("$${V:-x} ${W}", {"W": "w"}, "${V:-x} w"),
        ("${V}", {"V": "${W}", "W": "no"}, "${W}"),
        ("${V:-${W:-dev}}", {}, "dev"),
        ("${V:-${W}}", {"W": "w"}, "w"),
        ("${V:-a:b/c d}", {}, "a:b/c d"),
        ("$V costs $5", {"V": "no"}, "$V costs $5"),
    ],
)
def test_variables_are_filled_as_a_shell_would(
    write: Write, written: str, environment: dict[str, str], read: str
) -> None:
    path = write(f"name: docs\ndataset: d\ntarget:\n  python: a:b\n  version: '{written}'\n")
    assert suite_of(path, **environment).target.version == read


@pytest.mark.parametrize("slip", ["${V:dev}", "${}", "${V-dev}", "${V", "${1}", "${V:-${W:-${X}}}"])
def test_what_is_nearly_a_variable_is_refused_rather_than_taken_as_text(write: Write, slip: str) -> None:
    said = complaint(write(f"name: docs\ndataset: d\ntarget:\n  python: a:b\n  version: '{slip}'\n"))
    assert said.startswith("suite.yaml:5: target.version: ${")
    assert "write ${NAME} or ${NAME:-default}" in said


def test_variables_are_filled_in_lists_and_numbers_too(write: Write) -> None:
    suite = suite_of(
        write(HEAD + "batch_size: ${N:-8}\ncontexts:\n  static: ['${A}', 'b']\njudge: {params: {x: {y: ['${A}']}}}\n"),
        A="one",
    )
    assert suite.batch_size == 8
    assert suite.contexts is not None
    assert suite.contexts.static == ["one", "b"]
    assert suite.judge.params == {"x": {"y": ["one"]}}


def test_the_document_keeps_variables_unresolved(write: Write) -> None:
    path = write("name: docs\ndataset: ${D}\ntarget: {python: 'a:b', version: '$${x}'}\njudge: {base_url: '${URL}'}\n")
    file = read_suite(path, environment={"D": "data.jsonl", "URL": "http://user:secret@host"})
    assert file.suite.judge.base_url == "http://user:secret@host"
    assert "secret" not in repr(file.document)
    assert file.document["dataset"] == "${D}"
    assert file.document["target"]["version"] == "$${x}"


@pytest.mark.parametrize("name", ["1.10", "no", "on", "007", "1e5", "2024-01-01", "0x1F", "1_000", "true", "12:30:45"])
def test_names_stay_the_text_that_was_written(write: Write, name: str) -> None:
    suite = suite_of(
        write(f"name: {name}\ndataset: {name}\ntarget:\n  python: a:b\n  version: {name}\n  retriever: {name}\n")
    )
    assert (suite.name, suite.dataset.path, suite.target.version, suite.target.retriever) == (name,) * 4


def test_anchors_and_merge_keys_are_followed_and_own_keys_override(write: Write) -> None:
    suite = suite_of(
        write(
            HEAD
            + "scorers:\n"
            + "  - context_recall: &ten {scale: 10, name: recall10}\n"
            + "  - context_precision:\n      <<: *ten\n      name: precision10\n"
            + "  - context_precision: {<<: *ten, name: again}\n"
        )
    )
    assert [(scorer.kind, scorer.name, scorer.scale) for scorer in suite.scorers] == [
        ("context_recall", "recall10", 10),
        ("context_precision", "precision10", 10),
        ("context_precision", "again", 10),
    ]


def test_a_key_that_stands_twice_beside_a_merge_key_is_still_refused(write: Write) -> None:
    said = complaint(
        write(HEAD + "scorers:\n  - context_recall: &o {scale: 2}\n  - context_precision: {<<: *o, name: a, name: b}\n")
    )
    assert said.startswith("suite.yaml:6: `name` stands twice")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_line_endings_and_a_byte_order_mark_do_not_matter(write: Write, ending: str, start: str) -> None:
    path = write(start + HEAD.replace("\n", ending) + f"batch_size: 3{ending}")
    assert suite_of(path).batch_size == 3
    assert complaint(write(start + HEAD.replace("\n", ending) + f"batch_size: x{ending}")).startswith("suite.yaml:4: ")


def test_parts_may_be_bare_text(write: Write) -> None:
    suite = suite_of(write(HEAD + "judge: openai/gpt-5-mini\ncontexts: hits[*].text\n"))
    assert suite.dataset.path == "data.jsonl"
    assert suite.judge.model == "openai/gpt-5-mini"
    assert suite.contexts is not None
    assert suite.contexts.path == "hits[*].text"


def test_a_bare_part_that_is_empty_is_found_at_its_own_line(write: Write) -> None:
    said = complaint(write("name: docs\ntarget: {python: 'a:b'}\ndataset: ''\n"))
    assert said == "suite.yaml:3: dataset: is empty — write a value"


def test_left_out_parts_have_the_documented_defaults(write: Write) -> None:
    suite = suite_of(write(HEAD))
    assert [scorer.name for scorer in suite.scorers] == ["context_recall", "context_precision"]
    assert (suite.judge.model, suite.gate.coverage, suite.missing_reference, suite.duplicates, suite.batch_size) == (
        "offline",
        0.95,
        "zero",
        "count",
        25,
    )


def test_relative_paths_start_at_the_suite_file(write: Write, tmp_path: Path) -> None:
    assert read_suite(write(HEAD)).base_dir == tmp_path.resolve()


def test_a_suite_given_as_a_mapping_names_fields_without_lines() -> None:
    document: dict[str, Any] = {"name": "d", "dataset": "d", "target": {"python": "a:b"}, "scorers": ["context_recal"]}
    with pytest.raises(SuiteError, match=r"^suite: scorers\.0: 'context_recal' is not known here"):
        check_suite(document)
    good = check_suite({**document, "scorers": ["context_recall"]})
    assert isinstance(good, SuiteFile)
    assert good.path is None


def test_the_page_of_the_suite_shows_targets_over_defaults(tmp_path: Path) -> None:
    (suite,) = suites_of("suite.md", tmp_path)
    targets = [file.suite.target for file in read_suites(suite)]
    assert [(each.version, each.retriever, each.concurrency, each.timeout_s) for each in targets] == [
        ("small", "docs-search", 4, 20),
        ("large", "docs-search", 4, 60),
    ]
