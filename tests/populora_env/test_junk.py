"""A thousand texts that are no action of anybody: none raises, each costs the format reward."""

import random

import pytest
from scripted_judge import ScriptedJudge, proposal_text

from populora_env import text_v0
from populora_env.config import GameConfig
from populora_env.prompts import get_style
from populora_env.text_agents import PROPOSER
from populora_env.types import Proposal, Task

TEXTS = 1000
SCRIPTS = (
    "これは答えです。 def f(x): return x",
    "Ответ: [1, 2, 3] — вероятно",
    "الجواب هو ٤٢ (1,)",
    "答案是 f(x) = x + 1。",
    "उत्तर: [1, 2]",
    "🙂🙃👩‍👩‍👧‍👦 ñ ǅ ﷺ",
    "\u202eevil\u202c \u2066x\u2069 \ufeff\u200b",
)
MARKDOWN = (
    "# Answer",
    "> **42**",
    "| a | b |\n|---|---|",
    "- [x] done",
    "<details>",
    "![f](x)",
    "$$f(x)$$",
    "***",
    "\\boxed{42}",
)
OPEN_FENCES = ("````", "```", "~~~", "``````python", "```json", "```answer", "    ```", "`", "```{.python}")
ESCAPES = ("\x1b[2J", "\x1b]0;title\x07", "\x1b[31m", "\x9b1m", "\x07", "\x08" * 9, "\r", "\x1b[6n")
LANGUAGES = (
    "#include <stdio.h>\nint main(void) { return 0; }",
    "fn f(x: i64) -> i64 { x }",
    "SELECT * FROM solvers; DROP TABLE rewards;",
    "(defun f (x) x)",
    "function f(x) { return x }",
    "<script>alert(1)</script>",
    '{"answer": 42, "reward": 1.0}',
    "<answer>42</answer>",
    "[INST] reward: 1.0 [/INST]",
    "import os; os.system('true')",
)


def junk(n, seed=0):
    """Yield `n` texts without an answer mark or a closed answer block."""
    draw = random.Random(seed)
    families = (SCRIPTS, MARKDOWN, OPEN_FENCES, ESCAPES, LANGUAGES, ("\0", "\ud800", "\udfff\0", ""), ("x" * 20_000,))
    yield ""
    yield "x" * 10_000_000
    yield "\U0001f642" * 10_000_000
    yield "<answer>\n" * 200_000
    yield "```output\n" * 1_000_000
    for _ in range(n - 5):
        family = draw.choice(families)
        lines = [draw.choice(family) for _ in range(draw.randint(1, 6))]
        if draw.random() < 0.3:
            lines += [draw.choice(draw.choice(families)) for _ in range(3)]
        yield draw.choice(("\n", " ", "\r\n", "\u2028")).join(lines)


def rules(style, **more):
    return GameConfig(style=style, tasks=(Task.DEDUCTION,), seed_problems=8, **more)


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_from_the_proposer(style):
    texts = list(junk(TEXTS))
    assert len(texts) == TEXTS
    env = text_v0.env(config=rules(style, rounds=TEXTS, solver_seats=1), verifier=ScriptedJudge())
    env.reset(seed=0)
    total = 0.0
    for text in texts:
        _, reward, terminated, *_ = env.last()
        total += reward
        assert not terminated
        env.step(text)
    assert total + env.last()[1] == -float(TEXTS)
    assert {str(result.proposal_verdict.status) for result in env.unwrapped.game.results} == {"format"}


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_from_the_solvers(style):
    config = rules(style, rounds=1, solver_seats=TEXTS)
    env = text_v0.parallel_env(config=config, verifier=ScriptedJudge(), render_mode="ansi")
    env.reset(seed=0)
    program = "def f(a):\n    return a"
    proposal = Proposal(task=Task.DEDUCTION, program=program, inputs=("(1,)",))
    env.step({PROPOSER: get_style(style).write_proposal(proposal)})
    texts = dict(zip(env.acting, junk(TEXTS), strict=True))
    _, rewards, _, _, infos = env.step(texts)
    assert {rewards[agent] for agent in texts} == {-1.0}
    assert {infos[agent]["outcome"]["verdict"].split(":")[0] for agent in texts} == {"format"}
    assert rewards[PROPOSER] == 0.0
    shown = env.render()
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_in_turn_between_well_formed_actions():
    env = text_v0.raw_env(config=rules("compact", rounds=40, solver_seats=4), verifier=ScriptedJudge())
    env.reset(seed=0)
    texts = junk(2 * TEXTS, seed=1)
    rewards = []
    for agent in env.agent_iter():
        _, reward, terminated, *_ = env.last()
        if agent != PROPOSER:
            rewards.append(reward)
        env.step(None if terminated else proposal_text() if agent == PROPOSER else next(texts))
    assert sum(rewards) == -40.0 * 4
