"""A tiny training without randomness for test_processes.py, in one process or several.

several.py FOLDER [seconds a batch]
"""

import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

from attnrate.large import loop as large


class Points:
    """256 points in 8 dimensions."""

    def __init__(self, pause):
        self.x, self.pause = torch.randn(256, 8, generator=torch.Generator().manual_seed(0)), pause
        self.y = (self.x[:, 0] > 0).long()

    def order(self, rng):
        return list(rng.permutation(256).reshape(-1, 16))

    def batch(self, index, generator):
        time.sleep(self.pause)
        return {"x": self.x[index], "y": self.y[index]}


def main():
    folder, pause = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)  # Adam would magnify the rounding of single precision
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    recipe = large.Recipe(steps=60, lr=1e-2, warmup=10, weight_decay=0.1, clip=1.0, accumulate=2, checkpoint=5)
    accelerator = large.make_accelerator()
    options = {"seed": 3, "checkpoint": folder / "run.safetensors", "accelerator": accelerator}
    history = large.train(model, Points(pause), large.classification_loss(), recipe, **options)
    if accelerator.is_main_process:
        history.assign(processes=accelerator.num_processes).to_csv(folder / "history.csv", index=False)
        save_file(model.state_dict(), folder / "weights.safetensors")


if __name__ == "__main__":
    main()
