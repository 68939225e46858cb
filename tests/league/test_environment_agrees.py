"""The batched league and the environment pay the same for the same actions: both drive `populora_env.game`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from league.rounds import (
    PlayedRound,
    Room,
    Sampling,
    judge_answers,
    judge_proposals,
    propose,
    recall_proposals,
    solve,
)
from league.types import Match, Member, Side
from populora_agents.types import Completion, Request
from populora_env import text_v0
from populora_env.config import GameConfig, RewardConfig
from populora_env.game import Round
from populora_env.text_agents import PROPOSER
from populora_env.types import Task

CONFIG = GameConfig(rounds=24, solver_seats=3, seed_problems=24, rewards=RewardConfig(repeat_penalty=0.25))
SAMPLING = Sampling(seed=0, proposal_tokens=400, answer_tokens=200, temperature=1.0)


class Recorded:
    """A backend that says again what was said in the environment."""

    name = "recorded"

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        """Take one batch of texts a call."""
        self.batches = iter(texts)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the next batch."""
        return [
            Completion(request=request, prompt_ids=(), token_ids=(), logprobs=(), text=text, finish_reason="stop")
            for request, text in zip(requests, next(self.batches), strict=True)
        ]

    def close(self) -> None:
        """Hold nothing."""


def test_the_league_pays_what_the_environment_pays(verifier: Any) -> None:
    rounds, proposals, attempts, rewards = played_in_the_environment(verifier)
    match = Match(
        match_id=0,
        step=1,
        teacher=Member(member_id="teacher_0", side=Side.TEACHER, slot=0, version=0),
        student=Member(member_id="student_0", side=Side.STUDENT, slot=0, version=0),
        expected=0.5,
    )
    played = [
        PlayedRound(
            match=match,
            round=Round(task=item.task, references=item.references, config=CONFIG),
            proposal_id=f"p{number}",
            group_id="g",
        )
        for number, item in enumerate(rounds)
    ]
    backend, room = Recorded([proposals, attempts]), Room(None, lambda _: (), SAMPLING)
    propose(played, backend, SAMPLING)
    judge_proposals(played, verifier, room)
    solve(played, backend, SAMPLING)
    judge_answers(played, verifier)
    recall_proposals(played, {})
    results = [one.round.result() for one in played]
    assert results == [item.result() for item in rounds]
    paid = {PROPOSER: sum(result.proposer_reward for result in results)}
    for seat in range(CONFIG.solver_seats):
        paid[f"solver_{seat}"] = sum(r.solver_rewards[seat] for r in results if r.solver_rewards)
    assert paid == rewards
    statuses = {str(verdict.status) for result in results for verdict in result.attempt_verdicts}
    assert {"ok", "wrong", "format"} <= statuses
    assert any(result.problem is None for result in results)
    assert {result.repeated for result in results if result.task is not Task.INDUCTION} == {None, False, True}


def played_in_the_environment(verifier: Any) -> tuple[list[Round], list[str], list[str], dict[str, float]]:
    """Play, one seat cleverly; return rounds, proposals, attempts, and the rewards that an AEC loop read."""
    env = text_v0.env(config=CONFIG, verifier=verifier)
    env.reset(seed=0)
    rounds, proposals, attempts = [], [], []
    rewards = dict.fromkeys(env.possible_agents, 0.0)
    for place, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(place)
    for agent in env.agent_iter():
        _, reward, terminated, truncated, _ = env.last()
        rewards[agent] += reward
        if terminated or truncated:
            env.step(None)
            continue
        text = env.action_space(agent).sample()
        if agent == "solver_0" and len(attempts) % 2:
            text = right_answer(env.unwrapped.game.round)
        if agent == PROPOSER and (said := same_program(rounds, proposals, env.unwrapped.game.round)):
            text = said
        if agent == PROPOSER:
            rounds.append(env.unwrapped.game.round)
            proposals.append(text)
        else:
            attempts.append(text)
        env.step(text)
    return rounds, proposals, attempts, rewards


def same_program(rounds: list[Round], proposals: list[str], item: Round) -> str | None:
    """Return, in some rounds, what made the last valid problem with a program of its own, of another task or not."""
    own = [(one, text) for one, text in zip(rounds, proposals, strict=True) if one.task is not Task.INDUCTION]
    valid = [text for one, text in own if one.problem is not None]
    return valid[-1] if valid and item.task is not Task.INDUCTION and len(rounds) % 5 == 0 else None


def right_answer(item: Round) -> str:
    assert item.problem is not None
    gold = {
        Task.DEDUCTION: item.problem.outputs[0],
        Task.ABDUCTION: item.problem.inputs[0],
        Task.INDUCTION: item.problem.program,
    }
    return f"<answer>\n{gold[item.task]}"
