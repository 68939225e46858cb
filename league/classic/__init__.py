"""The same league on games whose answer is known; `python -m league.classic`."""
