"""`python -m attnrate.ops.growth desk`: hours of a profile on the laptop's cores, by branch and stage.

The laptop's measured seconds, times the growth of the work: steps, batches, seeds and models, of large models the
operations counted on their true sizes. A stage whose work does not grow is taken as it was.
"""

import sys

from attnrate.core import params
from attnrate.core.errors import UserError
from attnrate.ops import costs, estimate, profile, runlog
from attnrate.schemas.all import Params
from attnrate.schemas.check import check
from attnrate.sources import dinov2


def work(p: Params) -> dict[str, float]:
    """Operations of the stages with large models; of those that only measure, how much they measure."""
    v, t = p.vit, p.translation
    seen = (v.images.measure + v.images.test) / 3  # forward passes alone
    main = estimate.vit_cost(v.model, "qk", v.main.mh).flops
    tuned, extra = v.images.train * v.tune.epochs + seen, len(v.permuted.seeds)
    start = v.images.train * v.main.epochs + seen if v.main.start == "scratch" else tuned
    pair, batch, seeds = estimate.translation_cost(t).flops, t.train.batch_tokens, len(t.train.seeds)
    rounds = -(-seeds // 2)  # two train side by side, and a laptop's single seed alone
    again = sum(t.train.steps if name == "permuted-scratch" else t.tune.steps for name in t.tune.variants)
    sweep = sum(estimate.vit_cost(v.model, reading, mh).flops for reading, mh in v.grid.split())
    beside = sum(estimate.vit_cost(v.model, "qk", mh).flops for mh in v.beside.mh)
    return {
        "vit_sweep": sweep * len(v.sweep.seeds) * (v.images.train * v.train.epochs + seen),
        "vit_beside": beside * len(v.beside.seeds) * (v.images.train * v.beside.epochs + seen),
        "vit_main": main * len(v.main.seeds) * start,
        "vit_permuted": main * (2 * len(v.main.seeds) * tuned + extra * (tuned + start)),
        "vit_spectra": v.spectra.images * (len(v.grid.models) * len(v.sweep.seeds) + 2 * len(v.main.seeds)),
        "vit_pretrained": v.pretrained.images,
        "translation_main": pair * batch * t.train.steps * rounds,
        "translation_permuted": pair * batch * again * seeds,
        "translation_bleu": seeds * (1 + len(t.tune.variants)),
    }


def gate(p: Params) -> float:
    """Operations of vit_gate: half the steps of Table 1's pair, and of models of the sweep."""
    v, found = p.vit, 0.0
    seen = (v.images.measure + v.images.test) / 3  # as above
    ends = [("qk", min(v.beside.mh)), ("qk", max(*v.beside.mh, v.main.mh))]
    for item in v.gate.parts:
        models, epochs, times = ends, v.beside.epochs, len(v.beside.seeds)
        if item == "permuted":
            models, epochs, times = [("qk", v.main.mh)] * 2, v.tune.epochs, len(v.main.seeds)
        elif item != "beside":
            models, epochs, times = (
                [pair for pair in v.grid.split() if "-".join(map(str, pair)) == item],
                v.train.epochs,
                len(v.sweep.seeds),
            )
        flops = sum(estimate.vit_cost(v.model, reading, mh).flops for reading, mh in models)
        found += times * flops * (v.images.train * epochs / 2 + seen)
    return found


def tuned(p: Params) -> float:
    """Operations of vit_tuned: a model learns, and goes on twice; four are tested."""
    own, sizes = p.vit.tuned, dinov2.SIZES[p.vit.pretrained.name]
    shape = p.vit.model.model_copy(update={**sizes, "image_size": own.image_size, "pool": "token"})
    seen = own.images.train * (own.recipe.epochs + 2 * own.again.epochs)
    seen += 4 * (own.images.measure + own.images.test) / 3  # forward passes alone
    return len(own.parts) * estimate.vit_cost(shape, "qk", sizes["width"] // sizes["heads"]).flops * seen


def hours(laptop: Params, other: Params, seconds: dict[str, float]) -> dict[str, float]:
    """Hours of each stage, items of a matrix together."""
    found: dict[str, float] = {}
    for name, s in seconds.items():
        stage = name.partition("@")[0]
        found[stage] = found.get(stage, 0.0) + s / 3600
    large, before = work(other), work(laptop)
    grown = {stage: found[stage] * large[stage] / before[stage] for stage in large if stage in found}
    # Stages that a laptop has no item of: as long as others for the same work.
    for stage, more in (("vit_gate", gate(other)), ("vit_tuned", tuned(other))):
        if more and "vit_main" in found:
            grown[stage] = found["vit_main"] * more / before["vit_main"]
    if other.translation.gate.parts and "translation_main" in found:
        t = other.translation
        grown["translation_gate"] = grown["translation_main"] * t.tune.steps / t.train.steps  # two runs of half as long
    if other.translation.beside.corpora:
        again = sum(h for stage, h in grown.items() if stage.startswith("translation_"))
        grown["translation_beside"] = len(other.translation.beside.corpora) * again
    return found | grown | {s: h for s, h in estimate.on_cpu(laptop, other, seconds) if s in found}


def checked(name: str) -> Params:
    return check(Params, profile.load(name)[1], name)


def main(argv: list[str] | None = None) -> None:
    try:
        (name,) = sys.argv[1:] if argv is None else argv
        seconds = {stage: run["seconds"] for stage, run in runlog.kept().items()}
        found = hours(check(Params, params.read("params.yaml"), "params.yaml"), checked(name), seconds)
    except ValueError:
        sys.exit("usage: python -m attnrate.ops.growth PROFILE")
    except UserError as e:
        sys.exit(str(e))
    branch_of = costs.branches()
    for branch in dict.fromkeys(branch_of.values()):
        own = {stage: found[stage] for stage in found if branch_of.get(stage) == branch}
        print(f"{branch}: {sum(own.values()):.1f} h")
        for stage, h in own.items():
            if h >= 0.05:
                print(f"  {stage}: {h:.2f} h")
    print(f"all: {sum(found.values()):.1f} h on the laptop's cores, about")


if __name__ == "__main__":
    main()
