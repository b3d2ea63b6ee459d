"""The whole of params.yaml."""

from attnrate.schemas.beyond import Beyond
from attnrate.schemas.check import Shared
from attnrate.schemas.examples import Examples
from attnrate.schemas.linear import Linear
from attnrate.schemas.rates import Rates
from attnrate.schemas.translation import Translation
from attnrate.schemas.vit import Vit


class Params(Shared):
    rates: Rates
    linear: Linear
    examples: Examples
    vit: Vit
    translation: Translation
    beyond: Beyond
