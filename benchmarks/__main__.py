"""python -m benchmarks [NAME ...] [--quick] [--out FOLDER]: every ratio with its goal, results.json and results.md."""

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in every stage

from attnrate.core import files
from benchmarks.common import BENCHMARKS, FOLDER, RATIOS, markdown, merge, say


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all of them if none is given"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the results")
    parser.add_argument("--log", type=Path, help=".runs.jsonl of a full run")
    parser.add_argument("--wall", type=float, help="wall seconds of that run")
    args = parser.parse_args()
    if unknown := set(args.names) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    for name in args.names or BENCHMARKS:
        print(name, file=sys.stderr)
        start, rows = time.perf_counter(), []
        options = {"dag": {"log": args.log, "wall": args.wall}, "growth": {"out": args.out}}.get(name, {})
        for row in importlib.import_module(f"benchmarks.{name}").run(args.quick, **options):
            say(row)
            rows.append(row.record())
        print(f"  {time.perf_counter() - start:.0f} s", file=sys.stderr)
        results = merge(args.out / "results.json", {name: rows})
        files.write_text(args.out / "results.md", markdown(results, RATIOS))
        files.write_text(args.out / "growth.md", markdown(results, ["growth"]))
    every = [r for rows in results["benchmarks"].values() for r in rows if r["goal"] is not None]
    print(
        f"{sum(r['met'] is True for r in every)} of {len(every)} goals met, "
        f"{sum(r['met'] is False for r in every)} missed, {sum(r['met'] is None for r in every)} not measured"
    )


if __name__ == "__main__":
    main()
