"""Learning-rate schedules, as factors of the peak rate."""

import math

SCHEDULES = ("constant", "cosine", "one-cycle", "linear", "inverse-sqrt", "trunk")
DECAY = 0.5  # share of the steps at the end of a trunk, over which its constant rate falls to zero


def factor(schedule: str, step: int, steps: int, warmup: int) -> float:
    """The factor at step 0 … steps - 1; warm-up over `warmup` steps is linear (one-cycle: half a cosine from 1/25)."""
    if step < warmup:
        if schedule == "one-cycle":
            return 1 / 25 + (1 - 1 / 25) * 0.5 * (1 - math.cos(math.pi * step / warmup))
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)  # in [0, 1)
    if schedule in ("cosine", "one-cycle"):
        return 0.5 * (1 + math.cos(math.pi * done))
    if schedule == "linear":
        return 1 - done
    if schedule == "inverse-sqrt":  # Vaswani et al. (2017), eq. 3
        return math.sqrt(max(1, warmup) / (step + 1))
    if schedule == "trunk":
        return min(1.0, (steps - step) / (DECAY * steps))
    return 1.0


def branch(steps: int) -> int:
    """The step of a trunk at which a training of half as many steps leaves it: where its own rate begins to fall."""
    return int((1 - DECAY) * (steps // 2))
