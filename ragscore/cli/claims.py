"""`ragscore claims`: look at the frozen claims of a suite's dataset, and bring them up to date."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ragscore.cli.options import Json
from ragscore.counting import counted

if TYPE_CHECKING:
    from ragscore.assembly import Parts
    from ragscore.judges.claims_review import Extracted, Reference
    from ragscore.judges.frozen_claims import FrozenClaims

claims = App(name="claims", help="List, show, compare and refresh the frozen claims of a suite's dataset.")

Items = Annotated[list[str] | None, Parameter(name="--item", negative="")]
Flag = Annotated[bool, Parameter(negative="")]


@claims.command(name="list")
def list_(suite: Path, /, *, json: Json = False) -> int:
    """List the references of the dataset: how many claims each has, and where they come from.

    Parameters
    ----------
    suite
        The suite file (YAML).
    """
    from ragscore.judges.claims_review import references, strays

    with _opened(suite, asks=False) as (parts, frozen):
        known = references(parts.dataset.items, frozen)
        left = strays(parts.dataset.items, frozen)
        if json:
            rows = [_row(each) for each in known]
            unused = [{"hash": each.hash, "input": each.input, "claims": list(each.claims)} for each in left]
            _write_json({"file": str(frozen.file.path), "claims": rows, "unused": unused})
            return 0
        _print_table(known)
        missing = sum(each.origin == "missing" for each in known)
        _say(f"\n{frozen.file.path}: {len(known) - missing} of {len(known)} references have claims")
        if left:
            _say(f"{len(left)} lines belong to no item of this suite")
    return 0


@claims.command
def show(suite: Path, item: str, /, *, json: Json = False) -> int:
    """Show the reference of one item and its claims.

    Parameters
    ----------
    suite
        The suite file (YAML).
    item
        The id of an item.
    """
    from ragscore.judges.claims_review import of_items, references

    with _opened(suite, asks=False) as (parts, frozen):
        (reference,) = of_items(references(parts.dataset.items, frozen), [item])
        if json:
            _write_json(_row(reference))
            return 0
        _say(f"{', '.join(reference.item_ids)}  {_described(reference)}")
        _say(f"question   {reference.item.input}")
        _say(f"reference  {reference.item.reference or ''}")
        for number, claim in enumerate(reference.claims or (), start=1):
            _say(f"  {number}. {claim}")
    return 0


@claims.command
def diff(suite: Path, /, *, item: Items = None, json: Json = False) -> int:
    """Ask the judge, without memory, which claims it would extract now, and compare them with the frozen ones.

    Parameters
    ----------
    suite
        The suite file (YAML).
    item
        Only the references of these items.
    """
    from ragscore.judges.claims_review import differences, of_items, references

    with _opened(suite, asks=True) as (parts, frozen):
        wanted = of_items(references(parts.dataset.items, frozen), item or [])
        import asyncio

        extracted = asyncio.run(_asked(parts, wanted))
        found = differences(wanted, extracted, frozen)
        by_hash = {each.hash: each for each in wanted}
        if json:
            rows = [
                {**_row(by_hash[each.hash]), "added": list(each.added), "removed": list(each.removed)} for each in found
            ]
            _write_json({"differences": rows, **_failures(wanted, extracted)})
        else:
            for each in found:
                reference = by_hash[each.hash]
                _say(f"{', '.join(reference.item_ids)}  {_described(reference)}")
                for sign, texts in (("-", each.removed), ("+", each.added)):
                    for text in texts:
                        _say(f"  {sign} {text}")
            asked = len(extracted.judgements)
            _say(f"{len(found)} of {asked} references would have other claims{_cost(extracted)}")
            _complain(wanted, extracted)
    return 3 if extracted.failed else 0


@claims.command
def refresh(
    suite: Path, /, *, item: Items = None, missing: Flag = False, force: Flag = False, json: Json = False
) -> int:
    """Extract claims anew and freeze them in the place of the old ones. What a person edited stays, unless --force.

    Parameters
    ----------
    suite
        The suite file (YAML).
    item
        Only the references of these items.
    missing
        Only references that have no claims yet.
    force
        Replace edited claims, too.
    """
    from ragscore.judges.claims_review import freeze, of_items, references

    with _opened(suite, asks=True) as (parts, frozen):
        wanted = of_items(references(parts.dataset.items, frozen), item or [])
        # An edit that is to stay need not be paid for.
        wanted = [each for each in wanted if each.origin == "missing" or (not missing and each.origin != "item")]
        edited = [each for each in wanted if each.origin == "edited" and not force]
        wanted = [each for each in wanted if each not in edited]
        import asyncio

        extracted = asyncio.run(_asked(parts, wanted))
        changed, kept = freeze(wanted, extracted, frozen, force=force)
        kept = [*edited, *kept]
        if json:
            told = {
                "file": str(frozen.file.path),
                "changed": [each.item.id for each in changed],
                "kept_edits": [each.item.id for each in kept],
            }
            _write_json({**told, **_failures(wanted, extracted)})
        else:
            asked = len(extracted.judgements)
            _say(f"{frozen.file.path}: {len(changed)} of {asked} references changed{_cost(extracted)}")
            if kept:
                names = ", ".join(each.item.id for each in kept)
                _say(f"kept as a person edited them: {names} (--force replaces them)")
            _complain(wanted, extracted)
    return 3 if extracted.failed else 0


@contextmanager
def _opened(suite: Path, *, asks: bool) -> Iterator[tuple[Parts, FrozenClaims]]:
    """The parts of a suite; to look at claims neither a key nor complete claims are needed."""
    from ragscore.assembly import assemble
    from ragscore.judges.frozen_claims import FrozenClaims
    from ragscore.suite_file import read_suites

    file = read_suites(suite)[0].changed(frozen_claims=False)  # its targets share the dataset
    parts = assemble(file if asks else file.changed(judge="offline"))
    try:
        assert isinstance(parts.claims, FrozenClaims)
        yield parts, parts.claims
    finally:
        import asyncio

        asyncio.run(parts.judging.aclose())


async def _asked(parts: Parts, wanted: list[Reference]) -> Extracted:
    from ragscore.judges.claims_review import Extracted, extract

    if not wanted:
        return Extracted({})
    try:
        await parts.judging.prepare()
        return await extract(parts.judging.model or parts.judge, wanted)
    finally:
        if parts.judging.model is not None:
            await parts.judging.model.aclose()


def _row(reference: Reference) -> dict[str, Any]:
    entry = reference.entry
    return {
        "item_id": reference.item.id,
        "item_ids": list(reference.item_ids),
        "hash": reference.hash,
        "origin": reference.origin,
        "claims": None if reference.claims is None else list(reference.claims),
        "judge": entry.judge if entry is not None else None,
        "prompt": entry.prompt if entry is not None else None,
    }


def _described(reference: Reference) -> str:
    by = f" from {reference.entry.judge}" if reference.entry is not None and reference.entry.judge else ""
    words = {
        "item": "written in the dataset",
        "missing": "no claims yet",
        "edited": f"edited by a person{by and ','}{by}",
    }
    return words.get(reference.origin, f"frozen{by}")


def _print_table(known: list[Reference]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ragscore.report.layout import console, visible

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("item", "claims", "origin", "question"):
        table.add_column(column, justify="right" if column == "claims" else "left", no_wrap=column != "question")
    for each in known:
        count = "" if each.claims is None else str(len(each.claims))
        more = f" +{len(each.item_ids) - 1}" if len(each.item_ids) > 1 else ""
        cells = (f"{each.item.id}{more}", count, _described(each), each.item.input)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    console().print(table)


def _failures(wanted: list[Reference], extracted: Extracted) -> dict[str, Any]:
    ids = {each.hash: each.item.id for each in wanted}
    usage = extracted.usage
    return {
        "failed": {ids[hash]: why for hash, why in extracted.failed.items()},
        "calls": usage.calls,
        "cost_usd": usage.cost_usd,
    }


def _complain(wanted: list[Reference], extracted: Extracted) -> None:
    ids = {each.hash: each.item.id for each in wanted}
    for hash, why in extracted.failed.items():
        sys.stderr.write(f"error: {ids[hash]}: the claims could not be extracted: {why}\n")


def _cost(extracted: Extracted) -> str:
    usage = extracted.usage
    money = "" if not usage.calls else ", cost unknown" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
    return f" ({counted(usage.calls, 'call')}{money})"


def _write_json(value: Any) -> None:
    sys.stdout.write(json_.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _say(text: str) -> None:
    from ragscore.report.layout import visible

    sys.stdout.write(f"{visible(text)}\n")
