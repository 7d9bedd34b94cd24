"""Past results of other tools, taken into the history so that a trend does not begin at zero."""

from ragscore.foreign.importing import Imported, import_results
from ragscore.foreign.results import ForeignResults, read_results

__all__ = ["ForeignResults", "Imported", "import_results", "read_results"]
