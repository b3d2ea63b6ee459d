"""The page that people read: verdicts, tables and figures in one file."""

import launcher  # noqa: F401

from attnrate.core import files, stage
from attnrate.report import page
from attnrate.schemas.all import Params


def main(p, to):
    files.write_text("reports/index.html", page.render(files.read_json("reports/claims.json"), Params(**p)))


if __name__ == "__main__":
    stage.run(main)
