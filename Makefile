# Everything that people and CI do with a checkout. Each target does its own set-up, once, into the user's cache folder
# (scripts/setup, scripts/setup-tests, scripts/engine_tools.py, scripts/deny). The studies of the examples have a Makefile in examples/.

.PHONY: help demo dist wheels test-wheels build daemon test check engines gpus test-deploy fuzz lint verify fix bench advisories setup

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## put libtorch into the user's cache folder and link it into this checkout
	@scripts/setup

build: setup ## build the command and the trainer, optimised
	cargo build --release --locked

daemon: ## build the daemon alone, small: target/daemon/sojourn, for machines that only train
	cargo build --profile daemon --locked -p sojourn-daemon
	@cp target/daemon/sojourn-daemon target/daemon/sojourn

dist: setup ## pack command, daemon, trainer and libraries for other machines, with checksums: target/dist
	@scripts/dist

wheels: setup ## the command with its Python package, and the trainer, as Python wheels: target/wheels
	@python3 scripts/deploy_tools.py --checkout .
	@scripts/wheels

test-wheels: wheels ## install the wheels into an empty environment and run fifteen lines there (downloads torch, 2 GB)
	@scripts/wheels-test

demo: setup ## the main job: a search over real data on machines that die (a build that compiles fast, without features that it doesn't use)
	cargo build --profile demo --locked --no-default-features
	@target/demo/sojourn demo

test: setup ## all tests (with redis-server and iproute2, which are installed where that can be done)
	@scripts/setup-tests
	# It builds the command and the trainer too. A `cargo build` before it would compile most crates twice, with other features.
	cargo test --workspace --locked

check: setup ## the fast tests, while one thinks: unit tests, the core, golden worlds, and one job of whole processes with its replay
	cargo test --workspace --locked --lib --test core --test golden
	cargo test --workspace --locked --test whole -- control::

engines: setup ## users' own models end to end; PyTorch goes into the user's cache folder (6 GB), or SOJOURN_PYTHON names one
	@test -n "$(SOJOURN_PYTHON)" || python3 scripts/engine_tools.py --checkout .
	cargo build --profile demo --locked
	@scripts/engines target/demo

test-deploy: ## check every file of deploy/, with tools in the user's cache folder
	@python3 scripts/python.py --checkout .
	@python3 scripts/deploy_tools.py --checkout .
	@.cache/deploy/bin/python deploy/tests/run.py

gpus: setup ## training on this machine's NVIDIA GPUs end to end, with PyTorch as for `make engines`
	@test -n "$(SOJOURN_PYTHON)" || python3 scripts/engine_tools.py --checkout .
	cargo build --profile demo --locked
	@scripts/gpus target/demo

fuzz: ## libFuzzer over every parser of foreign bytes: TARGET=csv for one, SECONDS=3600 for each (300)
	@scripts/fuzz "$(TARGET)" "$(SECONDS)"

# The packages that clippy looks at. CI looks at them while it builds the tests, and names none.
LINTED = --workspace
lint: setup ## format, module structure, clippy, licences and bans; changes nothing
	cargo fmt --all --check
	@python3 scripts/structure.py
	$(if $(LINTED),cargo clippy $(LINTED) --all-targets --locked -- -D warnings)
	# What `make demo` builds.
	cargo clippy -p sojourn --no-default-features --locked -- -D warnings
	@scripts/deny check bans licenses sources

verify: lint test test-deploy ## what CI runs

fix: setup ## format, and mend what clippy can
	cargo fmt --all
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged

bench: ## figures, one JSON line each on stdout and nothing else there; and the tables of docs/benchmarks.md
	@scripts/setup >&2
	@scripts/setup-tests >&2
	@cargo build --release --locked -p sojourn -p sojourn-trainer
	@scripts/bench_page.py

advisories: ## known security holes in dependencies (fetches the advisory database)
	@scripts/deny check advisories
