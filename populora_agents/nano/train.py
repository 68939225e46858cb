"""`python -m populora_agents.nano.train --out DIR`: make nano from nothing.

Owns the loop, its checkpoint and the folder it writes. A stopped run goes on from its checkpoint when called again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from populora_agents.bases import Base
from populora_agents.config import PRESETS
from populora_agents.nano.evaluate import evaluate
from populora_agents.nano.recipe import IGNORE, Batch, Recipe, batches, learning_rate, model_config
from populora_agents.nano.speaker import Speaker
from populora_agents.nano.tokenizer import build_tokenizer
from populora_env.verifier import Verifier

_LOG = logging.getLogger(__name__)
_DESCRIPTION = """Make nano from nothing: train, then write an ordinary model folder. A stopped run goes on from its
checkpoint when the command is given again."""
_LOG_EVERY = 50
_SAVE_EVERY = 250
_MEASURED = 96
"""Problems a task and proposals a task that are measured while training."""
_LOGGED = (
    *("valid", "distinct", "deduction", "abduction", "induction", "worked_share"),
    *("direct_depth_1", "direct_depth_4", "worked_depth_1", "worked_depth_4"),
)


class _Run:
    """Model, optimiser and place in the schedule; all that a checkpoint holds."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe = recipe
        self.folder = folder
        self.tokenizer: PreTrainedTokenizerFast = build_tokenizer()
        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)  # transformers initialises from torch's global generator only
            self.model = LlamaForCausalLM(model_config(recipe, self.tokenizer))
        self.optimiser = torch.optim.AdamW(self._groups(), lr=0.0, betas=(0.9, 0.95), fused=True)
        self.step = 0
        self.chunk = 0
        self.place = 0
        self.tokens = 0

    def _groups(self) -> list[dict[str, object]]:
        parameters = list(self.model.parameters())
        matrices = [p for p in parameters if p.ndim > 1]
        vectors = [p for p in parameters if p.ndim <= 1]
        decay = self.recipe.weight_decay
        return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    def resume(self, start: Path | None) -> None:
        """Go on from the folder's own checkpoint; where it has none, from `start`; else begin anew."""
        checkpoint = self._checkpoint if self._checkpoint.exists() else start
        if checkpoint is None:
            return
        state = torch.load(checkpoint, weights_only=True)
        if _unscheduled(Recipe(**state["recipe"])) != _unscheduled(self.recipe):
            raise ValueError(f"{checkpoint} was made by another recipe; take another --out or remove it")
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.chunk, self.place, self.tokens = state["place"]

    def save(self) -> None:
        state = {
            "recipe": dataclasses.asdict(self.recipe),
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "place": (self.step, self.chunk, self.place, self.tokens),
        }
        partial = self._checkpoint.with_suffix(".part")
        torch.save(state, partial)
        partial.replace(self._checkpoint)

    def stream(self) -> Iterator[Batch]:
        while True:
            for batch in batches(self.recipe, self.tokenizer, chunk=self.chunk)[self.place :]:
                self.place += 1
                yield batch
            self.chunk, self.place = self.chunk + 1, 0

    def update(self, batch: Batch) -> float:
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.recipe, self.step)
        loss = _loss(self.model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.grad_clip)
        self.optimiser.step()
        self.optimiser.zero_grad()
        self.step += 1
        self.tokens += batch.tokens
        return float(loss.detach())

    def export(self) -> None:
        """Write an ordinary model folder, weights in bfloat16."""
        self.tokenizer.save_pretrained(self.folder)
        self.model.bfloat16().save_pretrained(self.folder)
        record = {"recipe": dataclasses.asdict(self.recipe), "tokens": self.tokens, "torch": torch.__version__}
        (self.folder / "nano.json").write_text(json.dumps(record, indent=2) + "\n")


def _loss(model: LlamaForCausalLM, batch: Batch) -> Tensor:
    """Return the mean cross-entropy over the tokens that carry loss.

    Padding stands on the right, where causal attention never looks, so no mask is needed; logits are made only where
    there is a target, which are few in a solver's text.
    """
    hidden = model.model(input_ids=batch.ids, use_cache=False).last_hidden_state[:, :-1]
    targets = batch.targets[:, 1:]
    counted = targets != IGNORE
    return functional.cross_entropy(model.lm_head(hidden[counted]), targets[counted])


def _unscheduled(recipe: Recipe) -> Recipe:
    """Return the recipe less what may be changed half-way: where the schedule ends."""
    return dataclasses.replace(recipe, steps=1, decay=0)


def _measure(run: _Run) -> None:
    """Log what the model can do as it is now, on a small part of what `evaluate` measures."""
    base = Base(model=run.model, tokenizer=run.tokenizer, preset=PRESETS["nano"], name="nano in training")
    run.model.eval()
    with Verifier() as verifier:
        figures = evaluate(base, Speaker(base, None, seed=run.step), verifier, seed=run.step, count=_MEASURED)
    run.model.train()
    _LOG.info("step %d  %s", run.step, "  ".join(f"{name} {figures[name]:.2f}" for name in _LOGGED))


def train(recipe: Recipe, folder: Path, *, start: Path | None = None, measure_every: int = 0) -> None:
    """Run or resume the recipe, then write the model folder.

    Args:
        recipe: What to do.
        folder: Holds the checkpoint; at the end, the model too.
        start: Checkpoint to begin from, of a run by the same recipe but for `steps` and `decay`.
        measure_every: Steps after which it is logged what the model can do; 0 never does.

    Raises:
        ValueError: The checkpoint was made by another recipe.
        OSError: A file can't be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = _Run(recipe, folder)
    run.resume(start)
    began, tokens_before, losses = time.monotonic(), run.tokens, []
    stream = run.stream()
    while run.step < recipe.steps:
        losses.append(run.update(next(stream)))
        if run.step % _LOG_EVERY == 0:
            speed = (run.tokens - tokens_before) / (time.monotonic() - began)
            mean = sum(losses) / len(losses)
            _LOG.info(
                "step %d/%d  loss %.4f  %.1f M tokens  %.0f/s", run.step, recipe.steps, mean, run.tokens / 1e6, speed
            )
            losses = []
        if run.step % _SAVE_EVERY == 0:
            run.save()
        if measure_every and run.step % measure_every == 0:
            _measure(run)
    run.save()
    run.export()


def main(argv: list[str] | None = None) -> int:
    """Parse the flags and train."""
    parser = argparse.ArgumentParser(prog="python -m populora_agents.nano.train", description=_DESCRIPTION)
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint and model")
    parser.add_argument("--start", type=Path, help="checkpoint of another folder to begin from, e.g. to decay a copy")
    parser.add_argument(
        "--measure-every", type=int, default=5000, help="steps between figures in the log; 0: none (default: 5000)"
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="torch threads")
    for field in dataclasses.fields(Recipe):
        flag = "--" + field.name.replace("_", "-")
        parser.add_argument(flag, type=type(field.default), default=field.default, help="default: %(default)s")
    arguments = vars(parser.parse_args(argv))
    folder, threads, start, every = (arguments.pop(name) for name in ("out", "threads", "start", "measure_every"))
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    torch.set_num_threads(threads)
    try:
        train(Recipe(**arguments), folder, start=start, measure_every=every)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
