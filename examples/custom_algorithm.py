"""Your own update rule in the league: python examples/custom_algorithm.py [FLAGS of league.run].

Here RAFT (Dong et al., 2023): every member imitates the best of each group and forgets the rest. It measures how
unlikely the imitated tokens were, which gets into `metrics.jsonl` as `teacher/surprise` and `student/surprise`. A few
seconds later:

    1 teachers and 1 students on nano-2, 2 steps, seed 0, into runs/nano-2t1s-seed0-20261202-183058-cce9e8
    step 1/2  valid 1.00  solve rate 0.62  teacher reward 0.12  student reward 0.44  5.4 s
    step 2/2  valid 0.92  solve rate 0.59  teacher reward 0.12  student reward 0.39  4.4 s

Whatever implements `populora_agents.types.UpdateRule` may stand where `Trainer` stands here.
"""

import sys

import numpy as np

from league.learning import trainer_config
from league.run import main
from populora_agents.trainer import Trainer


def best_of_group(rewards, groups, _batches):
    """An estimator: rewards of N rollouts, with the keys of their groups and batches, to N advantages."""
    of_group = {}
    for reward, group in zip(rewards, groups, strict=True):
        of_group.setdefault(group, []).append(reward)
    return np.array(
        [
            float(reward == max(of_group[group]) > min(of_group[group]))  # where all are alike nobody is the best
            for reward, group in zip(rewards, groups, strict=True)
        ]
    )


def imitate(logprobs, _sampled_logprobs, advantages):
    """An objective: of N sampled tokens, the loss and whatever is to be measured; neither is reduced."""
    return -advantages * logprobs, {"surprise": -logprobs.detach()}


def new_trainer(config, stack):
    """Called once, with the settings of the run and the adapters of all members."""
    return Trainer(stack, trainer_config(config), estimator=best_of_group, objective=imitate)


if __name__ == "__main__":
    flags = sys.argv[1:] or ["--teachers", "1", "--students", "1", "--steps", "2"]
    sys.exit(main(flags, new_trainer=new_trainer))
