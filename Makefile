# david: `make help` names the targets.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 5s

# The packages whose tests look at throughput.
MEASURING := david/cmd/david david/internal/experiment

# Those of the others that take longest come first, so that none of them is left at the end with a core idle.
LENGTHY := $(addprefix david/internal/,sandbox live workload sampler crash)

# The tests in a cluster, which is a load on the whole machine.
CLUSTER := david/test/e2e

# A static binary, and no C compiler needed.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: help build setup tune test unmeasured clustered e2e image test-images images-test results cells lint bench fuzz clean

help: ## name the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

build: ## build bin/david
	go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o bin/david ./cmd/david

setup: ## install what `make tune` needs and is missing
	@scripts/setup tune

tune: setup ## set-up and the main job: measure this machine, tune a throwaway server, write my.cnf and report.html
	bin/david tune

test: ## set-up, lint and all tests, on real servers and in a real cluster
	@scripts/setup test
	@scripts/setup e2e
	go run ./test/e2e/cluster build
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint unmeasured
	@# Both mostly wait for containers that start and stop.
	@$(MAKE) --no-print-directory -j2 --output-sync=target clustered images-test
	@# Where throughput is looked at, one package after the other: two real servers at once would disturb each other.
	go test -count=1 -p 1 -timeout 40m $(MEASURING)

e2e: ## the tests in a real Kubernetes cluster, as root; the first time builds Kubernetes, 11 minutes of CPU
	@scripts/setup e2e
	@$(MAKE) --no-print-directory clustered

clustered: # the tests in a cluster
	go run ./test/e2e/cluster build
	@# Every test is shown, so that it is seen which are skipped, and why.
	go test -count=1 -v -parallel 4 -timeout 30m $(CLUSTER)

unmeasured: # the tests that do not look at throughput
	@# More at a time than there are CPUs: a server that starts or stops mostly waits.
	go test -count=1 -p 4 -parallel 4 -timeout 30m $(LENGTHY) $$(go list ./... | grep -vxF $(addprefix -e ,$(MEASURING) $(LENGTHY) $(CLUSTER)))
	go test -C test/crds -count=1 ./...

# The commands that build images; they are a module of their own.
bin/images/%: FORCE
	go -C images build -trimpath -buildvcs=false -o ../$@ ./$*
FORCE:

image: build bin/images/david ## write bin/david-image.tar: the image of david, an OCI archive
	cd images && ../bin/images/david -david ../bin/david -version '$(VERSION)' -out ../bin/david-image.tar

test-images: bin/images/testservers ## link the images for tests in a cluster as bin/{mariadb,mysql,pause}-image.tar
	cd images && ../bin/images/testservers -links ../bin

images-test: ## the tests of the images
	go -C images test -count=1 -timeout 20m ./...

results: build ## the long measurements behind docs/method.md, four hours, and docs/results.md, an hour a cell, on a machine with nothing else to do
	@scripts/setup test
	go test -count=1 -tags results -run TestResults -skip TestResultsCells -v -timeout 8h -p 1 ./cmd/david ./internal/probe ./internal/tune
	DAVID_KILLS=20 go test -count=1 -run 'TestResume$$' -v -timeout 1h ./cmd/david
	@$(MAKE) --no-print-directory cells

cells: build ## the cells of docs/results.md that results/ does not hold yet: about an hour each; DAVID_CELL=NAME,... picks
	go test -count=1 -tags results -run TestResultsCells -v -timeout 0 ./cmd/david

lint: ## gofmt, go vet, staticcheck, shellcheck
	@unformatted=$$(gofmt -l cmd images internal test); test -z "$$unformatted" || { echo "not gofmt'ed: $$unformatted" >&2; exit 1; }
	go vet ./... && go vet -tags results ./...
	go vet -C test/crds ./...
	go tool staticcheck ./...
	cd images && go vet ./... && "$$(cd .. && go tool -n staticcheck)" ./...
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
