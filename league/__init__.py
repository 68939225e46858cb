"""Populations of adapters that teach and solve, rate each other, and evolve. Modules are loaded when they are named."""
