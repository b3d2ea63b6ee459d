"""Decay laws of the training error against m_h and of the singular values against k, and the authors' points."""

import bootstrap  # noqa: F401

import pandas as pd

from attnrate.analysis import vit_fits
from attnrate.core import files, stage
from attnrate.schemas.vit import Vit

PARAMS = ("profile", "vit.data")


def main(cfg, args):
    files.write_json(args.out, vit_fits.fits(pd.read_csv(args.vit), pd.read_csv(args.spectra)))


if __name__ == "__main__":
    stage.run(main, PARAMS, {"vit": Vit}, inputs=["vit", "spectra"], outs=["out", "record"])
