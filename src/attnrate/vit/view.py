"""CIFAR10 images, and how a ViT sees them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attnrate.core import files
from attnrate.vit.permute import permute_patches

# Mean and standard deviation of the pixels of each channel; those of timm's weights are what they were trained with.
CIFAR10 = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
TIMM = ((0.5,) * 3, (0.5,) * 3)
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # DINOv2's


def pixels(start: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return CIFAR10 if start == "scratch" else IMAGENET if "dinov2" in start else TIMM


@dataclass(frozen=True)
class View:
    """Images as the model sees them: standardised, resized, their patches permuted by p."""

    size: int
    start: str = "scratch"
    p: Tensor | None = None

    def __call__(self, images: Tensor) -> Tensor:  # uint8 (B, 32, 32, 3) → (B, 3, size, size)
        mean, std = (images.new_tensor(v, dtype=torch.float32) for v in pixels(self.start))
        x = images.float().div(255).sub(mean).div(std).movedim(-1, 1)
        if self.size != x.shape[-1]:
            x = F.interpolate(x, size=(self.size, self.size), mode="bicubic", align_corners=False)
        return x if self.p is None else permute_patches(x.contiguous(), self.p)


def load(path: Path) -> dict[str, np.ndarray]:
    """train_x (N, 32, 32, 3), train_y (N,), test_x, test_y, all uint8."""
    remedy = "`dvc repro --force vit_images` makes it anew"
    arrays = files.read_npz(path, remedy)
    with files.reading(path, remedy):
        for x, y in ((arrays[f"{part}_x"], arrays[f"{part}_y"]) for part in ("train", "test")):
            shaped = x.shape[1:] == (32, 32, 3) and y.shape == x.shape[:1]
            if not (shaped and x.dtype == y.dtype == np.uint8 and y.max(initial=0) < 10):
                raise ValueError("its arrays are not images and labels")
    return arrays
