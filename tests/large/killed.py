"""A tiny training for test_loop.py, run as a process that gets killed.

killed.py FOLDER SECONDS OPTIMISER, the seconds that it waits before each batch
"""

import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from attnrate.large import loop as large


class Points:
    """256 points in 8 dimensions with noise added to each batch."""

    unit, size = "points", staticmethod(len)

    def __init__(self, pause):
        g = torch.Generator().manual_seed(0)
        self.x, self.pause = torch.randn(256, 8, generator=g), pause
        self.y = (self.x[:, 0] > 0).long()

    def order(self, rng):
        return list(rng.permutation(256).reshape(-1, 16))

    def batch(self, index, draws):
        time.sleep(self.pause)
        return {"x": self.x[index] + 0.1 * draws[:, None], "y": self.y[index]}


def main():
    folder, pause, optimiser = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
    how = {"optimiser": optimiser, "weight_decay": 0.1, "clip": 1.0, "accumulate": 2}
    recipe = large.Recipe(steps=120, lr=1e-2, warmup=10, history=7, checkpoint=5, **how)
    loss = large.classification_loss(smoothing=0.1)
    history = large.train(model, Points(pause), loss, recipe, seed=3, checkpoint=folder / "run.safetensors")
    history.to_csv(folder / "history.csv", index=False)
    save_file(model.state_dict(), folder / "weights.safetensors")


if __name__ == "__main__":
    main()
