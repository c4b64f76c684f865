# `make` alone lists the targets. A fresh machine needs Go and make; `make test`
# gets the rest itself (scripts/deps, and real servers into the user's cache).

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO          ?= go
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULN      := golang.org/x/vuln/cmd/govulncheck@v1.8.0
VULN        ?= yes
FUZZTIME    ?= 10s
BENCHTIME   ?= 1s
MATRIX      ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/carronade/matrix.jsonl
PLATFORMS   := linux/amd64 linux/arm64 darwin/arm64 windows/amd64 windows/arm64

# The tools that build releases are a module of their own: see docs/decisions/009. Their
# tests read files outside of it, which Go's test cache does not see: hence -count=1.
RELEASE     := internal/tools/release

# A protocol in a program of its own, and a module of its own, so that the compiler refuses
# it our internal packages.
EXAMPLE     := examples/lines

# Where the archives of a release will be, for the formula of Homebrew.
URL         ?=

# Packages that run real servers and the built program: they spend their time in
# other processes, which neither the race detector nor Go's test cache sees. Hence
# -count=1 for the last of them. Some of its tests freeze a server and measure, so beside
# them runs only what computes, and only while no test wants the processor (IDLE).
REAL        := internal/testkit internal/testkit/kafkatest internal/store/elastic internal/acceptance
SLOW         = ./internal/acceptance
SERVERS      = $(addprefix ./,$(filter-out internal/acceptance,$(REAL)))

# Packages that wait more than they compute start first, while others are compiled.
# With -p 3 and -parallel 4 no core is idle while one of them waits.
LONG         = ./target/kafka ./target/apm ./target/riemann ./internal/standin/apm ./internal/standin/kafka

# Tests that only compute, of packages whose other tests need the race detector. make test
# runs them without it, make race with it.
COMPUTE     := ^(TestBatchPoolOfManyPartitions|TestClosedForms|TestJudgeAgreesWithElastic|TestLateEffect|TestMeanService|TestResponseTimes|TestScriptedStalls)$$
COMPUTING   := ./target/kafka ./internal/standin ./internal/standin/apm ./internal/fault

# Settings of builds without the race detector: those of the program that the tests
# build, so that nothing is compiled twice.
PLAIN        = CGO_ENABLED=0 GOFLAGS="$$($(GO) env GOFLAGS) -trimpath -buildvcs=false"

# Packages whose tests link SQLite, which is C translated to Go: it takes minutes to
# compile, and again for the race detector. make test runs their tests without the
# race detector, make race runs all with it.
HEAVY        = $$($(GO) list -test -f '{{.ImportPath}} {{.Deps}}' ./... | awk '/\.test .*modernc.org\/sqlite/ { sub(/\.test$$/, "", $$1); print $$1 }' | grep -vE '$(SKIP)')
QUICK        = $$($(GO) list -test -f '{{.ImportPath}} {{.Deps}}' ./... | awk '/\.test / && !/modernc.org\/sqlite/ { sub(/\.test$$/, "", $$1); print $$1 }' | grep -vE '$(SKIP)' | grep -vE '$(ALONE)')
SKIP         = ^carronade/($(subst $() ,|,$(strip $(REAL))))$$

# A scheduling class in which a process runs only when no other wants the processor, where
# there is one: what only computes runs beside the tests that mostly wait.
IDLE        := $(shell chrt -i 0 true >/dev/null 2>&1 && echo chrt -i 0 || echo nice -n 19)

# Packages whose tests only compute: the race detector makes them five times slower and cannot
# find anything. The few tests of them that start goroutines (CONCURRENT, of the packages CALLED)
# run under the race detector too. make race includes all.
CALM        := internal/arch internal/compat \
	internal/explain internal/export internal/find internal/fleet \
	internal/judge internal/layout internal/ledger \
	internal/picture internal/report internal/secret internal/stats internal/traffic internal/trust internal/wire/apm \
	internal/wire/crc internal/wire/kafka internal/wire/riemann internal/workload measure payload units

CONCURRENT  := ^(TestConcurrent|TestConcurrently|TestOtherProtocol|TestUnreadableInterval|TestWriteItemsFails|TestWriteManyItems)$$
CALLED      := ./internal/fleet ./internal/ledger ./internal/wire/kafka ./payload

# Those of them whose tests measure how long something takes, or run a browser: they do not
# run with IDLE.
TIMED       := internal/export internal/workload
ALONE        = ^carronade/($(subst $() ,|,$(strip $(CALM))))$$

.PHONY: help build test race stores bench microbench lint vuln fmt docs cross image release fuzz deps clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the program, ./carronade: static, without cgo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o carronade .

