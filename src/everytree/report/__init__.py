"""An HTML page about a fitted model: self-contained, readable without scripts, exact where it computes."""

from everytree.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
