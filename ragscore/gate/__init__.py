"""Better or worse? Pairs of runs, the rule about drops, and the gate of a suite (DESIGN §7)."""

from ragscore.gate.baselines import LAST_PASSING, Baseline, find_baseline, require_baselines
from ragscore.gate.evaluation import evaluate_gate, question_of, said_of
from ragscore.gate.keeping import NoiseFloor, comparison_rows, noise_floors
from ragscore.gate.pairs import Move, Pair, PairedRuns, ScorerComparison, pair_runs
from ragscore.gate.result import Check, GateResult, kept_exit_code
from ragscore.gate.rule import ALPHA, Answer, Question, Verdict, answers

__all__ = [
    "ALPHA",
    "LAST_PASSING",
    "Answer",
    "Baseline",
    "Check",
    "GateResult",
    "Move",
    "NoiseFloor",
    "Pair",
    "PairedRuns",
    "Question",
    "ScorerComparison",
    "Verdict",
    "answers",
    "comparison_rows",
    "evaluate_gate",
    "find_baseline",
    "kept_exit_code",
    "noise_floors",
    "pair_runs",
    "question_of",
    "require_baselines",
    "said_of",
]
