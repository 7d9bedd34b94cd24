"""The report as one HTML file that needs nothing else: no network, no server, no other file."""

from ragscore.report.html.contents import Contents, contents_of
from ragscore.report.html.page import render, write_report

__all__ = ["Contents", "contents_of", "render", "write_report"]
