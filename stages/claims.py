"""Judge the paper's claims by the criteria of criteria.toml."""

import bootstrap  # noqa: F401

from attnrate.core import files, stage
from attnrate.report import claims, claims_gallery, claims_linear, claims_rates, claims_translation, claims_vit
from attnrate.report.table1 import NAMES
from attnrate.schemas.vit import Vit

PARAMS = ("profile", "vit.data")


def main(cfg, args):
    rows = claims.judge(
        {
            **claims_rates.EVALUATORS,
            **claims_linear.EVALUATORS,
            **claims_translation.EVALUATORS,
            **claims_vit.EVALUATORS,
            **claims_gallery.EVALUATORS,
        },
        args.results,
        cfg.profile,
        NAMES[cfg.vit.data],
    )
    files.write_json(args.out, rows)
    files.write_text(args.markdown, claims.markdown(rows))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"vit": Vit}, inputs=["results"], outs=["out", "markdown"])
