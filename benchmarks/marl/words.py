"""The words around the table of docs/marl.md."""

from __future__ import annotations

from typing import Final

SHOWN_NAMES: Final = {
    "random": "random play",
    "first": "first legal action",
    "ippo": "IPPO",
    "mappo": "MAPPO",
    "iql": "IQL",
    "vdn": "VDN",
    "qmix": "QMIX",
}

OPENING: Final = """# Classic multi-agent algorithms, side by side

Can algorithms that know nothing of language models learn on the token face
([environment.md](environment.md#the-token-face))? IPPO, MAPPO, IQL, VDN and QMIX, from TorchRL's losses and mixers,
on a small game in the three reward modes; and, as a check of the harness, on two environments of mpe2 on which they
are known to learn. `python -m benchmarks.marl` made the runs and this page:

```
pip install 'populora-league[marl]'      # in a checkout
python -m benchmarks.marl                # all runs that docs/marl.jsonl does not have, then this page
python -m benchmarks.marl --seeds 5      # more seeds; --environments, --algorithms, --batches, --help
python -m benchmarks.marl --from-summary # only this page
```

The token game here: deduction, one round an episode, a proposer and two solvers, 8 tokens a derivation, one earlier
problem shown. VDN and QMIX need one reward for all agents: they play where there is one. On mpe2 (25 steps, defaults
otherwise) it is the mean of the agents'."""

CONSTANT: Final = """**On the token game no algorithm is shown to be better than a constant answer**, that of always
taking the first legal action, which is right wherever a program returns 0, [] or ''. What is shown is that they learn
from rewards alone, up to about there."""

READING: Final = """How to read it:

- *Score*: the mean of {episodes} episodes at the end of a run. All agents take the action that they hold best; none is
  drawn. Nothing is selected: the last policy counts, not the best.
- *Intervals* are over seeds, which all meet the same {episodes} beginnings of episodes; no run learns from these. So
  they tell how training varies, not how other episodes would. On the token game both solvers see the same and share a
  network: greedily they answer alike, and an episode of individual or zero_sum holds one answer.
- *Who is measured*: in `team` all agents together. In `individual` and `zero_sum` both sides learn, but what a side
  is paid in self-play depends on the other side's strength. There the trained solvers are measured on the proposals
  of random play, which are the same for all; how good the proposers have become is not measured. In training they
  meet such proposals only as far as the other side explores, so this also tests how well what was learned from one
  proposer carries over.
- *Random play* chooses evenly among the legal actions; *first legal action* always takes the first one, which as an
  answer means 0, [] or ''. In `team` it also proposes: a problem that it solves. On mpe2 it stands still and says the
  first word. It is there because random play is easy to beat.
- *Above*: "yes" if the lower end of the algorithm's 95 % interval (Student's t over seeds) is above the upper end of
  the reference's, "below" if its upper end is below the reference's lower one. With three seeds such an interval is 2.5
  standard deviations wide to either side.
- *IQM*: the mean of the middle half of the scores, with the 95 % interval of a bootstrap that draws seeds within each
  environment (Agarwal et al. 2021). Of three scores nothing is left out, and the interval reaches from the lowest to
  the highest; the rows of both modes in which the solvers alone are measured have more to draw from.
- *Seconds*: wall clock of a run with its evaluations, one thread, two cores that were busy with other work: good to a
  factor of three."""

CLOSING: Final = """## Settings

All algorithms in all environments have the same networks (two hidden layers of {hidden} units, one network for each
kind of agent: the proposer, the solvers; MAPPO's critic and QMIX's mixture see what all agents see) and the same play
to learn from: {batches} batches of {steps} steps of {games} games. Rewards are not discounted on the token game, by
0.95 a step on mpe2. The rest is in `benchmarks/marl/config.py` and in every line of the summary.

A pilot on seed 100, most of it with 30 batches, fixed them. Tried were: for IPPO and MAPPO an entropy cost of 0.02,
under which proposers soon wrote one kind of problem and solvers learned little that carries over (scores 0.04 to
0.37), 0.05 with 6 passes (0.31), and 0.1 (0.33 to 0.42), which is also better on simple_speaker_listener (-16.8 and
-16.7 instead of -20.6 and -17.8) and not worse in `team` but for MAPPO (0.84 instead of 1.00); for IQL, VDN and QMIX
only the settings that they have (0.39 in `individual` and `zero_sum`). The size of the game, learning rates, networks
and batches were not tuned; 60 batches were begun and broken off, since the machine was too busy. All of this favours
no algorithm on purpose, but with one setting for each family, small budgets and few seeds the table says whether the
face can be learned from, not which algorithm is the best.

mpe2 is a check of the harness, not a reproduction: published figures (Papoudakis et al. 2021, arXiv 2006.07869; Yu et
al. 2022, arXiv 2103.01955) are of millions of steps, here they are {total_steps:,}, and of an older version that adds
up rewards in another way.

Games are stepped by the benchmark itself, many in one batch. TorchRL's wrapper, one a game, gives the same tensors
([bridges.md](bridges.md)); on the token game it took 7.7 ms of CPU time a step of a game, the game itself 0.3 (loaded
cores)."""
