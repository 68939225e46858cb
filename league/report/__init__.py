"""A run as one page to look at: `python -m league.report RUN [RUN ...]` (docs/report.md)."""
