"""Training the translation models of Table 1 (section 6.1, appendix C)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import MarianMTModel

from attnrate.core.errors import UserError
from attnrate.core.params import Group
from attnrate.core.stage import Outs
from attnrate.large import checkpoint
from attnrate.large import loop as large
from attnrate.large.loop import Recipe
from attnrate.translation import model as seq2seq
from attnrate.translation.model import SHARED, TIED
from attnrate.translation.tokens import PAD, Sentences, load, permute


class Pairs:
    """Batches of at most `budget` tokens a side, PAD counted: sentences of about the same length go together."""

    def __init__(self, source: Sentences, target: Sentences, budget: int):
        self.source, self.target, self.budget = source, target, budget
        self.lengths = np.maximum(source.lengths, target.lengths) + 1  # EOS
        if len(self.lengths) and self.lengths.max() > budget:
            raise UserError(
                f"translation.train.batch_tokens = {budget} is less than the longest sentence, "
                f"{self.lengths.max()} tokens"
            )
        if len(self.lengths) and self.lengths.max() > seq2seq.POSITIONS:
            raise UserError(
                f"the longest sentence has {self.lengths.max()} tokens, the model {seq2seq.POSITIONS} positions; "
                "cut it in dev or test"
            )

    def order(self, rng: np.random.Generator) -> list[np.ndarray]:
        ranked = np.argsort(
            self.lengths + rng.uniform(0, 2, len(self.lengths)), kind="stable"
        )  # ties and neighbours mix
        longest, cuts, start = 0, [], 0
        for i, length in enumerate(self.lengths[ranked].tolist()):
            longest = max(longest, length)
            if (i + 1 - start) * longest > self.budget:
                cuts.append(i)
                start, longest = i, length
        batches = np.split(ranked, cuts)
        return [batches[i] for i in rng.permutation(len(batches))]

    def batch(self, index: np.ndarray, generator: torch.Generator) -> dict[str, Tensor]:
        return {
            "source": seq2seq.pad([self.source[i] for i in index]),
            "target": seq2seq.pad([self.target[i] for i in index]),
        }


class Trainee(nn.Module):
    """A model in training: its loss, and the mean of its last states (Vaswani et al., section 6.1).

    States are taken every `every` steps up to the last. Their sum is a buffer, so that checkpoints keep it; a forward
    pass sees the state that the step before it left, and `finish` the last.
    """

    def __init__(self, model: MarianMTModel, smoothing: float, steps: int, average: int, every: int, parts: int = 1):
        super().__init__()
        self.model, self.smoothing, self.parts = model, smoothing, parts  # parts: forward passes in a step
        self.taken = {s for s in (steps - i * every for i in range(1, average)) if s > 0}
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.zeros(sum(p.numel() for p in model.parameters() if p.requires_grad)))
        # Each process of a multi-GPU run keeps its own sum: they are equal, and need not be sent at every step.
        self._ddp_params_and_buffers_to_ignore = ["total", "passes"]

    def forward(self, source: Tensor, target: Tensor) -> Tensor:  # (B, S), (B, T) → mean loss of a target token
        if self.training:
            step, part = divmod(int(self.passes), self.parts)
            if part == 0 and step in self.taken:
                self.total += self._flat()
            self.passes += 1
        before = F.pad(target[:, :-1], (1, 0), value=PAD)
        states = self.model.model(
            source, attention_mask=(source != PAD).long(), decoder_input_ids=before, use_cache=False
        )
        real = target != PAD
        logits = self.model.lm_head(states.last_hidden_state[real])  # (tokens, vocabulary)
        return F.cross_entropy(logits.float(), target[real], label_smoothing=self.smoothing if self.training else 0.0)

    def _flat(self) -> Tensor:
        return nn.utils.parameters_to_vector(p.detach() for p in self.model.parameters() if p.requires_grad)

    @torch.no_grad()
    def finish(self) -> None:
        """Give the model the mean of the taken states and the last."""
        mean = (self.total + self._flat()) / (len(self.taken) + 1)
        nn.utils.vector_to_parameters(mean, [p for p in self.model.parameters() if p.requires_grad])

    def state_dict(self, **_) -> dict[str, Tensor]:
        """Each tensor once: safetensors refuses two names for one."""
        own = {k: v for k, v in super().state_dict().items() if not k.startswith("model.")}
        return own | {f"model.{k}": v for k, v in self.model.state_dict().items() if k not in TIED}

    def load_state_dict(self, state: dict[str, Tensor], **_) -> None:
        super().load_state_dict(state | {f"model.{name}": state[f"model.{SHARED}"] for name in TIED})


def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return model(**batch)


def recipe(train: Group, tune: Group | None = None) -> Recipe:
    """The recipe of params.yaml, with what `tune` changes of it."""
    p = Group(train | (tune or {}))
    steps = min(p.steps, p.max_steps or p.steps)
    return Recipe(
        steps=steps,
        lr=p.lr,
        schedule=p.schedule,
        warmup=int(p.warmup * steps),
        optimiser=p.optimiser,
        betas=(0.9, 0.98),
        clip=p.clip,
        accumulate=p.accumulate,
        checkpoint=p.checkpoint,
    )


@torch.no_grad()
def evaluate(trainee: Trainee, pairs: Pairs, device: torch.device) -> float:
    """Cross-entropy of a target token, without label smoothing."""
    trainee.eval()
    total = tokens = 0
    for index in pairs.order(np.random.default_rng(0)):
        batch = {k: v.to(device) for k, v in pairs.batch(index, torch.Generator()).items()}
        count = int((pairs.target.lengths[index] + 1).sum())
        total, tokens = total + trainee(**batch).item() * count, tokens + count
    return total / tokens


@dataclass(frozen=True)
class Run:
    variant: str
    seed: int
    start: Callable[[], nn.Module]  # the model before training
    permuted: bool = False  # the source sentences
    tune: Group | None = None  # what the recipe of a trained model that goes on changes

    @property
    def keys(self) -> dict:
        return {"variant": self.variant, "seed": self.seed}

    @property
    def name(self) -> str:
        return f"{self.variant}_seed{self.seed}"


def train_all(runs: list[Run], to: Outs, tokens: Path, inputs: list[Path], *, model: Group, train: Group) -> None:
    """Train every run; write losses.csv, a row each (steps, dev loss), history.csv, and their weights.

    Finished and unfinished runs stay in checkpoints until everything is written.
    """
    accelerator = large.make_accelerator()
    sentences = load(tokens)
    settings = {"model": model, "train": train, "runs": [run.keys | {"tune": run.tune} for run in runs]}
    rows, curves, models = [], [], {}
    with checkpoint.kept(to.name, settings, [tokens, *inputs]) as folder:
        for run in runs:
            english = {part: sentences[f"{part}_en"] for part in ("train", "dev")}
            source = {part: permute(s) for part, s in english.items()} if run.permuted else english
            pairs, dev = (Pairs(s, sentences[f"{part}_de"], train.batch_tokens) for part, s in source.items())
            plan = recipe(train, run.tune)
            trainee = Trainee(
                run.start(), train.smoothing, plan.steps, train.average, train.average_every, train.accumulate
            )
            curve = large.train(
                trainee,
                pairs,
                loss,
                plan,
                seed=run.seed,
                checkpoint=folder / f"{run.name}.safetensors",
                accelerator=accelerator,
                label=f"translation, {run.variant}, seed {run.seed}",
            )
            trainee.finish()
            if accelerator.is_main_process:
                size = sum(p.numel() for p in trainee.parameters() if p.requires_grad)
                dev_loss = evaluate(trainee, dev, accelerator.device)
                rows.append(
                    run.keys
                    | {"steps": plan.steps, "parameters": size, "train_loss": curve.loss.iloc[-1], "dev_loss": dev_loss}
                )
                curves.append(pd.DataFrame(run.keys, index=curve.index).join(curve))
                models[run.name] = seq2seq.weights(trainee.model)
        if accelerator.is_main_process:
            large.write(to, "losses.csv", rows, curves, models)
        accelerator.wait_for_everyone()
