# `make` alone lists the targets. A fresh machine needs Go and make; `make test`
# gets the rest itself (scripts/deps, and a real Kafka into the user's cache).

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
PART        ?= all
PREFIX      ?= /usr/local
PLATFORMS   := linux/amd64 linux/arm64 darwin/arm64 windows/amd64 windows/arm64

# Where the archives of a release will be, for the formula of Homebrew.
URL         ?=

# The tools that build releases are a module of their own: see docs/decisions.md.
RELEASE     := tools/release

# A protocol in a program of its own, and a module of its own, so that the compiler refuses
# it our internal packages.
EXAMPLE     := examples/lines

# What the race detector looks at in make test: the packages whose goroutines share memory.
# Others compute, or use these; make race looks at all.
SHARING     := load internal/conn/... internal/standin/... internal/live internal/serve/jobs internal/door internal/fleet/... protocol/... internal/apm/... internal/kafka/... internal/otlp/... internal/riemann/... internal/null

.PHONY: help build install test race conformance soak bench microbench lint vuln fmt docs cross image release fuzz deps peers clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the program, ./carronade
	$(GO) build -o carronade .

install: build ## the program into PREFIX/bin (PREFIX=/usr/local)
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install carronade '$(DESTDIR)$(PREFIX)/bin/carronade'

# Most tests of the program wait for loads to end, so eight of a package run at a time.
test: deps ## every test that any machine can run, with a real Kafka: what .ci/run runs
	@start=$$SECONDS; trap 'test $$? = 0 && echo "make test: all passed in $$((SECONDS - start)) s" || echo "make test: FAILED after $$((SECONDS - start)) s"' EXIT; \
	status=0; \
	$(GO) test -vet=off -parallel 8 -timeout 30m ./... || status=1; \
	$(GO) -C $(EXAMPLE) test -vet=off -timeout 10m ./... || status=1; \
	CGO_ENABLED=1 $(GO) test -race -short -vet=off -timeout 30m $(addprefix ./,$(SHARING)) || status=1; \
	exit $$status

race: ## the quick tests of all packages, under the race detector
	CGO_ENABLED=1 $(GO) test -race -short -timeout 30m ./...

conformance: peers ## tests with real servers, long ones and simulations, three hours (PART=matrix: one of them; scripts/conformance lists them)
	@scripts/conformance '$(PART)'

soak: peers ## long versions of tests: hundreds of kills, thousands of simulated runs, a day in virtual time and a real hour
	@scripts/conformance soak

bench: peers ## the speed table of docs/performance.md (BENCH_RUNS=5 BENCH_ROWS=regexp BENCH_OUT=file)
	BENCH_OUT='$(abspath $(BENCH_OUT))' $(GO) test ./test/bench -run '^$$' -bench . -benchtime 1x -timeout 60m

microbench: ## Go's benchmarks of the packages (BENCHTIME=1s)
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $$($(GO) list ./... | grep -v '^carronade/test/bench$$')

lint: ## go vet, gofumpt, golangci-lint, and govulncheck unless VULN=no
	$(GO) vet -tags conformance ./...
	$(GO) vet -tags impair ./load ./internal/impair
	$(GO) -C $(RELEASE) vet ./...
	$(GO) -C $(EXAMPLE) vet ./...
	@out=$$($(GO) run $(GOFUMPT) -modpath carronade -l $$(git ls-files '*.go')); \
	if [ -n "$$out" ]; then echo "not formatted, make fmt formats it:"; echo "$$out"; exit 1; fi
	@lint() { if command -v golangci-lint >/dev/null; then golangci-lint run "$$@" ./...; else $(GO) run $(GOLANGCI) run "$$@" ./...; fi; }; \
	lint --build-tags conformance && (cd $(RELEASE) && lint) && cd $(EXAMPLE) && lint
	@if [ '$(VULN)' != no ]; then $(MAKE) --no-print-directory vuln; fi

vuln: ## known vulnerabilities in what the program calls; needs the database of Go's team, or a copy in GOVULNDB
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(GO) run $(GOVULN) $${GOVULNDB:+-db "$$GOVULNDB"} ./... 2>"$$log" && exit; \
	if grep -q 'fetching vulnerabilities' "$$log"; then echo "error: the database of vulnerabilities cannot be reached, so nothing was checked"; \
	echo "hint: set GOVULNDB to the URL of a copy (https:// or file://), or leave this check out with make lint VULN=no"; fi; \
	cat "$$log"; exit 1

fmt: ## gofumpt over every file
	$(GO) run $(GOFUMPT) -modpath carronade -w $$(git ls-files '*.go')

docs: ## man pages and shell completions into dist/
	$(GO) run ./tools/generate manuals dist

cross: ## builds for each platform, without output
	@for p in $(PLATFORMS); do echo "$$p"; \
	GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build -o /dev/null . ; \
	GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) vet ./... ; done

image: ## container images without an engine, into dist/image: an OCI layout, and archives for docker load
	$(GO) -C $(RELEASE) run . image

release: ## archives, deb, rpm, lists of parts and SHA256SUMS into dist/release (URL=https://HOST/FOLDER of the downloads: also a formula)
	$(GO) -C $(RELEASE) run . archives --platforms '$(PLATFORMS)' --url '$(URL)'

fuzz: ## every fuzz target for FUZZTIME=10s each
	@for p in $$($(GO) list ./...); do \
	for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; done; done

deps: ## install what the tests need: gcc, Java, Maven
	@scripts/deps

peers: ## install what make conformance and make bench need too: kcat, wrk, Riemann's clients, Chromium, Python
	@scripts/deps all

clean: ## remove what was built here
	rm -rf carronade dist
