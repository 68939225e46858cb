"""Tests of `populora_env.judging`: any number of rounds, one call to the judge."""

import pytest
from scripted_judge import ScriptedJudge, answer_text, proposal_text

from populora_env.config import GameConfig
from populora_env.game import Phase, Round
from populora_env.judging import HeldJudge, judge_attempts, judge_proposals, play_round
from populora_env.types import ProposalVerdict, Status, Task, Verdict

CONFIG = GameConfig(solver_seats=2)


def open_round():
    return Round(task=Task.DEDUCTION, references=(), config=CONFIG)


def always(text):
    return lambda _: text


def result_of(proposal, *answers):
    solvers = [always(text) for text in answers]
    return play_round(open_round(), proposer=always(proposal), solvers=solvers, judge=ScriptedJudge())


def test_a_round_is_played_by_policies():
    result = result_of(proposal_text(), answer_text("'right'"), answer_text("3"))
    assert (result.solve_rate, result.proposer_reward, result.solver_rewards) == (0.5, 0.5, (1.0, -0.5))
    assert result_of("nonsense", "", "").proposer_reward == -1.0
    assert result_of(proposal_text("return invalid"), "", "").proposer_reward == -1.0
    with pytest.raises(ValueError, match="must hold 2"):
        result_of(proposal_text(), "")


def test_a_batch_is_judged_in_one_call_and_agrees_with_single_rounds():
    proposals = [proposal_text(), "nonsense", proposal_text("return invalid"), proposal_text("return 1")]
    answers = [answer_text("'right'"), "nonsense"]
    judge, rounds = ScriptedJudge(), [open_round() for _ in proposals]
    for item, text in zip(rounds, proposals, strict=True):
        item.propose(text)
    judge_proposals(rounds, judge)
    for item in rounds:
        for text in answers if not item.settled else ():
            item.attempt(text)
    judge_attempts(rounds, judge)
    assert judge.calls == [("proposals", 3), ("answers", 2)]
    assert [item.result() for item in rounds] == [result_of(text, *answers) for text in proposals]


def test_a_judge_is_told_whose_the_programs_are_that_run():
    """Of an abduction problem the proposer's runs, else the solvers'."""
    judge = ScriptedJudge()
    rounds = [Round(task=task, references=(), config=CONFIG) for task in (Task.ABDUCTION, Task.DEDUCTION)]
    rounds.append(open_round())
    for item, text in zip(rounds, [proposal_text(), proposal_text(), "nonsense"], strict=True):
        item.propose(text)
    judge_proposals(rounds, judge, proposers=["a", "b", "c"])
    for item in rounds[:2]:
        for _ in range(CONFIG.solver_seats):
            item.attempt(answer_text("(1,)"))
    judge_attempts(rounds, judge, proposers=["a", "b", "c"], solvers=["x", "y", "z"])
    assert judge.owners == [["a", "b"], ["a", "a", "y", "y"]]


def test_nothing_to_judge_asks_nobody():
    judge = ScriptedJudge()
    judge_proposals([open_round()], judge)
    judge_attempts([open_round()], judge)
    assert judge.calls == []


def test_a_review_has_the_last_word_and_verdicts_come_back_in_their_places():
    rounds = [open_round() for _ in range(3)]
    for item, text in zip(rounds, ["nonsense", proposal_text(), proposal_text("return 1")], strict=True):
        item.propose(text)
    refused = ProposalVerdict(verdict=Verdict(status=Status.INADMISSIBLE, detail="rule"), exec_ms=3.0)

    def review(item, verdict):
        return refused if "return 1" in item.proposal.program else verdict

    first, second, third = judge_proposals(rounds, ScriptedJudge(), review)
    assert first is None
    assert second.verdict.ok
    assert third is refused
    assert [item.phase for item in rounds] == [Phase.SETTLED, Phase.ATTEMPT, Phase.SETTLED]
    assert rounds[2].result().proposal_verdict == refused.verdict


def test_a_shared_judge_is_left_open_and_an_own_one_has_the_rules_of_the_game():
    judge = ScriptedJudge()
    held = HeldJudge(judge, CONFIG)
    held.close()
    assert (held.judge, judge.closed) == (judge, 0)
    own = HeldJudge(None, GameConfig(max_answer_chars=99))
    assert own.judge.config.max_answer_chars == 99
    own.close()
