"""The one script of the small pipeline in night.py: python stages/work.py STAGE."""

import json
import os
import sys
from pathlib import Path

import yaml

LOSS = 0.1


def put(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def work(what: str, p: dict) -> None:
    steps = p["examples"]["steps"]
    if what == "validate":
        put("reports/params.ok", "ok")
    elif what.startswith("examples_train"):
        put(f"reports/results/{what}/history.csv", f"step,loss\n{steps},{LOSS}\n")
        put(f"data/{what}/weights", "many")
    elif what == "examples_table":
        from attnrate.examples.runs import MAIN  # and pandas with it, which the other stages need not wait for

        lines = [f"{task},{variant},0.{steps}" for task, variant in MAIN.items()]
        put("reports/results/examples_table/examples.csv", "\n".join(["task,variant,attention_corr", *lines]))
    elif what == "fig_examples":
        put("reports/figures/fig4.svg", "x" * 50)
        put("reports/figures/fig4.png", "x" * 40)
    elif what == "beyond_heads":
        put("reports/results/beyond_heads/errors.csv", f"steps\n{p['beyond']['steps']}\n")
    elif what == "table1":
        put("reports/tables/table1.csv", p["profile"])
    elif what == "plots":
        put("reports/plots/examples_curve.csv", "step\n1\n")
        put("reports/plots/rates.csv", "mh\n1\n")
    elif what == "claims":
        row = {"criterion": "c", "verdict": "reproduced", "ours": False, "profile": p["profile"], "replicates": 3}
        commands = {"a": "dvc repro examples_table", "b": "dvc repro beyond_heads"}
        put("reports/claims.json", json.dumps([row | {"id": i, "command": c} for i, c in commands.items()]))
        put("reports/metrics/summary.json", json.dumps({"corr": steps / 10, "reproduced": 2, "slope": -1.0}))


if __name__ == "__main__":
    work(sys.argv[1], yaml.safe_load(Path("params.yaml").read_text()))
    on = {"processor": "a processor", "system": "Linux"}
    with open(".runs.jsonl", "a") as log:
        run = {"stage": os.environ["DVC_STAGE"], "seconds": 36.0, "peak_gb": 1.5, "on": on}
        log.write(json.dumps(run) + "\n")