test: ## everything, real Kafka included: what .ci/run runs
	@start=$$SECONDS; work=$$(mktemp -d); \
	trap 'test $$? = 0 && echo "make test: all passed in $$((SECONDS - start)) s" || echo "make test: FAILED after $$((SECONDS - start)) s"; rm -rf "$$work"' EXIT; \
	status=0; \
	{ $(PLAIN) $(GO) build -o "$$work/carronade" .; } & built=$$!; \
	{ scripts/deps && quick=$(QUICK) && heavy=$(HEAVY); } || { kill $$built; exit 1; }; \
	CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 10m -p 3 -parallel 4 -skip '$(COMPUTE)' $(LONG) $$quick || status=1; \
	wait $$built || status=1; \
	{ s=0; \
	$(PLAIN) $(IDLE) $(GO) build -tags impair -o /dev/null . || s=1; \
	$(PLAIN) $(IDLE) $(GO) -C $(RELEASE) test -vet=off -count=1 -timeout 20m ./... || s=1; \
	$(PLAIN) $(IDLE) $(GO) test -vet=off -timeout 20m $(addprefix ./,$(filter-out $(TIMED),$(CALM))) || s=1; \
	$(PLAIN) $(IDLE) $(GO) test -vet=off -timeout 20m -run '$(COMPUTE)' $(COMPUTING) || s=1; \
	CGO_ENABLED=1 $(IDLE) $(GO) test -race -vet=off -timeout 20m -run '$(CONCURRENT)' $(CALLED) || s=1; \
	$(PLAIN) $(IDLE) $(GO) vet ./... || s=1; \
	exit $$s; } & idle=$$!; \
	{ $(PLAIN) $(GO) -C $(EXAMPLE) test -vet=off -count=1 -timeout 5m ./...; } & example=$$!; \
	$(PLAIN) $(GO) test -vet=off -timeout 15m -p 3 -parallel 4 ./internal/cli $(SERVERS) $(addprefix ./,$(TIMED)) $$heavy || status=1; \
	wait $$example || status=1; \
	CARRONADE_PROGRAM="$${CARRONADE_PROGRAM:-$$work/carronade}" $(PLAIN) $(GO) test -vet=off -count=1 -timeout 25m -parallel 6 $(SLOW) || status=1; \
	wait $$idle || status=1; \
	exit $$status

race: deps ## every test except those with real servers, under the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 20m $(QUICK) $(HEAVY) $(addprefix ./,$(CALM))

stores: deps ## the team's store, and the shell's session, against Elasticsearch 7, 8 and 9 and OpenSearch 2 and 3 (the newest need Java 21)
	@for r in opensearch-2 opensearch-3 elasticsearch-7 elasticsearch-8 elasticsearch-9; do echo "$$r"; \
	CARRONADE_TEST_SEARCH=$$r $(PLAIN) $(GO) test -count=1 -timeout 10m ./internal/store/elastic; \
	if [ "$$r" != elasticsearch-7 ]; then CARRONADE_TEST_SEARCH=$$r $(PLAIN) $(GO) test -count=1 -timeout 5m -run TestShellElasticsearch ./internal/cli; fi; done

soak: deps ## long versions of tests in make test: 200 kills of the store of reports and of a server with jobs, new random scenarios of lost events, 3,600 simulated runs with incidents to explain, 10,000 simulated runs of several machines, and the memory of a run of a day in virtual time and of one of an hour
	CARRONADE_TEST_WORLDS=2000 $(PLAIN) $(GO) test -count=1 -timeout 30m ./internal/ledger
	CARRONADE_TEST_SCREENS=200 $(PLAIN) $(GO) test -count=1 -run FindsKnownEffects ./internal/stats
	CARRONADE_TEST_SEEDS=200 $(PLAIN) $(GO) test -count=1 ./internal/find
	CARRONADE_TEST_EXPLAIN=400 $(PLAIN) $(GO) test -count=1 -timeout 30m -run HowOften ./internal/explain
	CARRONADE_TEST_FLEET=10000 $(PLAIN) $(GO) test -count=1 -timeout 60m -run '^TestFleet$$' ./internal/fleet
	CARRONADE_TEST_RUN=24h $(PLAIN) $(GO) test -count=1 -timeout 30m -v -run LongRun ./internal/run
	CARRONADE_TEST_HOUR=1h $(PLAIN) $(GO) test -count=1 -timeout 90m -v -run HourIsSmall ./internal/acceptance
	CARRONADE_TEST_KILLS=200 $(PLAIN) $(GO) test -count=1 -timeout 30m -v -run 'KillsAtRandomMoments' ./internal/store/sqlite ./internal/jobs ./internal/acceptance

