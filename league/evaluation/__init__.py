"""Downstream evaluation: published benchmarks as suites, who answers them, and what the answers are worth."""
