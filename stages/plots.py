"""Tables for `dvc plots show` and `dvc plots diff`, in reports/plots."""

import launcher  # noqa: F401

import pandas as pd

from attnrate.core import files, stage
from attnrate.report import plots


def main(p, to):
    rates, linear, vit, spectra = (
        pd.read_csv(stage.results(path), dtype={"rank": str})
        for path in (
            "rates_table/rates.csv",
            "linear_train/centred/history.csv",
            "vit_table/vit.csv",
            "vit_spectra/values.csv",
        )
    )
    vit_curve, translation_curve = (
        pd.concat(pd.read_csv(path / "history.csv") for path in folders)
        for folders in (
            [stage.results(f"vit_main/{part}") for part in p.vit.main.parts],
            [stage.results(f"translation_main/{part}") for part in p.translation.train.parts],
        )
    )
    with files.atomic("reports/plots") as folder:
        folder.mkdir()
        files.write_csv(folder / "rates.csv", plots.rates(rates))
        files.write_csv(folder / "linear.csv", plots.linear(linear))
        files.write_csv(folder / "vit_error.csv", plots.error(vit))
        files.write_csv(folder / "vit_spectra.csv", plots.spectra(spectra))
        files.write_csv(folder / "vit_curve.csv", plots.curve(vit_curve))
        files.write_csv(folder / "translation_curve.csv", plots.curve(translation_curve))


if __name__ == "__main__":
    stage.run(main)
