# david: `make help` names the targets.

VERSION := $(shell sed -n 's/^const version = "\(.*\)"$$/\1/p' internal/cli/version.go)
COMMIT := $(shell git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null)
COMMIT_DATE := $(shell git log -1 --format=%cI 2>/dev/null)
FUZZTIME ?= 5s
FUZZJOBS ?= $(shell nproc)

# Where `make install` puts things; DESTDIR goes before it.
PREFIX ?= /usr/local
SHARE = $(DESTDIR)$(PREFIX)/share

# The tests in a cluster, which is a load on the whole machine.
CLUSTER := david/test/e2e

# The packages whose tests mount filesystems, a second half: each of their servers is a load.
MOUNTING := $(addprefix david/internal/,cli experiment sandbox crash move probe manifest/render) david/test/ceph

# The tests whose outcome depends on how fast this machine is: they are not run beside the cluster.
CALM := ^(TestProbeCaps|TestScriptsAlone|TestGateClientCPU|TestGateRowCounts|TestGateSteadyState|TestLive|TestClients|TestBesideWork|TestBurstEmpties)$$

# Where each run of tests leaves its record, for the summary.
RECORDS := bin/test

# gotest runs go test, shows what it shows, and keeps the record under a name. Vetting is lint's. What a debugger wants of a
# binary, and a test does not, takes a third of the time to link it.
gotest = @mkdir -p $(RECORDS) && $(NICE) go tool gotestsum --format standard-quiet --hide-summary all --jsonfile $(RECORDS)/$(1).json --raw-command -- go test $(2) -vet=off -ldflags='-s -w' -json
packages crds images-test: NICE := nice -n 10

# What only computes, and of the command line what starts no server.
PURE := $(addprefix david/internal/,advice explain mycnf netmodel plan price report result rules search stats storage tune) david/internal/manifest/... david/test/summary david/test/mutate david/test/climbs
PURE_CLI := ^(TestImports|TestCell|TestSlicedCells|TestFrozen|TestPossible|TestPriceExamples|TestStorage|TestCatalogueInDocs)

# A static binary, and no C compiler needed.
export CGO_ENABLED ?= 0

# Paths within what is compiled do not name this folder: so a clone in another one finds what this one has compiled, for vet
# and staticcheck, too, which take two minutes of CPU else.
export GOFLAGS += -trimpath

.DEFAULT_GOAL := help
.PHONY: help build stage install uninstall deb rpm release setup tune check pure test clustered unclustered packages crds calm mounting e2e image test-images images-test results studies cells power ceph zfs lint mutations hostile climbs bench fuzz clean

help: ## name the targets
	@awk -F ':.*## ' '/^[a-z0-9 -]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

build: ## build bin/david
	go build -buildvcs=false -ldflags '-s -w -X main.commit=$(COMMIT) -X main.date=$(COMMIT_DATE)' -o bin/david ./cmd/david

