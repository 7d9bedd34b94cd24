"""A judge against people: labelled verdicts, agreement with its uncertainty, and drift since last time."""

from ragscore.calibration.agreement import Agreement, agreement_of
from ragscore.calibration.drift import Drift, drift_of
from ragscore.calibration.judging import Judged, judged_labels
from ragscore.calibration.labels import Label, labels_hash, read_labels, write_labels
from ragscore.calibration.sampling import labels_of_run

__all__ = [
    "Agreement",
    "Drift",
    "Judged",
    "Label",
    "agreement_of",
    "drift_of",
    "judged_labels",
    "labels_hash",
    "labels_of_run",
    "read_labels",
    "write_labels",
]
