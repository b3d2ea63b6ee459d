"""CIFAR10 images, and how a ViT sees them."""

from dataclasses import dataclass
from functools import cache
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


@cache
def moments(start: str, device: torch.device) -> tuple[Tensor, Tensor]:
    """`pixels`, on the device once and for all: a copy of them at every step would make a GPU wait."""
    mean, std = (torch.tensor(v, dtype=torch.float32, device=device) for v in pixels(start))
    return mean, std


def cut(images: Tensor, boxes: Tensor, size: int) -> Tensor:
    """Each image's box (top, left, height, width), resized bilinearly: (B, C, S, S), (B, 4) → (B, C, size, size).

    As torchvision's resized_crop, but all images at once, and their boxes may be on a GPU.
    """
    top, left, height, width = boxes.to(images).T[:, :, None]  # (B, 1) each
    middles = (torch.arange(size, device=images.device) + 0.5) / size

    def places(start: Tensor, length: Tensor) -> Tensor:  # (B, size), pixels from -1 to 1
        return 2 * (start + (length * middles - 0.5).clamp_min(0).minimum(length - 1)) / (images.shape[-1] - 1) - 1

    grid = torch.broadcast_tensors(places(left, width)[:, None, :], places(top, height)[:, :, None])
    return F.grid_sample(images, torch.stack(grid, -1), align_corners=True)


@dataclass(frozen=True)
class View:
    """Images as the model sees them: standardised, resized, or the box of each cut out, their patches permuted by p."""

    size: int
    start: str = "scratch"
    p: Tensor | None = None

    def __call__(self, images: Tensor, boxes: Tensor | None = None) -> Tensor:  # uint8 (B, 32, 32, 3) → (B, 3, S, S)
        mean, std = moments(self.start, images.device)
        x = images.float().div(255).sub(mean).div(std).movedim(-1, 1)
        if boxes is not None:
            x = cut(x, boxes, self.size)
        elif self.size != x.shape[-1]:
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
