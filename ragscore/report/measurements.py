"""What is measured about judges, on the terminal and as JSON: noise, and agreement with people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from ragscore.calibration import Judged
from ragscore.calibration.measuring import Calibration
from ragscore.counting import counted
from ragscore.noise import Noise
from ragscore.report.layout import Words, add_row, heading, indented, print_table, table_of
from ragscore.scorers.reasons import shortened

_SHOWN = {
    "balanced_accuracy": "balanced accuracy",
    "kappa": "Cohen's kappa",
    "mcc": "MCC",
    "precision": "precision",
    "recall": "recall",
    "specificity": "specificity",
}


def print_noise(noise: Noise, out: Console) -> None:
    """How often verdicts flip, how far means spread, and which drop is noise."""
    heading(out, f"noise of {noise.judge}", f"run {noise.run.run_id}, judged {noise.repeats} times")
    table = table_of("scorer", "items", "verdicts that flip", "means", "spread", "smallest drop that is not noise")
    for each in noise.scorers:
        of = each.scale
        flips = "–"
        if each.flip_rate is not None and (interval := each.flip_interval) is not None:
            flips = f"{each.flipped} of {each.verdicts} ({interval.low:.1%} to {interval.high:.1%})"
        means = ", ".join(f"{mean * of:.3f}" for mean in each.means)
        spread = "–" if each.spread is None else f"{each.spread * of:.3f}"
        add_row(
            table,
            each.scorer,
            str(each.n),
            flips,
            means,
            spread,
            "–" if each.floor is None else f"{each.floor * of:.3f}",
        )
    print_table(out, table)
    for each in noise.scorers:
        if each.left_out:
            out.print(Words(f"! {each.scorer}: {each.left_out} items were not scored in every repeat", style="yellow"))
        if each.flipping:
            out.print(
                Words(f"{each.scorer}: least stable: {', '.join(each.flipping[:5])}", style="dim"), soft_wrap=True
            )
    if noise.is_deterministic:
        out.print(Words("the offline judge decides by words alone: it has no noise by construction"), soft_wrap=True)
    cost = "unknown" if noise.usage.cost_usd is None else f"${noise.usage.cost_usd:.4f}"
    out.print(
        Words(f"judge: {counted(noise.usage.calls, 'call')}, cost {cost}; kept for the gate", style="dim"),
        soft_wrap=True,
    )


def noise_dict(noise: Noise) -> dict[str, Any]:
    """The noise as JSON; scores in the scorer's scale."""
    return {
        "run_id": noise.run.run_id,
        "suite": noise.run.suite,
        "judge": noise.judge,
        "repeats": noise.repeats,
        "deterministic": noise.is_deterministic,
        "calls": noise.usage.calls,
        "cost_usd": noise.usage.cost_usd,
        "scorers": [
            {
                "scorer": each.scorer,
                "n": each.n,
                "left_out": each.left_out,
                "verdicts": each.verdicts,
                "flipped": each.flipped,
                "flip_rate": each.flip_rate,
                "means": [mean * each.scale for mean in each.means],
                "spread": None if each.spread is None else each.spread * each.scale,
                "floor": None if each.floor is None else each.floor * each.scale,
                "flipping": list(each.flipping),
            }
            for each in noise.scorers
        ],
    }


def print_calibration(kinds: Sequence[Calibration], found: Judged, out: Console, *, most: int) -> None:
    """Per kind of verdict the table, the figures, drift, and the disagreements to read."""
    for each in kinds:
        word = "supported" if each.kind == "claim" else "relevant"
        heading(
            out, f"{each.judge} against people: {each.kind}s", f"{each.agreement.n} verdicts · {each.prompt_version}"
        )
        table = table_of("", f"judge: {word}", f"judge: not {word}")
        add_row(table, f"people: {word}", str(each.agreement.true_positive), str(each.agreement.false_negative))
        add_row(table, f"people: not {word}", str(each.agreement.false_positive), str(each.agreement.true_negative))
        print_table(out, table)
        figures = table_of("figure", "value", "95% interval")
        for name, value in each.agreement.figures.items():
            interval = each.agreement.intervals.get(name)
            shown = "–" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"
            add_row(figures, _SHOWN[name], "–" if value is None else f"{value:.3f}", shown)
        print_table(out, figures)
        for note in _notes(each):
            out.print(Words(note, style="bold red" if note.startswith("! drift") else "dim"), soft_wrap=True)
        if each.disagreements and most:
            out.print(Words(f"disagreements: {len(each.disagreements)}", style="bold"))
        for label in each.disagreements[:most]:
            said = (
                f"people: {word if label.human else f'not {word}'}; judge: {word if label.verdict else f'not {word}'}"
            )
            where = f"{label.item_id}  " if label.item_id else ""
            indented(out, f"{where}{said}", 2)
            indented(out, shortened(label.text, 300), 4, style="dim")
            if label.note:
                indented(out, f"judge: {shortened(label.note, 300)}", 4, style="dim")
    for failure in found.failures[:most]:
        out.print(Words(f"! not judged: {shortened(failure, 300)}", style="yellow"), soft_wrap=True)


def _notes(each: Calibration) -> list[str]:
    notes = []
    if each.drift is not None:
        drift = each.drift
        changed = " (the judge's prompt changed since)" if drift.prompt_changed else ""
        said = (
            f"since {drift.since}, {drift.shared} labels judged both times: {drift.lost} told right then and wrong now,"
            f" {drift.won} the other way; p {drift.p:.3g}{changed}"
        )
        notes.append(f"! drift: agreement fell {said}" if drift.drifted else f"no drift {said}")
    if each.unlabelled:
        notes.append(f"{each.unlabelled} rows have no verdict of a person")
    if each.undecided:
        notes.append(f"{each.undecided} rows have no verdict of the judge")
    if each.sampled:
        notes.append(
            f"{each.sampled} rows were chosen because the judge was in doubt: on all verdicts it likely agrees more"
        )
    return notes


def calibration_dict(kinds: Sequence[Calibration], found: Judged) -> dict[str, Any]:
    """The calibration as JSON."""
    return {
        "calls": found.usage.calls,
        "cost_usd": found.usage.cost_usd,
        "failures": list(found.failures),
        "kinds": [
            {
                "kind": each.kind,
                "judge": each.judge,
                "prompt_version": each.prompt_version,
                **each.agreement.as_dict(),
                "drift": None
                if each.drift is None
                else {
                    "drifted": each.drift.drifted,
                    "since": each.drift.since,
                    "shared": each.drift.shared,
                    "lost": each.drift.lost,
                    "won": each.drift.won,
                    "p": each.drift.p,
                },
                "unlabelled": each.unlabelled,
                "undecided": each.undecided,
                "sampled": each.sampled,
                "disagreements": [
                    {
                        "item_id": label.item_id,
                        "question": label.question,
                        "text": label.text,
                        "human": label.human,
                        "verdict": label.verdict,
                        "why": label.note,
                    }
                    for label in each.disagreements
                ],
            }
            for each in kinds
        ],
    }
