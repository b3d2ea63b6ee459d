import numpy as np
import torch
from timm.layers import PatchEmbed

from attnrate.vit import permute


def test_first10_moves_the_first_ten_to_the_end():
    p = permute.permutation("first10", 64, seed=0)
    assert list(p) == [*range(10, 64), *range(10)]


def test_random_is_a_permutation_fixed_by_its_seed():
    p, q, r = (permute.permutation("random", 64, seed) for seed in (0, 0, 1))
    assert sorted(p) == list(range(64)) and (p == q).all() and (p != r).any()


def test_permuting_patches_equals_permuting_tokens_after_the_embedding():
    """Appendix C permutes after the convolution embedding and before the position encoding."""
    torch.manual_seed(0)
    for size, patch in ((32, 4), (48, 8)):
        embed = PatchEmbed(img_size=size, patch_size=patch, in_chans=3, embed_dim=24).double()
        images = torch.randn(5, 3, size, size, dtype=torch.float64)
        for reading in permute.READINGS:
            p = torch.from_numpy(permute.permutation(reading, (size // patch) ** 2, seed=3))
            assert torch.allclose(embed(permute.permute_patches(images, p)), embed(images)[:, p], atol=1e-12)


def test_the_inverse_permutation_restores_the_image():
    images = torch.rand(2, 3, 32, 32)
    p = permute.permutation("random", 64, seed=5)
    there = permute.permute_patches(images, torch.from_numpy(p))
    assert torch.equal(permute.permute_patches(there, torch.from_numpy(np.argsort(p))), images)
