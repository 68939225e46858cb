"""What `benchmarks/verifier.py` compares: our verifier, and what people use in its place."""
