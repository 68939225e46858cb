"""Runs untrusted Python; see README.md here for what it promises and what it does not stop."""
