# make repro: environment, then every table and figure.  make test: environment, then the whole test suite.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
READY := .venv/.ready

KILLS ?= 50
.PHONY: repro test fresh env timings readme lock lint rehearse preflight bench torture twice verify cluster wheel examples
repro: env
	@dvc repro
	@python -m attnrate.ops.costs
	@python -m attnrate.ops.fresh --write

test: env ## in two processes; plain pytest works too
	@pytest -n 2 --dist loadfile --no-loadscope-reorder

fresh: env ## committed results belong to the committed code; published ones are told apart
	@python -m attnrate.ops.fresh
	@plan=$$(dvc repro --dry --allow-missing 2>&1) || { echo "$$plan"; exit 1; }; \
	if echo "$$plan" | grep "Running stage"; then echo "committed results are stale: run make repro and commit"; exit 1; \
	else echo "committed results are up to date"; fi

env: $(READY)
$(READY): requirements.lock pyproject.toml
	@python3 -c 'import sys; sys.version_info >= (3, 11) or sys.exit("attnrate needs Python 3.11 or newer, python3 is " + sys.version.split()[0])'
	@echo "installing into .venv (about 2 minutes and 6 GB)"
	@test -x .venv/bin/python || python3 -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

timings: env ## reports/runs.json and reports/costs.md from the log of the last runs
	@python -m attnrate.ops.costs --anew

readme: env ## tables of README.md and docs/ from the committed results
	@python -m attnrate.ops.readme

preflight: env ## GPU, disk, downloads and two steps with the real data, before the paper profile
	@python -m attnrate.ops.preflight paper

rehearse: env ## the paper profile for two steps, at true sizes, on this machine
	@python -m attnrate.ops.rehearse

bench: env ## ratios against what a user would write instead
	@python -m benchmarks

torture: env ## kill stages at random moments, rerun them, compare every byte
	@python -m tests.robustness.torture --kills $(KILLS)

twice: env ## the smoke DAG twice, in two places: the same bytes
	@python -m tests.robustness.twice

verify: env ## results of a rebuild against the committed ones, within stated tolerances
	@python -m attnrate.ops.verify

cluster: env ## out-of-date stages over the workers of this machine
	@python -m attnrate.ops.cluster

wheel: export PYTHONPATH :=
wheel: ## the wheel, alone in a new environment, measures torchvision models with random weights
	@rm -rf .scratch/wheel build && mkdir -p .scratch/wheel
	@python3 -m venv .scratch/wheel/env
	@.scratch/wheel/env/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir .scratch/wheel .
	@rm -rf build
	@sed -n 's/^\([a-z0-9._-]*==.*[^ ]\) *\\$$/\1/p' requirements.lock > .scratch/wheel/versions.txt
	@.scratch/wheel/env/bin/pip install --quiet --disable-pip-version-check --constraint .scratch/wheel/versions.txt \
	  .scratch/wheel/attnrate-*.whl torchvision
	@cd .scratch/wheel && env/bin/attnrate spectrum vit_b_16 --random 4 --out spectrum
	@cd .scratch/wheel && env/bin/attnrate heads swin_t --random 4 --sizes 4 16 --out heads

examples: env ## the worked examples of docs/spectrum.md, as they stand there, and their pictures
	@rm -rf .scratch/examples && mkdir -p .scratch/examples && cp docs/tool/*.txt docs/tool/*.py .scratch/examples
	@cd .scratch/examples && bash -euxc "$$(sed -n '/^## Three examples/,/^## From/s/^    //p' ../../docs/spectrum.md)"
	@cp .scratch/examples/spectra/against.png docs/tool/against.png
	@cp .scratch/examples/heads/heads.png docs/tool/heads.png
	@cp .scratch/examples/known-r3n/heads.png docs/tool/known.png

lint: env
	@ruff check . && ruff format --check .

lock: ## requirements.lock anew, for every platform, without addresses
	@python3 -m venv .scratch/uv && .scratch/uv/bin/pip install --quiet uv
	@.scratch/uv/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --quiet -o requirements.lock
