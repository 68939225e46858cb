"""Whether a population escapes self-calibration: arms, runs, what is kept of them, claims and the document."""
