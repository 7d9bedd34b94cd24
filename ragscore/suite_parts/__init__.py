"""The parts of a suite, as users write them; `ragscore.suite` puts them together."""
