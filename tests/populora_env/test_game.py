"""Tests of `populora_env.game`: turn order, settlement, and who sees what."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_judge import OK, WRONG, answer_text, induction_text, proposal_text

from populora_env.buffer import ProblemBuffer
from populora_env.config import GameConfig, RewardConfig
from populora_env.game import Game, Phase, PhaseError, Round, seeded_buffer
from populora_env.rewards import repeat_key
from populora_env.types import Problem, ProposalVerdict, Role, Status, Task, Verdict

CONFIG = GameConfig(solver_seats=3)
REFERENCE = Problem(
    problem_id="r", task=Task.DEDUCTION, program="def f(a):\n    return a + 1", inputs=("(1,)",), outputs=("2",)
)
TIMEOUT = Verdict(status=Status.TIMEOUT)


def open_round(task=Task.DEDUCTION, config=CONFIG):
    return Round(task=task, references=(REFERENCE,), config=config)


def posed(task=Task.DEDUCTION, config=CONFIG, outputs=None, inputs=None):
    """A round that waits for attempts."""
    item = open_round(task, config)
    proposal = item.propose(induction_text() if task is Task.INDUCTION else proposal_text())
    inputs = inputs or proposal.inputs
    outputs = outputs or ("1",) * len(inputs)
    item.judge_proposal(ProposalVerdict(verdict=OK, inputs=inputs, outputs=outputs))
    return item


def test_a_round_is_settled_by_hand_worked_rewards():
    item = posed()
    assert item.attempt(answer_text("1")).text == "1"
    assert item.attempt("nonsense") is None
    assert item.attempt(answer_text("2")).text == "2"
    assert [answer.text for answer in item.answers] == ["1", "2"]
    item.judge_attempts([OK, WRONG])
    result = item.result()
    assert [str(verdict.status) for verdict in result.attempt_verdicts] == ["ok", "format", "wrong"]
    assert [answer and answer.text for answer in result.answers] == ["1", None, "2"]
    assert result.solver_rewards == (1.0, -1.0, -0.5)
    assert result.solve_rate == pytest.approx(1 / 3)
    assert result.proposer_reward == pytest.approx(2 / 3)


@pytest.mark.parametrize(("verdicts", "reward"), [([OK] * 3, 0.0), ([WRONG] * 3, 0.0), ([OK, OK, TIMEOUT], 1 / 3)])
def test_proposer_is_paid_by_the_solve_rate(verdicts, reward):
    item = posed()
    for _ in verdicts:
        item.attempt(answer_text("1"))
    item.judge_attempts(verdicts)
    assert item.result().proposer_reward == pytest.approx(reward)


def test_a_malformed_proposal_settles_the_round():
    item = open_round()
    assert item.propose("nonsense") is None
    result = item.result()
    assert (result.proposal, result.problem, result.solve_rate) == (None, None, None)
    assert (result.proposal_verdict.status, result.proposer_reward) == (Status.FORMAT, -1.0)
    assert (result.attempt_verdicts, result.solver_rewards) == ((), ())


def test_an_invalid_proposal_settles_the_round():
    item = open_round()
    proposal = item.propose(proposal_text())
    assert item.judge_proposal(ProposalVerdict(verdict=TIMEOUT)) is None
    result = item.result()
    assert (result.proposal, result.problem, result.proposal_verdict) == (proposal, None, TIMEOUT)
    assert (result.proposer_reward, result.solver_rewards) == (-1.0, ())


def test_a_round_of_malformed_attempts_is_settled_without_verdicts():
    item = posed()
    for _ in range(3):
        item.attempt("")
    assert item.phase is Phase.JUDGE_ATTEMPTS
    item.judge_attempts([])
    assert item.result().solver_rewards == (-1.0, -1.0, -1.0)


def test_induction_is_about_the_reference_and_shows_half():
    item = open_round(Task.INDUCTION)
    assert REFERENCE.program in item.proposer_observation().prompt
    assert item.propose(induction_text(inputs=("(1,)",))) is None
    item = posed(Task.INDUCTION, outputs=("111", "222", "333", "444"))
    assert (item.problem.program, item.problem.n_visible) == (REFERENCE.program, 2)
    prompt = item.solver_observation().prompt
    assert [gold in prompt for gold in ("111", "222", "333", "444")] == [True, True, False, False]
    assert REFERENCE.program not in prompt


def test_an_induction_round_needs_a_reference():
    with pytest.raises(ValueError, match="references"):
        Round(task=Task.INDUCTION, references=(), config=CONFIG)
    assert Round(task=Task.DEDUCTION, references=(), config=CONFIG).proposer_observation().prompt


@pytest.mark.parametrize("style", ["compact", "chat"])
@pytest.mark.parametrize("task", list(Task))
def test_what_is_hidden_changes_nothing_that_solvers_see(style, task):
    """Two rounds that differ only in what is asked for look the same until they are settled."""
    config = GameConfig(style=style, solver_seats=2)
    items = []
    for program, hidden in (("return a + 1", "HIDDEN1"), ("return a * 99", "HIDDEN2")):
        induction = task is Task.INDUCTION
        inputs = ("(1,)", "(2,)", hidden, hidden) if induction else ("(1,)",)
        outputs = ("5", "6", hidden, hidden) if induction else (hidden,)
        if task is Task.ABDUCTION:
            inputs, outputs = (hidden,), ("5",)
        reference = Problem(
            problem_id="r",
            task=Task.DEDUCTION,
            program=f"def f(a):\n    {program if induction else 'return a'}",
            inputs=("(1,)",),
            outputs=("1",),
        )
        item = Round(task=task, references=(reference,), config=config)
        text = written(task, style)
        assert item.propose(text)
        item.judge_proposal(ProposalVerdict(verdict=OK, inputs=inputs, outputs=outputs))
        items.append(item)
    assert items[0].problem != items[1].problem
    for _ in range(2):
        assert items[0].solver_observation() == items[1].solver_observation()
        assert items[0].shown_programs(Role.SOLVER) == items[1].shown_programs(Role.SOLVER)
        for item in items:
            item.attempt("HIDDEN1")


def written(task, style):
    if style == "compact":
        return induction_text() if task is Task.INDUCTION else proposal_text()
    if task is Task.INDUCTION:
        return "\n".join(f"```input\n({n},)\n```" for n in range(4)) + "\n```message\nhint\n```"
    return "```python\ndef f(a):\n    return a\n```\n```input\n(1,)\n```"


def test_shown_programs_are_those_of_the_prompt():
    item = posed()
    assert item.shown_programs(Role.PROPOSER) == (REFERENCE.program,)
    assert item.shown_programs(Role.SOLVER) == ("def f(a):\n    return a",)
    assert posed(Task.INDUCTION).shown_programs(Role.SOLVER) == ()
    assert open_round().shown_programs(Role.SOLVER) == ()


def test_driving_out_of_order_is_an_error():
    item = open_round()
    for early in (item.result, item.solver_observation, lambda: item.attempt("x"), lambda: item.judge_attempts([])):
        with pytest.raises(PhaseError):
            early()
    item = posed()
    with pytest.raises(PhaseError, match="propose"):
        item.propose("x")
    for _ in range(3):
        item.attempt(answer_text("1"))
    with pytest.raises(PhaseError):
        item.attempt(answer_text("1"))
    with pytest.raises(ValueError, match="must be 3"):
        item.judge_attempts([OK])


@pytest.mark.parametrize("action", [None, 3, b"bytes", ["text"]])
def test_only_text_is_an_action(action):
    item = open_round()
    with pytest.raises(ValueError, match="must be a str"):
        item.propose(action)
    assert item.phase is Phase.PROPOSE


HOSTILE = ["", "\0", "\ud800", "x" * 10_000_000, "<answer>\n" * 1000, "(" * 16_000, "```" * 5000, "\x1b[2J", "\u202e"]


@pytest.mark.parametrize("task", list(Task))
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_costs_the_format_reward(task, text):
    item = open_round(task)
    assert item.propose(text) is None
    verdict = item.result().proposal_verdict
    assert (item.result().proposer_reward, verdict.status) == (-1.0, Status.FORMAT)
    assert verdict.detail.isascii()
    assert verdict.detail.isprintable()
    assert len(verdict.detail) <= 80


@settings(max_examples=200)
@given(
    st.text(alphabet=st.characters(codec=None))
    | st.lists(st.sampled_from([*HOSTILE[4:], "def f(a):", "\n"])).map("".join)
)
def test_any_text_is_taken_from_any_seat(text):
    for task in Task:
        open_round(task).propose(text)
        item = posed(task)
        item.attempt(text)
        assert item.seat == 1


def play(game, texts):
    """Play malformed and valid proposals; solvers say `1` and are right."""
    for text in texts:
        proposal = game.round.propose(text)
        if proposal is not None:
            game.round.judge_proposal(ProposalVerdict(verdict=OK, inputs=proposal.inputs, outputs=("1",)))
            for _ in range(game.config.solver_seats):
                game.round.attempt(answer_text("1"))
            game.round.judge_attempts([OK] * game.config.solver_seats)
        game.advance()


def test_a_game_goes_through_tasks_in_turn_and_keeps_valid_problems():
    seen = []
    config = GameConfig(rounds=4, tasks=(Task.DEDUCTION, Task.ABDUCTION))
    game = Game(config, 0, on_settled=seen.append)
    before = len(game.buffer)
    play(game, [proposal_text(), "nonsense", proposal_text("return 2"), proposal_text("return a")])
    assert [result.task for result in game.results] == [*config.tasks, *config.tasks]
    assert seen == game.results
    assert game.over
    assert len(game.buffer) == before + 3
    assert game.buffer.problems(Task.DEDUCTION)[-1] == game.results[2].problem
    with pytest.raises(PhaseError, match="over"):
        game.advance()


@pytest.mark.parametrize(
    ("penalty", "form", "repeated"),
    [
        (0.25, "template", [None, False, None, True, True, False]),
        (0.25, "program", [None, False, None, False, True, False]),
        (0.0, "template", [None] * 6),
    ],
)
def test_repeats_of_an_episode_are_paid_less(penalty, form, repeated):
    rewards = RewardConfig(repeat_penalty=penalty, repeat_form=form)
    config = GameConfig(tasks=(Task.DEDUCTION, Task.ABDUCTION), rounds=6, solver_seats=1, rewards=rewards)
    bodies = (None, "return 3", None, "return 4", "return 3", "return a")
    for _ in range(2):  # an episode knows nothing of the one before
        game = Game(config, 0)
        play(game, ["nonsense" if body is None else proposal_text(body) for body in bodies])
        assert [result.repeated for result in game.results] == repeated
        paid = [result.proposer_reward for result in game.results]
        assert paid == [(-1.0 if n in (0, 2) else 0.0) - penalty * bool(one) for n, one in enumerate(repeated)]


def test_induction_problems_are_neither_repeats_nor_remembered():
    item = posed(Task.INDUCTION, replace(CONFIG, rewards=RewardConfig(repeat_penalty=0.25)))
    proposed = {repeat_key(item.problem.program, "template")}
    before = set(proposed)
    item.recall(proposed)
    item.recall(set())
    assert proposed == before
    for _ in range(3):
        item.attempt("nonsense")
    item.judge_attempts([])
    assert (item.result().repeated, item.result().proposer_reward) == (None, 0.0)


def test_a_round_must_be_settled_before_the_next():
    game = Game(GameConfig(), 0)
    with pytest.raises(PhaseError):
        game.advance()


def test_games_of_one_seed_agree_and_seeds_differ():
    def prompts(seed):
        game, seen = Game(GameConfig(rounds=6), seed), []
        while not game.over:
            seen.append(game.round.proposer_observation())
            game.round.propose("nonsense")
            game.advance()
        return seen

    assert prompts(1) == prompts(1)
    assert prompts(1) != prompts(2)


def test_games_do_not_share_what_they_learn():
    config = GameConfig(rounds=1)
    play(Game(config, 0), [proposal_text("return 'mine'")])
    assert len(Game(config, 0).buffer) == len(seeded_buffer(config)) == 3 * config.seed_problems


def test_references_are_as_many_as_asked_and_one_for_induction():
    game = Game(GameConfig(references=5), 0)
    counts = []
    while not game.over:
        counts.append(len(game.round.references))
        game.round.propose("")
        game.advance()
    assert counts == [5, 5, 1]


def test_a_buffer_can_be_handed_in():
    buffer = ProblemBuffer((Task.DEDUCTION,), 8)
    buffer.add(REFERENCE)
    game = Game(GameConfig(tasks=(Task.DEDUCTION,), rounds=1), 0, buffer=buffer)
    assert game.round.references == (REFERENCE,)
    play(game, [proposal_text()])
    assert len(buffer) == 2
