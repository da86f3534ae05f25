# Flamefleet. `make` lists the targets.
SHELL := /bin/bash
PRESET ?= release
JOBS ?= $(shell nproc)
export DEBIAN_FRONTEND := noninteractive

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Everyday
.PHONY: deps configure build unit test golden-update docs-update arm64 fmt fmt-check tidy
deps: ## Install the Debian packages that are missing (debian-packages.txt)
	@missing=$$(comm -23 <(tools/debian-packages run build test e2e arm64 lint bench | sort -u) \
	  <(dpkg-query -W -f '$${db:Status-Abbrev} $${Package} $${Provides}\n' | \
	    awk '$$1 == "ii" { for (i = 2; i <= NF; i++) { sub(",", "", $$i); print $$i } }' | sort -u)); \
	if [ -n "$$missing" ]; then apt-get update -q && apt-get install -qy --no-install-recommends $$missing; fi

configure:
	@cmake --preset $(PRESET) > build-$(PRESET).log 2>&1 || { cat build-$(PRESET).log; exit 1; }; rm -f build-$(PRESET).log

build: deps configure ## Build all programs and tests of PRESET (release, debug, asan, tsan)
	cmake --build --preset $(PRESET) -j $(JOBS)

unit: build ## Run the unit tests of PRESET
	ctest --preset $(PRESET) -L unit -j $(JOBS)

test: build ## Run all tests: unit, BPF, API server, cluster (root, Go)
	ctest --preset $(PRESET) -j $(JOBS)

golden-update: build ## Write tests/golden anew; read the diff before you commit it
	FF_UPDATE_GOLDEN=1 build/$(PRESET)/bin/operator_plan_test --gtest_filter='*Golden*' --gtest_brief=1

docs-update: programs ## Write the made pages of docs/ anew (root); read the diff before you commit it
	cmake --build --preset release -j $(JOBS) --target burner
	FF_UPDATE_DOCS=1 tests/docs/docs_test.py
	FF_UPDATE_DOCS=1 tests/docs/fleet_test.py

# Those that depend on the processor, need no child of it, and only what qemu-user knows (not openat2).
ARM64_TESTS := unwind_table_test agent_compress_test agent_profile_test
arm64: deps ## Cross-build what depends on the processor for arm64; run its unit tests under emulation
	tools/arm64-sysroot build/arm64-sysroot
	cmake --preset arm64 >build-arm64.log || { cat build-arm64.log; exit 1; }; rm build-arm64.log
	cmake --build --preset arm64 -j $(JOBS) --target ff_bpf_profiler_skeleton flamefleet-parse $(ARM64_TESTS)
	ctest --preset arm64 -R "^($$(tr ' ' '|' <<<'$(ARM64_TESTS)'))$$"

fmt: ## Format the C++ sources
	git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i

fmt-check: ## Fail if a C++ source is not formatted
	git ls-files '*.cc' '*.h' '*.c' | xargs clang-format --dry-run -Werror

tidy: build ## Run clang-tidy over the sources of PRESET
	git ls-files 'base/*.cc' 'agent/*.cc' 'operator/*.cc' 'store/*.cc' 'kubectl/*.cc' | xargs -P $(JOBS) -n 4 clang-tidy -p build/$(PRESET) --quiet

local: programs ## Profile this host into an embedded store, without Kubernetes, until Ctrl-C (root)
	@tools/local build/release/bin

##@ The cluster on this machine
.PHONY: demo demo-down cluster-up cluster-down image image-arm64 programs
demo: programs ## Show everything on a real cluster on this machine: status and hottest functions
	e2e/demo

demo-down: cluster-down ## Stop the demo and remove everything of it

cluster-up: deps ## Start a real two-node cluster here, or keep the one that runs
	e2e/cluster up

cluster-down: ## Stop that cluster and remove everything of it
	e2e/cluster down

image: programs ## Build our image and the workloads' and import them into the running cluster
	e2e/cluster load

# Debian's packages for arm64 are installed under emulation, which takes minutes.
image-arm64: deps ## Cross-build our programs, make our image for arm64 of them, and run them in it under emulation (root)
	tools/arm64-sysroot build/arm64-sysroot
	cmake --preset arm64 >build-arm64.log || { cat build-arm64.log; exit 1; }; rm build-arm64.log
	cmake --build --preset arm64 -j $(JOBS) --target flamefleet-operator flamefleet-agent flamefleet-parse flamefleet-store
	cd e2e && python3 -m unittest -v scenarios.test_image_arm64