stage: build # what an installation holds, in bin/stage: the program, man pages, completions, docs
	@rm -rf bin/stage && mkdir -p $(addprefix bin/stage/,bin $(addprefix share/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d doc/david))
	@cp bin/david bin/stage/bin/
	@cp -R README.md CHANGELOG.md SECURITY.md docs bin/stage/share/doc/david/
	@bin/david man bin/stage/share/man/man1 && gzip -9n bin/stage/share/man/man1/*.1
	@bin/david completion bash >bin/stage/share/bash-completion/completions/david
	@bin/david completion zsh >bin/stage/share/zsh/site-functions/_david
	@bin/david completion fish >bin/stage/share/fish/vendor_completions.d/david.fish
	@chmod -R u=rwX,go=rX bin/stage

install: stage ## install david, its man pages, completions and docs under PREFIX (/usr/local)
	@mkdir -p $(DESTDIR)$(PREFIX)
	cp -R bin/stage/. $(DESTDIR)$(PREFIX)/

uninstall: ## remove what `make install` put there; what david measured stays
	rm -f $(DESTDIR)$(PREFIX)/bin/david $(SHARE)/man/man1/david.1.gz $(SHARE)/man/man1/david-*.1.gz
	rm -f $(SHARE)/bash-completion/completions/david $(SHARE)/zsh/site-functions/_david $(SHARE)/fish/vendor_completions.d/david.fish
	rm -rf $(SHARE)/doc/david

deb rpm: stage ## build a package in bin/: the same commit, the same bytes
	@mkdir -p bin/packages
	cd packaging && VERSION='$(VERSION)' ARCH="$$(go env GOARCH)" SOURCE_DATE_EPOCH="$$(date -d '$(COMMIT_DATE)' +%s)" go tool nfpm package -p $@ -t ../bin/packages

release: ## tag this commit with its version and build its packages; not with changes, not twice
	@scripts/release '$(VERSION)'

setup: ## install what `make tune` needs and is missing
	@scripts/setup tune

tune: setup ## set-up and the main job: measure this machine, tune a throwaway server, write my.cnf and report.html
	bin/david tune

check: ## what needs no server and no root, in a minute: lint, and the tests of what only computes
	@$(MAKE) --no-print-directory -j2 --output-sync=target lint pure

pure: # the tests that start no server
	go test $(PURE)
	go test -run '$(PURE_CLI)' ./internal/cli

test: ## set-up, lint and all tests, on real servers and in a real cluster; what fails keeps nothing else from running
	@scripts/setup test
	@scripts/setup e2e
	go run ./test/e2e/cluster build
	@rm -rf $(RECORDS) && mkdir -p $(RECORDS)
	@# Those of a cluster mostly wait for containers that start and stop; what computes runs beside them, a step behind.
	@# More at a time than there are CPUs: a server that starts or stops mostly waits.
	@# Interrupted tests leave what they had begun in a temporary folder of this run's, which is swept at its end.
	@TMPDIR=$$(mktemp -d "$${TMPDIR:-/tmp}/dt.XXX") && chmod 1777 "$$TMPDIR" && export TMPDIR || exit 1; \
	trap 'exit 130' INT TERM; trap 'TMPDIR= go run ./test/sweep "$$TMPDIR"' EXIT; \
	failed=; \
	$(MAKE) --no-print-directory -k -j3 --output-sync=target clustered unclustered lint crds images-test || failed="$$failed lint, clustered, packages, mounting, crds or images-test,"; \
	$(MAKE) --no-print-directory calm || failed="$$failed calm,"; \
	go run ./test/summary $(if $(STRICT),-skips test/skips.txt) $(RECORDS)/*.json || failed="$$failed tests,"; \
	test -z "$$failed" || { echo "make test: failed:$${failed%,}" >&2; exit 1; }

e2e: ## the tests in a real Kubernetes cluster, as root; the first time builds Kubernetes, 11 minutes of CPU
	@scripts/setup e2e
	@$(MAKE) --no-print-directory clustered

clustered: # the tests in a cluster
	go run ./test/e2e/cluster build
	$(call gotest,clustered) -count=1 -parallel 4 -timeout 30m $(CLUSTER)

unclustered: # all packages but the cluster's, in two halves; what fails in the first does not keep the second from running
	@failed=; for half in packages mounting; do $(MAKE) --no-print-directory $$half || failed=1; done; test -z "$$failed"

packages: # the tests of the packages that mount nothing
	$(call gotest,packages) -count=1 -p 4 -parallel 4 -timeout 30m -skip '$(CALM)' $$(go list ./... | grep -vxF $(addprefix -e ,$(CLUSTER) $(MOUNTING)))

crds: # the tests of the definitions of operators
	$(call gotest,crds,-C test/crds) -count=1 ./...

calm: # the tests that want half of the machine, two packages at a time; those of the first two want all of it, one by one
	@sync # what the tests before have written: it would be written beside these
	$(call gotest,calm) -count=1 -timeout 30m -p 1 -parallel 1 -run '$(CALM)' ./internal/experiment ./internal/netpath
	$(call gotest,calm-pairs) -count=1 -timeout 30m -p 2 -parallel 4 -run '$(CALM)' ./internal/live ./internal/cli ./internal/workload ./internal/sandbox

mounting: # the tests of the packages that mount filesystems, but for those of calm
	$(call gotest,mounting) -count=1 -p 3 -parallel 4 -timeout 40m -skip '$(CALM)' $(MOUNTING)

# The commands that build images; they are a module of their own.
bin/images/%: FORCE
	go -C images build -buildvcs=false -o ../$@ ./$*
FORCE:

image: build bin/images/david ## write bin/david-image.tar: the image of david, an OCI archive
	cd images && ../bin/images/david -david ../bin/david -version '$(VERSION)+$(COMMIT)' -out ../bin/david-image.tar

test-images: bin/images/testservers ## link the images for tests in a cluster as bin/{mariadb,mysql,haproxy,pause}-image.tar
	cd images && ../bin/images/testservers -links ../bin

images-test: ## the tests of the images
	$(call gotest,images,-C images) -count=1 -timeout 20m ./...

results: build ## the long measurements behind docs/method.md, four hours, and docs/results.md, an hour a cell, and the studies, on a machine with nothing else to do
	@scripts/setup test
	go test -count=1 -tags results -run TestResults -skip 'TestResultsCells|TestResultsStudies' -v -timeout 8h -p 1 ./internal/cli ./internal/lab ./internal/probe ./internal/tune ./internal/follower ./internal/move ./internal/sandbox
	DAVID_KILLS=50 go test -count=1 -run 'TestStorageMeasureKilled$$' -v -timeout 1h ./internal/cli
	DAVID_KILLS=50 go test -count=1 -run 'TestNetworkMeasureKilled$$' -v -timeout 1h ./internal/cli
	DAVID_KILLS=20 go test -count=1 -run 'TestResume$$' -v -timeout 1h ./internal/cli
	DAVID_KILLS=25 go test -count=1 -run 'TestMoveKilled$$' -v -timeout 2h ./internal/move
	scripts/test-packages
	@$(MAKE) --no-print-directory cells
	@$(MAKE) --no-print-directory studies
	@$(MAKE) --no-print-directory ceph
	@$(MAKE) --no-print-directory zfs
	@$(MAKE) --no-print-directory power

studies: build ## the published studies p1, p2, p3 and p5 whole, and followers in a cluster, thirteen hours; p4 is make ceph's. DAVID_STUDY=p1 picks
	@scripts/setup test
	go test -count=1 -tags results -run 'TestResultsStudies/$(DAVID_STUDY)' -v -timeout 24h ./internal/cli
	@scripts/setup e2e
	go run ./test/e2e/cluster build
	go test -count=1 -tags results -run 'TestResultsStudyP3|TestResultsAcrossNodes' -v -timeout 6h ./test/e2e
	DAVID_FOLLOWERS=all go test -count=1 -run 'TestFollower$$' -v -timeout 1h ./test/e2e

cells: build ## the cells of docs/results.md that results/ does not hold yet: about an hour each; DAVID_CELL=NAME,... picks
	go test -count=1 -tags results -run TestResultsCells -v -timeout 0 ./internal/cli

power: ## a thousand power cuts of each flavour, and each way of losing data by one: the table of docs/crash.md, some hours, as root; DAVID_CUTS=N
	@scripts/setup test
	go test -count=1 -tags results -run TestResultsPower -v -timeout 0 ./internal/crash

ceph: build ## a real Ceph of Debian's packages on this machine, `david study p4` on it, and all of it down again: half an hour, 15 GB of disk, as root
	@scripts/setup ceph
	go run ./test/ceph run go test -count=1 -p 1 -v -timeout 30m -run '^(TestCeph|TestStudyP4|TestFailoverCeph)$$' ./test/ceph ./internal/cli ./internal/crash
	go run ./test/ceph run bin/david study p4 --local -v

zfs: build ## md, LVM and ZFS really built in an emulated guest, followers of a server on ZFS, and what RAIDZ's reads and writes are of one volume's; the first time it compiles ZFS, as root
	@scripts/setup guest
	go test -c -o bin/guest/sandbox.test ./internal/sandbox
	go test -c -o bin/guest/follower.test ./internal/follower
	CGO_ENABLED=0 go test -count=1 -tags results -run '^TestResultsZFS$$' -v -timeout 4h ./test/guest

lint: ## gofmt, go vet, staticcheck, shellcheck
	@unformatted=$$(gofmt -l cmd images internal test); test -z "$$unformatted" || { echo "not gofmt'ed: $$unformatted" >&2; exit 1; }
	go vet ./... && go vet -tags results ./...
	go vet -C test/crds ./...
	go tool staticcheck ./...
	cd images && go vet ./... && "$$(cd .. && go tool -n staticcheck)" ./...
	shellcheck scripts/* .ci/run

mutations: ## break lines of the statistics, gates, lock, ledger and undo, and see that the tests notice: half an hour
	go run ./test/mutate

hostile: ## more than 2,000 hostile option files, flags, records, names, specs and manifests, held against servers of both flavours: a quarter of an hour
	@scripts/setup test
	DAVID_HOSTILE=all go test -count=1 -run '^TestHostile$$' -v -timeout 2h ./test/hostile
	DAVID_HOSTILE=all go test -count=1 -run '^(TestTuneFaults|TestCrashTestFaults)$$' -v -timeout 2h ./internal/cli
	@scripts/setup e2e
	go run ./test/e2e/cluster build
	DAVID_HOSTILE=all go test -count=1 -run '^TestPodtax$$' -v -timeout 1h ./test/e2e

climbs: ## follow tune and compare from their flags to their reports: the calls that go up a floor, and the lengths of functions
	go run ./test/climbs

bench: ## benchmarks of the hot paths
	go test -run '^$$' -bench . -benchmem -p 1 ./...

fuzz: ## every fuzz target for FUZZTIME (5s), FUZZJOBS (as many as CPUs) at a time
	@scripts/fuzz $(FUZZTIME) $(FUZZJOBS)

clean: ## remove what was built; installed servers and results stay
	rm -rf bin
