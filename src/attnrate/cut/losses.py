"""What a cut does to a model's own loss, input by input."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attnrate.core.errors import UserError

KINDS = {  # what is compared with the tolerance
    "language": "cross-entropy per token, relative change",
    "classes": "accuracy, drop",
    "divergence": "divergence from the full model's distribution over its entropy",
    "features": "relative error of the model's outputs",
}
COLUMNS = ("loss", "change", "unit", "accuracy")


def outputs(out: Any) -> Tensor:
    """The tensor of a model's output that matters: logits, or what comes first."""
    if isinstance(out, Tensor):
        return out
    for name in ("logits", "logits_per_image", "last_hidden_state"):
        if isinstance(getattr(out, name, None), Tensor):
            return getattr(out, name)
    return outputs(next(iter(out.values())) if isinstance(out, dict) else out[0])


def check(kind: str, out: Tensor, target: Tensor | None) -> None:
    """Refuse labels that are not for these outputs."""
    if kind not in ("classes", "language"):
        return
    if target is None or target.is_floating_point():
        raise UserError(f"{KINDS[kind]}: needs labels that are whole numbers")
    wanted = target.shape if kind == "language" else target.shape[:1]
    if out.dim() != len(wanted) + 1 or out.shape[:-1] != wanted:
        raise UserError(
            f"labels of shape {tuple(target.shape)} are not for outputs of shape {tuple(out.shape)}: "
            "a classifier takes one for each input, a language model one for each token"
        )
    kept = target if kind == "classes" else target[target != -100]
    if not kept.numel():  # a text of one token
        return
    low, high = int(kept.amin()), int(kept.amax())
    if low < 0 or high >= out.shape[-1]:
        raise UserError(f"labels {low} to {high}: the model has classes 0 to {out.shape[-1] - 1}")


def kind_of(out: Any, target: Tensor | None) -> str:
    if target is not None:
        return "classes" if target.dim() == 1 else "language"
    return "divergence" if hasattr(out, "logits") else "features"


def per_token(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross-entropy of each input over its tokens: (B, τ, V), (B, τ) with -100 where there is none → (B,)."""
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view(target.shape)
    return loss.sum(-1) / (target != -100).sum(-1).clamp(min=1)


def compare(kind: str, full: Tensor, cut: Tensor, target: Tensor | None) -> Tensor:
    """COLUMNS of each input: (B, 4). The change over the mean unit is what the tolerance bounds."""
    full, cut = full.float(), cut.float()
    nan = torch.full((len(full),), torch.nan, device=full.device)
    if kind == "language":
        before, after = per_token(full, target), per_token(cut, target)
        columns = (after, after - before, before, nan)
    elif kind == "classes":
        before, after = ((x.argmax(-1) == target).float() for x in (full, cut))
        columns = (F.cross_entropy(cut, target, reduction="none"), before - after, torch.ones_like(after), after)
    elif kind == "divergence":
        p, q = full.log_softmax(-1), cut.log_softmax(-1)
        entropy, more = -(p.exp() * p).sum(-1), (p.exp() * (p - q)).sum(-1)  # (B, …)
        entropy, more = (x.flatten(1).mean(1) if x.dim() > 1 else x for x in (entropy, more))
        columns = (entropy + more, more, entropy, nan)
    else:
        error = (cut - full).flatten(1).norm(dim=1) / full.flatten(1).norm(dim=1).clamp(min=1e-30)
        columns = (error, error, torch.ones_like(error), nan)
    return torch.stack(columns, 1).cpu()
