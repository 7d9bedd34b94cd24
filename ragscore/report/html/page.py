"""The page itself: templates with autoescape, one style, one script, and the data of the items."""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import ragscore
from ragscore.gate import said_of
from ragscore.items import Status
from ragscore.report.comparison_formats import left_out, moved
from ragscore.report.html.contents import Contents
from ragscore.report.html.entries import MOST_RUNS
from ragscore.report.html.texts import Packed, packed
from ragscore.report.html.wording import in_words, readable
from ragscore.report.layout import visible
from ragscore.report.summary import coverage_shown, mean_shown
from ragscore.scorer_kinds import LESS_IS_BETTER
from ragscore.scorers import band, rounded
from ragscore.scorers.arithmetic import as_fraction
from ragscore.scorers.reasons import shortened

#: Bytes of a page of up to 1,000 items; one of more may be larger in proportion.
BYTES = 1_950_000
#: Items that each list of a comparison shows.
MOST_PAIRS = 20
#: Of those, how many are not folded away.
OPEN_PAIRS = 5


def render(contents: Contents) -> str:
    """The report as one HTML document that loads nothing; whatever comes from outside is shown as text."""
    bare = len(_page(contents, Packed("", 0, 0)).encode("utf-8", "replace"))  # what is left of the bytes is for texts
    budget = int(BYTES * max(1.0, len(contents.entries) / 1_000)) - bare
    return _page(contents, packed(contents.texts, lambda texts, length, cut: _data(contents, texts), budget=budget))


def _page(contents: Contents, data: Packed) -> str:
    script = _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("report.html")
        .render(
            c=contents,
            run=contents.run,
            data=data.data,
            packed=data,
            script=Markup(script),  # ours, and named by its hash in the policy of the page
            style=Markup(_part("style.css")),
            digest=digest,
            made=datetime.now(UTC),
            program=ragscore.__version__,
            scored=[each.scorer for each in contents.summary.scorers],
            most_pairs=MOST_PAIRS,
            open_pairs=OPEN_PAIRS,
            most_runs=MOST_RUNS,
            notes=_notes(contents, data),
        )
    )


def write_report(contents: Contents, file: Path) -> int:
    """Write the report to `file`, replaced as a whole when it is there; the number of bytes.

    Raises:
        OSError: It cannot be written.
    """
    made = render(contents).encode("utf-8", "replace")
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(made)
        Path(name).chmod(0o644)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return len(made)


def _data(contents: Contents, texts: list[str]) -> Mapping[str, Any]:
    changes: dict[str, dict[str, float]] = {}
    if contents.comparison is not None:
        for each in contents.comparison.scorers:
            for pair in each.pairs:
                if pair.change:
                    changes.setdefault(pair.after.item_id, {})[each.scorer] = round(float(pair.change), 4)
    return {
        "scorers": [
            {
                "n": each.scorer,
                "scale": each.scale,
                "less": each.kind in LESS_IS_BETTER,
            }
            for each in contents.summary.scorers
        ],
        "hashed": contents.run.store_text == "hash",
        "texts": texts,
        "items": [
            {
                **entry.details,
                "at": entry.position,
                "low": None if entry.lowness is None else round(float(entry.lowness), 6),
                "miss": entry.missing,
                "cost": entry.cost_usd,
                "change": changes.get(entry.item_id, {}),
            }
            for entry in contents.entries
        ],
        "time": contents.over_time,
    }


def _notes(contents: Contents, data: Packed) -> list[str]:
    notes = []
    if contents.left_out:
        notes.append(
            f"This page holds the {len(contents.entries)} items with the lowest scores; {contents.left_out} more are in"
            " the history. Figures are over all of them."
        )
    if data.length is not None:
        notes.append(
            f"{data.cut} long texts are cut to {data.length:,} characters and the places that are quoted; "
            "the history has them whole."
        )
    if contents.run.store_text == "hash":
        notes.append("This run keeps fingerprints instead of texts (store_text: hash), so that no text can be shown.")
    return notes


@cache
def _part(name: str) -> str:
    return (files("ragscore.report.html") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("ragscore.report.html", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(
        scaled=_scaled,
        scaled_float=lambda value, scale: "–" if value is None else f"{value * scale:.2f}",
        signed=_signed,
        mean=lambda each: "–" if each.mean_exact is None else mean_shown(each.mean_exact, each.scale).split()[0],
        band=lambda each: "no score" if each.mean_exact is None else band(as_fraction(round(each.mean_exact, 12))),
        coverage=lambda share: "–" if share is None else coverage_shown(share),
        money=_money,
        millis=_millis,
        readable=readable,
        short=lambda text, most=160: shortened(text or "", most),
        deep=lambda item_id: "#item=" + quote(item_id, safe=""),
        day=lambda when: f"{when:%Y-%m-%d}",
        minute=lambda when: f"{when:%Y-%m-%d %H:%M} UTC",
        percent=lambda share: "–" if share is None else f"{share:.1%}",
        moved=moved,
    )
    made.globals.update(said_of=said_of, in_words=in_words, left_out=left_out, OK=Status.OK, SIGNS=_SIGNS)
    return made


_SIGNS = {"pass": "✓", "fail": "✗", "inconclusive": "?"}


def _shown(value: Any) -> Any:
    """What is put into the page: control characters as their pictures, since HTML has no way to hold them."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return visible(value.replace("\r\n", "\n"))


def _scaled(exact: Fraction | None, scale: float) -> str:
    return "–" if exact is None else f"{rounded(exact, as_fraction(scale)):.2f}"


def _signed(value: float | None) -> str:
    """A change with its sign; what is 0.00 has none."""
    if value is None:
        return "–"
    return f"{value:+.2f}".replace("-", "−") if round(value, 2) else "0.00"


def _money(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"${value:.2f}" if value >= 1 or not value else f"${value:.4f}"


def _millis(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms"
