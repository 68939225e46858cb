"""Evolution in LoRA space: operators that make a child adapter of one or two parents."""

from league.operators.table import OPERATORS, Operator, apply, check_parents

__all__ = ["OPERATORS", "Operator", "apply", "check_parents"]
