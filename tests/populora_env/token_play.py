"""Ways to play the token face in tests: random, by script, and programs drawn by hypothesis."""

import numpy as np
from hypothesis import strategies as st
from scripted_judge import OK, WRONG, ScriptedJudge

from populora_env.token_derivation import derive_program_and_input
from populora_env.token_grammar import Token
from populora_env.token_printing import print_program, read_argument
from populora_env.token_seeds import finish_randomly

ADD_ONE = (Token.TAKES_INT, Token.RETURN, Token.ADD, Token.DIGIT_1)
"""def f(x): return x + 1"""
PROPOSAL = (*ADD_ONE, Token.DIGIT_2)
"""The same, with the input 2."""


def derived_program():
    """Programs of the grammar, as random play writes them."""

    def derive(seed):
        derivation = derive_program_and_input(24, 16)
        finish_randomly(derivation, np.random.default_rng(seed))
        return print_program(derivation.done[0])

    return st.integers(0, 2**32).map(derive)


def input_tokens(*values):
    """Return the tokens of arguments, one after the other."""
    return [token for value in values for token in read_argument(f"({value!r},)")[1]]


def random_episode(env, rng):
    """Play an AEC episode with legal tokens drawn from `rng`; `env` has been reset."""
    while env.agents:
        observation, _, terminated, _, _ = env.last()
        env.step(None if terminated else int(rng.choice(np.flatnonzero(observation["action_mask"]))))


class DigitSum(ScriptedJudge):
    """Answers are right if their digits add up to at least 5."""

    def check_answers(self, attempts, *, owners=None):
        """Judge by the digits."""
        self.owners.append(owners)
        sums = [sum(map(int, filter(str.isdigit, answer.text))) for _, answer in attempts]
        return [OK if total >= 5 else WRONG for total in sums]
