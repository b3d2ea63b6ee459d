"""Training the translation models of Table 1 (section 6.1, appendix C)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from accelerate import Accelerator
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
    """Batches of at most `budget` tokens a side, PAD counted or not: sentences of about the same length go together."""

    unit = "tokens"

    def __init__(self, source: Sentences, target: Sentences, budget: int, count_padding: bool = True):
        self.source, self.target, self.budget, self.count_padding = source, target, budget, count_padding
        self.sizes = target.lengths + 1  # EOS
        self.lengths = np.maximum(source.lengths + 1, self.sizes)
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
        cuts, start, longest, left, right = [], 0, 0, 0, 0  # the tokens of each side
        both = (self.source.lengths[ranked] + 1).tolist(), self.sizes[ranked].tolist()
        for i, (source, target) in enumerate(zip(*both, strict=True)):
            longest, left, right = max(longest, source, target), left + source, right + target
            if ((i + 1 - start) * longest if self.count_padding else max(left, right)) > self.budget:
                cuts.append(i)
                start, longest, left, right = i, max(source, target), source, target
        batches = np.split(ranked, cuts)
        return [batches[i] for i in rng.permutation(len(batches))]

    def size(self, index: np.ndarray) -> int:
        return int(self.sizes[index].sum())

    def batch(self, index: np.ndarray, draws: Tensor | None = None) -> dict[str, Tensor]:
        source, target = (seq2seq.pad([side[i] for i in index]) for side in (self.source, self.target))
        real = target.flatten().nonzero().flatten()  # here, since a GPU would have to wait for their number; PAD is 0
        return {"source": source, "target": target, "real": real}


class Trainee(nn.Module):
    """A model in training: its loss, and the mean of its last states (Vaswani et al., section 6.1).

    States are taken every `every` steps up to the last, by `ended`. Their sum is a buffer, so that checkpoints keep it.
    """

    def __init__(self, model: MarianMTModel, smoothing: float, steps: int, average: int, every: int):
        super().__init__()
        self.model, self.smoothing = model, smoothing
        self.taken = {s for s in (steps - i * every for i in range(1, average)) if s > 0}
        self.register_buffer("total", torch.zeros(sum(p.numel() for p in model.parameters() if p.requires_grad)))
        # Each process of a multi-GPU run keeps its own sum: they are equal, and need not be sent at every step.
        self._ddp_params_and_buffers_to_ignore = ["total"]

    def forward(self, source: Tensor, target: Tensor, real: Tensor) -> Tensor:
        """The mean loss of a target token: (B, S), (B, T), the places of tokens among the B T → ()."""
        before = F.pad(target[:, :-1], (1, 0), value=PAD)
        # Masks as the attention wants them: made from 2 axes, each would make a GPU wait.
        seen = (source != PAD)[:, None, None, :]  # (B, 1, 1, S)
        causal = torch.ones(before.shape[1:] * 2, dtype=torch.bool, device=source.device).tril()[None, None]
        states = self.model.model(
            source,
            attention_mask=seen,
            decoder_input_ids=before,
            decoder_attention_mask=causal,
            use_cache=False,
        )
        states = states.last_hidden_state.flatten(0, 1).index_select(0, real)
        logits = self.model.lm_head(states)  # (tokens, vocabulary)
        smoothing = self.smoothing if self.training else 0.0
        return F.cross_entropy(logits.float(), target.flatten().index_select(0, real), label_smoothing=smoothing)

    def ended(self, step: int) -> None:
        if step in self.taken:
            self.total += self._flat()

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
        batch = {k: v.to(device) for k, v in pairs.batch(index).items()}
        count = pairs.size(index)
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


def original(seed: int, sizes: Group) -> Run:
    return Run("original", seed, lambda: seq2seq.build(seed=seed, **sizes))


def later(variant: str, seed: int, sizes: Group, tune: Group, trained: Callable[[], nn.Module]) -> Run:
    """permuted and continued go on from the trained original; permuted-scratch starts where that did, for as long."""
    if variant == "permuted-scratch":
        return Run(variant, seed, original(seed, sizes).start, permuted=True)
    return Run(variant, seed, trained, permuted=variant == "permuted", tune=tune)


def fit(run: Run, sentences: dict[str, Sentences], train: Group, folder: Path, on: Accelerator) -> large.Found | None:
    """Train a run, from its checkpoint in the folder if there is one: its row of losses.csv, its curve, its weights."""
    english = {part: sentences[f"{part}_en"] for part in ("train", "dev")}
    source = {part: permute(s) for part, s in english.items()} if run.permuted else english
    pairs, dev = (
        Pairs(s, sentences[f"{part}_de"], train.batch_tokens, train.count_padding) for part, s in source.items()
    )
    plan = recipe(train, run.tune)
    trainee = Trainee(run.start(), train.smoothing, plan.steps, train.average, train.average_every)
    curve = large.train(
        trainee,
        pairs,
        loss,
        plan,
        seed=run.seed,
        checkpoint=folder / f"{run.name}.safetensors",
        accelerator=on,
        label=f"translation, {run.variant}, seed {run.seed}",
        ended=trainee.ended,
    )
    trainee.finish()
    if not on.is_main_process:
        return None
    size = sum(p.numel() for p in trainee.parameters() if p.requires_grad)
    losses = {"train_loss": curve.loss.iloc[-1], "dev_loss": evaluate(trainee, dev, on.device)}
    row = run.keys | {"steps": plan.steps, "parameters": size} | losses
    weights = {k: v.numpy() for k, v in seq2seq.weights(trainee.model).items()}
    return row, pd.DataFrame(run.keys, index=curve.index).join(curve), weights


def train_all(
    runs: list[Run],
    to: Outs,
    tokens: Path,
    inputs: list[Path],
    *,
    model: Group,
    train: Group,
    device: str = "auto",
) -> None:
    """Train every run; write losses.csv, a row each (steps, dev loss), history.csv, and their weights.

    Finished and unfinished runs stay in checkpoints until everything is written.
    """
    sentences = load(tokens)
    settings = {"model": model, "train": train, "runs": [run.keys | {"tune": run.tune} for run in runs]}
    with checkpoint.kept(to.name, settings, [tokens, *inputs]) as folder:
        large.train_each(runs, lambda run, on: fit(run, sentences, train, folder, on), to, "losses.csv", device)
