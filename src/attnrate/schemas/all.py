"""The whole of params.yaml."""

from attnrate.core.config import Shared
from attnrate.schemas.gallery import Gallery
from attnrate.schemas.linear import Linear
from attnrate.schemas.rates import Rates
from attnrate.schemas.translation import Translation
from attnrate.schemas.vit import Vit


class Params(Shared):
    rates: Rates
    linear: Linear
    gallery: Gallery
    vit: Vit
    translation: Translation
