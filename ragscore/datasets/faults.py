"""What is wrong with rows: one fault of one row, and all faults of a dataset at once."""

from __future__ import annotations

from ragscore.errors import DatasetError

FAULTS_SHOWN = 20


class RowFault(ValueError):
    """What is wrong with one row: `field`, what, and the mend."""

    def __init__(self, field: str, what: str, mend: str) -> None:
        super().__init__(what)
        self.field = field
        self.what = what
        self.mend = mend

    def at(self, place: str) -> str:
        """The fault as one line of text, with the place of its row."""
        return f"{place}: {self.field}: {self.what} — {self.mend}"


class DatasetErrors(DatasetError):
    """Several faulty rows at once, one line of text each; the first 20 and the count.

    Args:
        faults: One line of text per faulty row, in the order of the dataset.
        more: How many there are beyond those in `faults`.
        unit: What a row is called: `line`, `row`, `item`.
    """

    def __init__(self, faults: list[str], *, more: int = 0, unit: str = "line") -> None:
        super().__init__("; ".join(faults))
        self.faults = faults
        self.more = more
        self.unit = unit

    def __str__(self) -> str:
        shown = self.faults[:FAULTS_SHOWN]
        if rest := len(self.faults) - len(shown) + self.more:
            shown = [*shown, f"… and {rest} more faulty {self.unit}s"]
        return "\n".join(shown)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (self.faults, self.more, self.unit))


def _rebuilt(faults: list[str], more: int, unit: str) -> DatasetErrors:
    return DatasetErrors(faults, more=more, unit=unit)
