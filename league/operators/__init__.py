"""Evolution in LoRA space: operators that make a child adapter of one or two parents."""

from league.operators.own import Operator
from league.operators.table import OPERATORS, apply, check_parents, find_operator, usable

__all__ = ["OPERATORS", "Operator", "apply", "check_parents", "find_operator", "usable"]
