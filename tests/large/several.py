"""A tiny training for test_processes.py, in one process or several: several.py FOLDER [DROPOUT] [SECONDS]

The seconds are what each batch waits. Batches are augmented, and items differ in how much they count.
"""

import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

from attnrate.large import loop as large


class Points:
    """256 points in 8 dimensions, of 1 to 3 units each."""

    unit = "units"

    def __init__(self, pause):
        self.x, self.pause = torch.randn(256, 8, generator=torch.Generator().manual_seed(0)), pause
        self.y, self.units = (self.x[:, 0] > 0).long(), torch.arange(256) % 3 + 1

    def order(self, rng):
        return list(rng.permutation(256).reshape(-1, 16))

    def size(self, index):
        return int(self.units[index].sum())

    def batch(self, index, draws):
        time.sleep(self.pause)
        return {"x": self.x[index] + draws[:, None], "y": self.y[index], "units": self.units[index]}


def loss(model, batch):
    each = F.cross_entropy(model(batch["x"]), batch["y"], reduction="none")
    return (each * batch["units"]).sum() / batch["units"].sum()


def main():
    folder = Path(sys.argv[1])
    dropout, pause = (float(text) for text in [*sys.argv[2:], *["0"] * (4 - len(sys.argv))])
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)  # Adam would magnify the rounding of single precision
    torch.manual_seed(1)
    model, kept = nn.Sequential(nn.Linear(8, 32), nn.Dropout(dropout), nn.ReLU(), nn.Linear(32, 2)), []
    model[1].register_forward_hook(lambda module, given, out: kept.append((out != 0).flatten()[:64].clone()))
    recipe = large.Recipe(steps=60, lr=1e-2, warmup=10, weight_decay=0.1, clip=1.0, accumulate=4, checkpoint=5)
    accelerator = large.make_accelerator("cpu")
    options = {"seed": 3, "checkpoint": folder / "run.safetensors", "accelerator": accelerator}
    history = large.train(model, Points(pause), loss, recipe, **options)
    passes = torch.tensor(len(kept))
    save_file({"kept": torch.stack(kept), "passes": passes}, folder / f"rank{accelerator.process_index}.safetensors")
    if accelerator.is_main_process:
        history.assign(processes=accelerator.num_processes).to_csv(folder / "history.csv", index=False)
        save_file(model.state_dict(), folder / "weights.safetensors")


if __name__ == "__main__":
    main()