conformance: deps ## every comparison with Kafka's own tools, every kind of verified run, searches for ceilings, explained pauses of a real Kafka, how often explain is right, traces read by DuckDB and pandas, scores of faults, APM Server and Riemann (real ones where CARRONADE_TEST_APM and CARRONADE_TEST_RIEMANN say, see docs/method.md), and whether reported times are right: the impairment matrix and clean runs, an hour (MATRIX=file of finished runs, from which it continues)
	@[ "$$(uname)" != Linux ] || scripts/deps iptables=iptables
	CARRONADE_TEST_CONFORMANCE=1 $(PLAIN) $(GO) test -count=1 -timeout 120m -v -skip '^TestImpaired$$|^TestClean$$' ./internal/acceptance
	CARRONADE_TEST_CONFORMANCE=1 $(PLAIN) $(GO) test -count=1 -timeout 10m -v -run '^TestReal' ./target/kafka
	CARRONADE_TEST_CONFORMANCE=1 $(PLAIN) $(GO) test -count=1 -timeout 10m -v -run '^TestDashboards|^TestShellElasticsearch$$' ./internal/cli
	CARRONADE_TEST_CONFORMANCE=1 $(PLAIN) $(GO) test -count=1 -timeout 60m -v -run HowOften ./internal/explain
	CARRONADE_TEST_CONFORMANCE=1 $(PLAIN) $(GO) test -count=1 -timeout 10m -v -run '^TestReadByOthers$$' ./internal/trace
	@mkdir -p '$(dir $(MATRIX))'
	CARRONADE_TEST_CONFORMANCE=1 CARRONADE_TEST_MATRIX='$(abspath $(MATRIX))' $(PLAIN) $(GO) test -count=1 -timeout 180m -v -run '^TestImpaired$$|^TestClean$$' ./internal/acceptance

bench: deps ## the speed table of docs/performance.md (BENCH_RUNS=5 BENCH_ROWS=regexp BENCH_OUT=file)
	BENCH_OUT='$(abspath $(BENCH_OUT))' $(GO) test ./internal/bench -run '^$$' -bench . -benchtime 1x -timeout 60m

microbench: ## Go's benchmarks of the packages (BENCHTIME=1s)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $$($(GO) list ./... | grep -v '^carronade/internal/bench$$')

lint: ## go vet, gofumpt, golangci-lint, and govulncheck unless VULN=no
	$(PLAIN) $(GO) vet ./...
	$(PLAIN) $(GO) -C $(RELEASE) vet ./...
	$(PLAIN) $(GO) -C $(EXAMPLE) vet ./...
	@out=$$(CGO_ENABLED=0 $(GO) run $(GOFUMPT) -modpath carronade -l $$(git ls-files '*.go')); \
	if [ -n "$$out" ]; then echo "not formatted, make fmt mends it:"; echo "$$out"; exit 1; fi
	@lint() { if command -v golangci-lint >/dev/null; then $(PLAIN) golangci-lint run ./...; else $(PLAIN) $(GO) run $(GOLANGCI) run ./...; fi; }; \
	lint && (cd $(RELEASE) && lint) && cd $(EXAMPLE) && lint
	@if [ '$(VULN)' != no ]; then $(MAKE) --no-print-directory vuln; fi

vuln: ## known vulnerabilities in what the program calls; needs the database of Go's team, or a copy in GOVULNDB
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	CGO_ENABLED=0 $(GO) run $(GOVULN) $${GOVULNDB:+-db "$$GOVULNDB"} ./... 2>"$$log" && exit; \
	if grep -q 'fetching vulnerabilities' "$$log"; then echo "error: the database of vulnerabilities cannot be reached, so nothing was checked"; \
	echo "hint: set GOVULNDB to the URL of a copy (https:// or file://), or leave this check out with make lint VULN=no"; fi; \
	cat "$$log"; exit 1

fmt: ## gofumpt over every file
	CGO_ENABLED=0 $(GO) run $(GOFUMPT) -modpath carronade -w $$(git ls-files '*.go')

docs: ## man pages and shell completions into dist/
	$(GO) run ./internal/tools/generate manuals dist

cross: ## builds for each platform, without output
	@for p in $(PLATFORMS); do echo "$$p"; \
	GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build -trimpath -o /dev/null . ; \
	GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet ./... ; done

image: ## container images without an engine, into dist/image: an OCI layout, and archives for docker load
	$(GO) -C $(RELEASE) run . image

release: ## archives, deb, rpm, lists of parts and SHA256SUMS into dist/release (URL=https://HOST/FOLDER of the downloads: also a formula)
	$(GO) -C $(RELEASE) run . archives --platforms '$(PLATFORMS)' --url '$(URL)'

fuzz: ## every fuzz target for FUZZTIME=10s each
	@for p in $$($(GO) list ./...); do \
	for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; done; done

deps: ## install what the tests need: gcc, Java, Maven, kcat, Riemann's clients, Chromium
	@scripts/deps

clean: ## remove what was built here
	rm -rf carronade dist
