"""The command line."""

from ragscore.cli.app import main

__all__ = ["main"]
