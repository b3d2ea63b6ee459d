"""Training throughput of our ViT against timm's own at the same shape, one thread (60 s).

python benchmarks/vit.py          # needs ≥ 1.0x at m_h = D, where both do the same work; less m_h is faster
"""

import time

import torch
import torch.nn.functional as F
from timm.models.vision_transformer import VisionTransformer

from attnrate.models import vit

SHAPE = {"image_size": 32, "patch": 4, "width": 64, "depth": 4, "heads": 2, "mlp_ratio": 2.0}
BATCH, REPEATS = 64, 15


def step(model, optimiser, x, y) -> float:
    """Processor seconds of one training step."""
    start = time.process_time()
    optimiser.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimiser.step()
    return time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = torch.randn(BATCH, 3, 32, 32), torch.randint(0, 10, (BATCH,))
    models = {"timm": VisionTransformer(
        img_size=32, patch_size=4, num_classes=10, embed_dim=64, depth=4, num_heads=2, mlp_ratio=2.0
    )}  # fmt: skip
    models |= {f"ours, m_h = {mh}": vit.build("qk", mh, **SHAPE) for mh in (32, 16, 8, 1)}
    optimisers = {name: torch.optim.AdamW(m.parameters(), fused=True) for name, m in models.items()}
    times = {name: [] for name in models}
    for _ in range(REPEATS):  # in turn, so that other work on the machine hits all alike
        for name, model in models.items():
            times[name].append(step(model, optimisers[name], x, y))
    best = {name: min(t) for name, t in times.items()}
    for name, seconds in best.items():
        print(f"{name:15s} {BATCH / seconds:6.0f} images/s   {best['timm'] / seconds:.2f}x")


if __name__ == "__main__":
    main()
