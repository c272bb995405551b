# david: `make help` names the targets.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 5s

# The packages whose tests look at throughput.
MEASURING := david/cmd/david david/internal/experiment

# Those of the others that take longest come first, so that none of them is left at the end with a core idle.
LENGTHY := $(addprefix david/internal/,sandbox live workload sampler crash)

# A static binary, and no C compiler needed.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build setup tune test unmeasured results cells lint bench fuzz clean

help: ## name the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' Makefile

build: ## build bin/david
	go build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o bin/david ./cmd/david

setup: ## install what `make tune` needs and is missing
	@scripts/setup tune

tune: setup ## set-up and the main job: measure this machine, tune a throwaway server, write my.cnf and report.html
	bin/david tune

test: ## set-up, lint and all tests, on real servers
	@scripts/setup test
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint unmeasured
	@# Where throughput is looked at, one package after the other: two real servers at once would disturb each other.
	go test -count=1 -p 1 -timeout 20m $(MEASURING)

unmeasured: # the tests that do not look at throughput
	go test -count=1 -p 3 -timeout 20m $(LENGTHY) $$(go list ./... | grep -vxF $(addprefix -e ,$(MEASURING) $(LENGTHY)))

results: build ## the long measurements behind docs/method.md, two hours, and docs/results.md, an hour a cell, on a machine with nothing else to do
	@scripts/setup test
	go test -count=1 -tags results -run TestResults -skip TestResultsCells -v -timeout 6h -p 1 ./cmd/david ./internal/probe
	DAVID_KILLS=20 go test -count=1 -run 'TestResume$$' -v -timeout 1h ./cmd/david
	@$(MAKE) --no-print-directory cells

cells: build ## the cells of docs/results.md that results/ does not hold yet: about an hour each; DAVID_CELL=NAME,... picks
	go test -count=1 -tags results -run TestResultsCells -v -timeout 0 ./cmd/david

lint: ## gofmt, go vet, staticcheck, shellcheck
	@unformatted=$$(gofmt -l api cmd internal 2>/dev/null); test -z "$$unformatted" || { echo "not gofmt'ed: $$unformatted" >&2; exit 1; }
	go vet ./... && go vet -tags results ./...
	go tool staticcheck ./...
	shellcheck scripts/* .ci/run

bench: ## benchmarks of the hot paths
	go test -run '^$$' -bench . -benchmem -p 1 ./...

fuzz: ## every fuzz test for FUZZTIME (5s)
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

clean: ## remove what was built; installed servers and results stay
	rm -rf bin
