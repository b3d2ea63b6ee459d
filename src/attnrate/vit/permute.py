"""Fixed permutations of the patches of an image (section 6.1, appendix C).

`first10` moves the first 10 patches to the end, as the paper says; `random` draws one permutation, as the authors'
working files do. Patch i of an altered image is patch p[i] of the original. The convolution embedding treats each
patch alone, so this equals permuting after the embedding and before the position encoding.
"""

import numpy as np
from torch import Tensor

READINGS = ("first10", "random")
MOVED = 10


def permutation(reading: str, patches: int, seed: int) -> np.ndarray:  # (patches,)
    if reading == "random":
        return np.random.default_rng(seed).permutation(patches)
    return np.roll(np.arange(patches), -MOVED)


def permute_patches(images: Tensor, p: Tensor) -> Tensor:
    """images (B, C, H, H) with its len(p) square patches, in row-major order, permuted."""
    b, c, size, _ = images.shape
    grid = round(len(p) ** 0.5)
    side = size // grid
    patches = images.view(b, c, grid, side, grid, side).transpose(3, 4).reshape(b, c, grid * grid, side, side)
    return patches[:, :, p].view(b, c, grid, grid, side, side).transpose(3, 4).reshape(b, c, size, size)
