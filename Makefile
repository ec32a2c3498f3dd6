# Everything that people and CI do with a checkout. Each target does its own set-up, once, into the
# user's cache folder (scripts/setup, scripts/deny).

.PHONY: help demo dist build daemon test lint verify fix bench proofs merging paper preemption advisories setup

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## put libtorch into the user's cache folder and link it into this checkout
	@scripts/setup

build: setup ## build the command and the trainer, optimised
	cargo build --release --locked

daemon: ## build the daemon alone, small: target/daemon/sojourn, for machines that only train
	cargo build --profile daemon --locked -p sojourn-daemon
	@cp target/daemon/sojourn-daemon target/daemon/sojourn

dist: build ## pack command, trainer and libraries for another machine
	@scripts/dist

demo: build ## the main job: a search over real data on machines that die
	@target/release/sojourn demo

test: setup ## all tests (with redis-server and iproute2, which are installed where that can be done)
	@scripts/neighbours
	cargo build --locked
	cargo test --workspace --locked

lint: setup ## format, clippy, licences and bans; changes nothing
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	@scripts/deny check bans licenses sources

verify: lint test ## what CI runs

fix: setup ## format, and mend what clippy can
	cargo fmt --all
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged

bench: ## figures, one JSON line each on stdout and nothing else there
	@scripts/setup >&2
	@cargo bench --workspace --locked --bench '*'

proofs: ## the tables and charts of examples/scheduling/PROOFS.md (with milp where cmake and libclang are)
	@cargo build --release --locked -p sojourn $$(scripts/proofs.py --features)
	@scripts/proofs.py

merging: setup ## the tables and the chart of examples/merging/README.md (really trains: ten minutes of two cores)
	@cargo build --release --locked -p sojourn -p sojourn-trainer
	@scripts/merging.py

preemption: ## the tables of examples/merging/PREEMPTION.md
	@cargo build --release --locked -p sojourn
	@scripts/preemption.py

paper: setup ## the tables and charts of examples/merging/PAPER.md (wants CIFAR-10 images: examples/merging/resnet.toml)
	@cargo build --release --locked -p sojourn -p sojourn-trainer
	@scripts/paper.py

advisories: ## known security holes in dependencies (fetches the advisory database)
	@scripts/deny check advisories
