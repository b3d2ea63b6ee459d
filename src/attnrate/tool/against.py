"""The second checkpoint of `--against`: found, and known to be of the same shape, before anything is measured."""

from pathlib import Path

from torch import no_grad

from attnrate.core.errors import UserError
from attnrate.spectra.attention import Catch
from attnrate.tool.inputs import Inputs, batches
from attnrate.tool.load import Loaded, load, zoo

Shape = dict[str, tuple[int, int]]  # of each layer, by its module and number: heads, and their size


def second(
    against: str,
    model: str,
    options: dict,
    weights: str | Path | None = None,
    pretrained: bool = False,
    revision: str | None = None,
) -> Loaded:
    """weights, pretrained and revision are what `model` was loaded with."""
    if against == "untrained":
        return load(model, untrained=True, revision=revision, **options)
    if Path(against).is_file():
        if not zoo(model):
            raise UserError(
                f"--against {against}: a file of weights is for timm and torchvision models, and {model} is none; "
                "name a directory or a model of the hub"
            )
        return load(model, weights=against, **options)
    if zoo(against):
        return load(against, pretrained=pretrained, **options)
    # of one name a revision is compared with the newest weights, not with itself
    own = against == model or Path(against).is_dir()
    return load(against, revision=None if own else revision, **options)


@no_grad()
def shape(loaded: Loaded, inputs: Inputs) -> Shape:
    """What a forward pass of one input shows."""
    found: Shape = {}
    catch = Catch(lambda call: found.setdefault(f"{call.layer}", tuple(call.q.shape[i] for i in (1, -1))))
    with catch.watching(loaded.model):
        catch.run(loaded.model, next(batches(loaded, inputs, 1))[0])
    return {f"{i} {name}": found[f"{i}"] for i, name in enumerate(catch.layers)}


def same(model: str, against: str, one: Shape, two: Shape) -> None:
    if list(one) != list(two):
        raise UserError(f"--against {against}: has other layers ({len(two)} of them) than {model}")
    for name, (heads, size) in one.items():
        if two[name] != (heads, size):
            other = "{} heads of size {}".format(*two[name])
            raise UserError(f"--against {against}: has {other} where {model} has {heads} of {size}")