programs: deps configure
	cmake --build --preset release -j $(JOBS) --target flamefleet-operator flamefleet-agent flamefleet-parse flamefleet-store \
	  kubectl-flamefleet

##@ Release
.PHONY: dist
IMAGE ?= flamefleet
dist: programs ## Make dist/: manifests in one file, Helm chart, kubectl plugin, checksums (IMAGE=registry/name, no tag; needs kubectl)
	tools/dist --image $(IMAGE) --plugin build/release/bin/kubectl-flamefleet

##@ Measure, and what takes longer
.PHONY: bench outage skew soak
SOAK_SECONDS ?= 600

bench: deps ## Measure encoder, compressor, ring, unwinding, agent and operator beside peers (root, Go)
	cmake --preset release -DFF_BENCH=ON
	cmake --build --preset release -j $(JOBS)
	cd tests/bench/gzippeers && go build -o ../../../build/release/bin/gzippeers .
	profile=$$(mktemp) && FF_PROFILE_OUT=$$profile build/release/bin/profile_bench && build/release/bin/gzippeers $$profile; \
	  status=$$?; rm $$profile; exit $$status
	cd tests/bench/ringpeer && go build -o ../../../build/release/bin/ringpeer .
	for bench in ring_bench spool_bench delivery_bench symbol_bench unwind_bench; do FF_RING_PEER=build/release/bin/ringpeer build/release/bin/$$bench || exit 1; done
	directory=$$(mktemp -d) && build/release/bin/store_bench $$directory; rm -r $$directory
	tests/bench/store_load.mjs
	tests/bench/agent_minute
	tests/bench/agent_budget
	tests/bench/agent_churn
	tests/bench/agent_churn --rounds 5 --seconds 20 --rate 50
	tests/fidelity/stacks_beside_perf
	FF_FIDELITY_SAMPLES=64000 build/release/bin/fidelity_test
	cd tests/bench/controlload && go build -o ../../../build/release/bin/controlload .
	ulimit -n 16384 && cd build/release/bin && ./controlload ./control_bench_server "./controlload -serve"
	tests/bench/pod_cache

OUTAGE_SECONDS ?= 3000

outage: programs ## Take the store of a new cluster away for OUTAGE_SECONDS (3000), and look that nothing is lost
	cd e2e && python3 -m scenarios.prepare && FF_OUTAGE_SECONDS=$(OUTAGE_SECONDS) python3 -m unittest -v scenarios.test_outage
	e2e/cluster down

skew: programs ## Mix operator and agents of this tree with those of PREVIOUS (a commit or tag) on a new cluster
	@test -n "$(PREVIOUS)" || { echo "make skew PREVIOUS=<commit or tag>: which version is mixed with this one?"; exit 2; }
	rm -rf build/previous && git worktree prune && git worktree add --detach build/previous $(PREVIOUS)
	$(MAKE) -C build/previous programs
	cd e2e && python3 -m scenarios.prepare && \
	  FF_PREVIOUS_BIN=../build/previous/build/release/bin python3 -m unittest -v scenarios.test_skew
	e2e/cluster down
	git worktree remove --force build/previous

soak: programs ## Kill the store and the agent, walk the kinds' schemas, 1,000 containers; fuzz each parser for SOAK_SECONDS (600) (root)
	cmake --build --preset release -j $(JOBS) --target short_lived_test store_durability_test walk_apiserver_test agent_kill_test
	FF_STORE_KILLS=200 build/release/bin/store_durability_test --gtest_filter='*Kill9*'
	FF_AGENT_KILLS=50 build/release/bin/agent_kill_test
	for seed in 1 2 3 4 5; do FF_WALK_SEED=$$seed$$RANDOM FF_WALK_STEPS=3000 build/release/bin/walk_apiserver_test || exit 1; done
	FF_CONTAINERS=1000 FF_PROCESSES=36000 build/release/bin/short_lived_test
	CXX=clang++ cmake -S . -B build/fuzz -G Ninja -DFF_FUZZ=ON -DFF_SANITIZE=address,undefined
	cmake --build build/fuzz -j $(JOBS) --target fuzz
	for corpus in tests/fuzz/corpus/*; do \
	  name=$$(basename $$corpus) && mkdir -p build/fuzz/corpus/$$name && \
	  build/fuzz/bin/$${name}_fuzz -max_total_time=$(SOAK_SECONDS) build/fuzz/corpus/$$name $$corpus || exit 1; \
	done
