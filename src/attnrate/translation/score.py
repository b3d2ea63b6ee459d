"""The translations of a model that a stage has just trained."""

import numpy as np
import torch

from attnrate.core.params import Group
from attnrate.translation import beam, model
from attnrate.translation.tokens import Sentences, Vocabulary


def tensors(weights: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in weights.items()}


def translations(
    weights: dict[str, np.ndarray],
    source: Sentences,
    vocabulary: Vocabulary,
    sizes: Group,
    decode: Group,
    on: torch.device,
) -> list[str]:
    trained = model.load_weights(model.build(seed=0, **sizes), tensors(weights)).to(on)
    return [vocabulary.decode(ids) for ids in beam.translate(trained, source, **decode)]
