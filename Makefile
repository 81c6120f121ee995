# Two commands do all the set-up by themselves: `make run` and `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
ARGS ?=

.PHONY: help setup run test ahead lint fast real bench docs picture dashboards golden capture lock clean test-vm test-image fuzz eval-studies exam soak web manifests cluster-demo

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: ## .venv with all that tests and tools need (done by every other target)
	@tools/setup

run: ## nodescope on this machine; prints the addresses to look at
	@tools/setup run $(ARGS)
	@.venv/bin/nodescope up $(ARGS)

web: ## build the viewer's page into the package, where it is committed
	@tools/web build

lint: setup ## ruff, formatting, hadolint, mypy for Linux and macOS, tsc, the built page
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/hadolint deploy/Dockerfile
	@.venv/bin/mypy
	@.venv/bin/mypy --platform darwin
	@tools/web check
	@tools/web verify

fast: setup ## the tests that need nothing but files
	@tools/web test
	@tools/test-phase fast "not real and not soak and not vm" auto $(ARGS)

real: setup ## the tests with real servers, real cgroups, real processes
	@tools/test-parts
	@tools/test-phase real "real and not quiet" 3 $(ARGS)
	@tools/test-parts wait
	@tools/test-phase real "real and quiet" 2 $(ARGS)

# Each run of pytest adds why it skipped what; the last line counts them.
test: export SKIPPED_TESTS_FILE := $(CURDIR)/artifacts/skipped
test: ahead lint fast real ## everything this machine can run
	@$(PY) -m tests.skips artifacts/skipped

ahead: setup
	@mkdir -p artifacts && rm -f artifacts/skipped
	@tools/test-parts ahead

bench: setup ## every figure we claim, in one table
	@$(PY) -m bench $(ARGS)

docs: setup ## renew the generated pages and the web page's types
	@$(PY) -m tools.generate_docs
	@$(PY) -m tools.generate_types

picture: setup ## renew README's moving picture from the demo's page
	@$(PY) -m tools.moving_picture

dashboards: setup ## renew deploy/grafana from tools/dashboards
	@$(PY) -m tools.generate_dashboards

golden: setup ## renew what we make of each fixture node; read the diff
	@NODESCOPE_RENEW_GOLDEN=1 $(PY) -m pytest -q tests/golden tests/contracts -p no:randomly

capture: setup ## save this machine as a fixture node: make capture NODE=name
	@$(PY) -m tools.capture $(NODE)

test-vm: setup ## a full cgroup v2 kernel in a virtual machine; ARGS=--image: the agent from the image
	@tests/vm/run $(ARGS)

test-image: setup ## build the image, run its container, withhold each permission
	@tests/image/run

fuzz: ## the native parsers under libFuzzer and sanitizers: make fuzz SECONDS=600
	@tools/fuzz $(or $(SECONDS),600)

soak: setup ## the long runs: two hundred kills, a minute at a thousand events a second
	@$(PY) -m pytest -m "soak" -p no:randomly $(ARGS)

torture: setup ## the fault suite, one table: ARGS='--scale 0.01 fault_grid'
	@$(PY) -m tests.torture $(ARGS)

eval-studies: setup ## what the studies promise beside what is measured: DIR=folder ARGS="--size 40"
	@$(PY) -m tools.eval_studies $(DIR) $(ARGS)

exam: setup ## ask the MCP server about nodes with stories and score it: make exam ARGS="--seeds 1,2,3"
	@$(PY) -m tools.exam $(ARGS)

cluster-tools: ## build the control plane that the Kubernetes tests start
	@tools/go-tools cluster

cluster-demo: setup ## three agents as three nodes, a real control plane, pods placed by what they report
	@tools/go-tools cluster > /dev/null
	@$(PY) -m tools.cluster_demo $(ARGS)

store-tools: ## fetch the servers of S3, Google Cloud Storage and Azure that the fleet's tests start
	@tools/go-tools s3 gcs
	@tests/azure/build

COMPILE := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header

lock: setup ## renew the lock files: everything, what runs, what builds the wheel, installers, where files lie
	@$(COMPILE) --group dev pyproject.toml -o requirements.lock
	@$(COMPILE) -c requirements.lock pyproject.toml -o requirements.run.lock
	@$(COMPILE) -c requirements.lock --group build -o requirements.build.lock
	@printf 'pip\nuv\n' | $(COMPILE) - -o requirements.installers.lock
	@$(PY) -m tools.list_run_files

changelog: setup ## renew CHANGELOG.md from changes/
	@$(PY) -m tools.changelog

release-check: setup ## build wheels, source archive, chart and image, and install each on a bare machine
	@tools/release-check $(ARGS)

clean: ## remove what the other targets made
	rm -rf .venv .mypy_cache .ruff_cache artifacts dist web/node_modules

manifests: setup ## renew deploy/manifests from the chart
	@tools/render-manifests
