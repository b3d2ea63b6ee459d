"""The page that people read: verdicts, tables and figures in one file."""

import bootstrap  # noqa: F401

from attnrate.core import files, stage
from attnrate.report import page
from attnrate.schemas.gallery import Gallery
from attnrate.schemas.linear import Linear
from attnrate.schemas.rates import Rates
from attnrate.schemas.translation import Translation
from attnrate.schemas.vit import Vit

PARAMS = (
    "profile", "threads", "mh",
    "rates.alphas", "rates.ranks", "rates.terms", "rates.tau", "rates.n", "rates.width", "rates.mh", "rates.train_mh",
    "rates.seeds", "rates.steps", "rates.batch", "rates.paper_lr", "rates.trained_lr", "rates.free_steps",
    "rates.eval_size",
    "linear.tau", "linear.seeds", "linear.n", "linear.width", "linear.rnn_steps", "linear.rnn_lr", "linear.steps",
    "linear.batch", "linear.lr", "linear.plain_lr", "linear.eval_size",
    "gallery.seeds", "gallery.n", "gallery.width", "gallery.nearest_steps", "gallery.mass_steps",
    "gallery.selection_steps", "gallery.batch", "gallery.lr", "gallery.eval_size",
    "vit.data", "vit.readings", "vit.mh_sweep", "vit.main_mh", "vit.start", "vit.main_start", "vit.seeds",
    "vit.table_seeds", "vit.extra_seeds", "vit.image_size", "vit.patch", "vit.width", "vit.depth", "vit.heads",
    "vit.train_images", "vit.measure_images", "vit.test_images", "vit.epochs", "vit.tune_epochs", "vit.batch", "vit.lr", "vit.tune_lr",
    "vit.spectra_images",
    "translation.corpus", "translation.seeds", "translation.vocabulary", "translation.width", "translation.depth",
    "translation.heads", "translation.ff", "translation.batch_tokens", "translation.steps", "translation.tune_steps",
    "translation.lr", "translation.tune_lr", "translation.beams",
)  # fmt: skip


def main(cfg, args):
    rows = files.read_json(args.claims)
    files.write_text(args.out, page.render(
        rows, cfg, figures=args.figures, tables=args.tables, results=args.results, readings=args.readings, out=args.out,
    ))  # fmt: skip


if __name__ == "__main__":
    stage.run(
        main, PARAMS,
        {"rates": Rates, "linear": Linear, "gallery": Gallery, "vit": Vit, "translation": Translation},
        inputs=["claims", "figures", "tables", "results", "readings"], outs=["out"],
    )  # fmt: skip
