# Run make without a target for the list of targets.

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -c
GO          ?= go
PREFIX      ?= /usr/local
DESTDIR     ?=
LIBEXECDIR  ?= /usr/libexec/podstead
UNITDIR     ?= $(PREFIX)/lib/systemd/system
USERUNITDIR ?= $(PREFIX)/lib/systemd/user
CATALOGDIR  ?= /usr/lib/systemd/catalog
GENERATORDIR ?= $(PREFIX)/lib/systemd/system-generators
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TESTFLAGS   ?=
FUZZTIME    ?= 10s
SOAKTIME    ?= 30m
SOAKRUNS    ?= 20
MUTATEFLAGS ?=
BASE        ?=
BENCHFLAGS  ?=
ARCHES      ?= amd64 arm64 armv7

# .ci/deps unpacks packages here that it does not install.
export PATH := $(PATH):$(CURDIR)/.cache/debian/usr/bin:$(CURDIR)/.cache/debian/usr/sbin:/usr/local/go/bin

TOOL       := $(GO) tool -modfile=tools/go.mod
# Programs and tests are built with the same flags, also by tests that build programs, so that each package is compiled once.
TAGS       := grpcnotrace
export GOFLAGS := -trimpath -tags=$(TAGS)
export CGO_ENABLED := 0
GOBUILD    := $(GO) build -ldflags '-s -w -X main.version=$(VERSION)'
# RACE=1 runs unit tests in random order and with the race detector, except those of PURE, which have no concurrent code.
RACE       ?=
PURE       := ./spec/... ./internal/timeline ./supervisor/lifecycle/... ./supervisor/simulate/... \
	./test/defences ./test/mutate ./test/reach ./test/repo
GOTEST     := $(GO) test -json -vet=off -ldflags=-s
PROGRESS   := $(GO) run ./test/progress
# LIBEXEC are the programs that podstead starts. PROGRAMS are all that are built and installed.
LIBEXEC     := podstead-compose podstead-monitor containerd-shim-podstead-v1
PROGRAMS    := podstead $(LIBEXEC)
NEED_ROOT   = @test $$(id -u) = 0 || { echo "make $@: must run as root" >&2; echo "hint: run sudo make $@" >&2; exit 1; }
# Packages with tests that need root (build tag e2e). FEATURES use each feature as a user does. FAULTS test that nothing is lost and that no
# container gets out.
FAULTS       = ./test/faults ./test/hostile ./test/systemd ./test/upgrade
FEATURES     = $$(grep -rl '^//go:build e2e' --include='*_test.go' . | xargs -n1 dirname | sort -u | \
	grep -vxF "$$(printf '%s\n' $(FAULTS))")
E2E_PACKAGES = $(FAULTS) $(FEATURES)
# Tests, and packages of unit tests, that run side by side. Most of them wait.
PARALLEL    ?= 6
UNIT_TESTS   = $(GOTEST) -p $(PARALLEL) -timeout 30m $(TESTFLAGS)
RACE_TESTS   = status=0; \
	CGO_ENABLED=1 $(UNIT_TESTS) -race -shuffle=on $$($(GO) list ./... | grep -vxF "$$($(GO) list $(PURE))") || status=1; \
	$(UNIT_TESTS) -shuffle=on $(PURE) || status=1; exit $$status
GOE2E        = $(GOTEST) -tags e2e,$(TAGS) -count=1 -p 8 -timeout 30m $(TESTFLAGS)

# Tests of runtime and test/hostile that depend on the OCI runtime.
RUNTIME_NAMES = Kernel|Devices|Files|Mounts|Inheritance|RuntimeBinaryProtected|WorkingDirectory|IDRangeOfPod|UserNamespaceRefused
RUNTIME_TESTS = ^TestFields|^TestExec[A-Z]|^Test($(RUNTIME_NAMES))$$

# RUNTIME is the OCI runtime of tests; empty: runc.
RUNTIME     ?=
WITH_RUNTIME = $(if $(RUNTIME),$(if $(filter crun,$(RUNTIME)),test/purecgroup/run) env PODSTEAD_ENGINE_RUNTIME=$(RUNTIME))
# SUITES are those that make test runs.
SUITES       = unit $(if $(filter 0,$(shell id -u)),features)

.PHONY: help deps build demo test unit race features faults e2e crun minutes vm lint cross check bench bench-compare soak cluster kubelet images fuzz mutate install uninstall package release check-packages clean
.DEFAULT_GOAL := help

help: ## list targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install the requirements of build, demo and test (Debian: runc, busybox-static, gcc)
	@.ci/deps test

build: ## build the programs in bin
	@.ci/deps build
	$(GOBUILD) -o bin/ $(PROGRAMS:%=./cmd/%)

images: ## build the images of the examples as archives in examples/images
	@.ci/deps demo
	$(GO) run ./test/images -o examples/images

demo: ## run the pod examples/hello.toml (root)
	$(NEED_ROOT)
	@$(MAKE) --no-print-directory build images
	@bash .ci/demo

test: ## run unit tests and, as root, tests of each feature on real containers
	@.ci/deps test
	@rm -f $(SUITES:%=.cache/test/%.json)
	@status=0; for suite in $(SUITES); do $(MAKE) --no-print-directory $$suite || status=1; done; \
	[ $$(id -u) = 0 ] || printf '%s\n' "make test: tests on real containers need root and were not run" "hint: run sudo make test" >&2; \
	echo; $(PROGRESS) -summary $$(echo $(SUITES) | tr ' ' ,) && exit $$status

unit: ## run tests without root, with RACE=1 with the race detector
	@.ci/deps unit
	@$(PROGRESS) -suite unit $(if $(RACE),-no-skips -- bash -c '$(RACE_TESTS)',-- $(UNIT_TESTS) ./...)

race: ## run unit tests ten times with the race detector
	@.ci/deps unit
	@$(PROGRESS) -suite race -- env CGO_ENABLED=1 $(UNIT_TESTS) -race -shuffle=on -count=10 ./...

features: ## run tests of each feature on real containers (root)
	$(NEED_ROOT)
	@$(MAKE) --no-print-directory deps build images
	@$(WITH_RUNTIME) $(PROGRESS) -suite features -no-skips -- $(GOE2E) -parallel $(PARALLEL) $(FEATURES)

# Some tests of faults use all processors, so fewer run side by side.
faults: ## run tests of faults, power cuts, hostile containers and upgrades (root)
	$(NEED_ROOT)
	@.ci/deps faults
	@$(MAKE) --no-print-directory build images
	@$(WITH_RUNTIME) $(PROGRESS) -suite faults -no-skips -- $(GOE2E) -parallel 4 $(FAULTS)

e2e: ## run all tests on real containers, or those of E2E_PACKAGES, with RUNTIME=crun on those of crun (root)
	$(NEED_ROOT)
	@.ci/deps faults
	@$(MAKE) --no-print-directory build images
	@$(WITH_RUNTIME) $(PROGRESS) -suite e2e -no-skips -- $(GOE2E) -parallel $(PARALLEL) $(E2E_PACKAGES)

crun: ## run the tests that depend on the OCI runtime with crun (root)
	$(NEED_ROOT)
	@$(MAKE) --no-print-directory deps build images
	@test/purecgroup/run env PODSTEAD_ENGINE_RUNTIME=crun \
		$(PROGRESS) -suite crun -no-skips -- $(GOE2E) -parallel $(PARALLEL) -run '$(RUNTIME_TESTS)' ./runtime ./test/hostile

# VM_SUITE is the name of a run with TESTFLAGS.
VM_SUITE    ?= vm
vm: ## run tests in a virtual machine with cgroup v2 and systemd (root)
	$(NEED_ROOT)
	@$(MAKE) --no-print-directory build images
	@.ci/deps vm
	@$(PROGRESS) -suite $(VM_SUITE) -no-skips -- $(GOTEST) -tags vm,$(TAGS) -count=1 -timeout 75m $(TESTFLAGS) ./test/vm

lint: ## run linters
	@.ci/deps build
	$(TOOL) golangci-lint run ./...
	$(GO) vet -tags manpages,$(TAGS) ./cmd/podstead
	$(TOOL) golangci-lint run -c .golangci.size.yml ./...
	$(TOOL) validate docs/reference/openapi.json

cross: ## check that the programs and their tests compile for 32-bit ARM, whose integers differ
	@.ci/deps build
	GOARCH=arm GOARM=7 CGO_ENABLED=0 $(GO) vet -tags e2e,vm,soak ./...

check: ## run all suites once, and record the commit in .ci/checked if they pass (root)
	@.ci/run -all

minutes: ## write the seconds of the suites that ran last into docs/testing.md
	@$(PROGRESS) -page docs/testing.md

bench: ## run benchmarks and update docs/benchmarks.md (root)
	$(NEED_ROOT)
	@.ci/deps bench
	@$(MAKE) --no-print-directory build images
	test/purecgroup/run $(GO) run ./test/bench -o docs/benchmarks.md

bench-compare: ## measure the git revision BASE and this one in turns, and fail if this one is worse (root); BENCHFLAGS='-rounds 9 -tolerance 0.05'
	$(NEED_ROOT)
	@test -n "$(BASE)" || { echo "make $@: BASE is not set" >&2; echo "hint: run sudo make $@ BASE=main" >&2; exit 1; }
	@.ci/deps bench
	@$(MAKE) --no-print-directory build images
	@base=$$(mktemp -d) && trap 'rm -rf "$$base"' EXIT && git archive $(BASE) | tar -x -C "$$base" && \
	$(MAKE) --no-print-directory -C "$$base" build VERSION=base && $(GO) run ./test/bench -base "$$base/bin" -scale 0.4 $(BENCHFLAGS)

# It runs conformance tests SOAKRUNS times under load, holds the validation of pods against an API server of Kubernetes, runs storms of
# updates and power cuts, fuzzes (a number of runs: with a time limit, go test can fail when the time expires), and restarts pods and kills
# daemons for SOAKTIME.
soak: ## run the tests that take hours, see docs/testing.md; SOAKRUNS (20), SOAKTIME (30m) (root)
	$(NEED_ROOT)
	@.ci/deps soak
	@.ci/deps test
	@.ci/deps vm
	@$(MAKE) --no-print-directory build images
	setsid stress --quiet --cpu $$(nproc) --io 1 --vm 1 --vm-bytes 64M & load=$$!; trap "kill -- -$$load" EXIT; \
	$(GO) test -tags e2e,$(TAGS) -count=$(SOAKRUNS) -timeout 0 -failfast ./test/conformance
	test/purecgroup/run env PODSTEAD_ENGINE_RUNTIME=crun $(GO) test -tags e2e,$(TAGS) -count=1 -timeout 0 ./test/conformance
	$(MAKE) --no-print-directory cluster
	PODSTEAD_STORM=10 $(GO) test -tags e2e,$(TAGS) -count=1 -timeout 0 -v \
		-run 'TestUpdateStorm|TestRandomEdits|TestMonitorKilled' ./test/faults
	PODSTEAD_STORM=10 $(GO) test -tags e2e,$(TAGS) -p 1 -count=1 -timeout 0 -v -run 'TestPowerCuts|TestStorm' ./test/systemd ./test/hostile
	PODSTEAD_STORM=10 $(GO) test -tags $(TAGS) -count=1 -timeout 0 -v -run TestKilledFeed ./internal/crilog
	PODSTEAD_STORM=10 $(GO) test -tags vm,soak,$(TAGS) -count=1 -timeout 0 -v -run "TestPowerCuts|TestWallClock|TestDevices" ./test/vm
	$(GO) test -tags soak,$(TAGS) -count=1 -timeout 0 -v -run TestDay ./supervisor
	$(MAKE) --no-print-directory fuzz FUZZTIME=100000x
	PODSTEAD_SOAK=$(SOAKTIME) $(GO) test -tags soak,$(TAGS) -count=1 -timeout 0 -v ./test/faults

cluster: ## test manifests and validation on a real API server, which is built from Go modules first (half an hour)
	test/cluster/build .cache/cluster
	$(GO) test -tags soak,$(TAGS) -count=1 -timeout 0 -v ./test/cluster

kubelet: ## run pods with Podstead and with a real kubelet in a virtual machine, and compare them; builds as cluster does (root)
	$(NEED_ROOT)
	@.ci/deps vm
	@.ci/deps kubelet
	@$(MAKE) --no-print-directory build images
	test/cluster/build .cache/cluster
	$(GO) test -tags vm,soak,$(TAGS) -count=1 -timeout 0 -v -run TestKubelet ./test/cluster $(TESTFLAGS)

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@.ci/deps build
	@grep -rE '^func Fuzz[A-Za-z0-9_]+\(' --include='*_test.go' . \
	| sed -E 's/^(.*)\/[^\/]+:func (Fuzz[A-Za-z0-9_]+).*/\1 \2/' | sort \
	| while read -r dir name; do \
		echo "fuzz $$dir $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$dir" </dev/null || exit 1; \
	done

mutate: ## run mutation tests of supervisor/lifecycle (three hours)
	@.ci/deps build
	$(GO) run ./test/mutate -min-kill 95 -explained docs/mutants.md -last 'TestFactsStayBounded|Worlds|Walks|States' $(MUTATEFLAGS) ./supervisor/lifecycle

install: ## install to PREFIX (/usr/local) and LIBEXECDIR (/usr/libexec/podstead) in DESTDIR, with systemd units in UNITDIR and USERUNITDIR, and a message catalog in CATALOGDIR
	@for program in $(PROGRAMS); do test -x bin/$$program || exec $(MAKE) --no-print-directory build; done
	install -D -m 0755 bin/podstead $(DESTDIR)$(PREFIX)/bin/podstead
	install -d $(DESTDIR)$(LIBEXECDIR)
	install -m 0755 $(LIBEXEC:%=bin/%) $(DESTDIR)$(LIBEXECDIR)/
	install -d $(DESTDIR)$(UNITDIR)
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' packaging/podstead.service >$(DESTDIR)$(UNITDIR)/podstead.service
	install -D -m 0644 packaging/podstead.catalog $(DESTDIR)$(CATALOGDIR)/podstead.catalog
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' packaging/podstead@.service >$(DESTDIR)$(UNITDIR)/podstead@.service
	install -d $(DESTDIR)$(USERUNITDIR)
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' packaging/podstead-user.service >$(DESTDIR)$(USERUNITDIR)/podstead.service
	install -d $(DESTDIR)$(GENERATORDIR)
	ln -sf $(PREFIX)/bin/podstead $(DESTDIR)$(GENERATORDIR)/podstead-generator
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' packaging/podstead.socket >$(DESTDIR)$(UNITDIR)/podstead.socket
	install -m 0644 packaging/podstead-ro.socket packaging/podstead.slice $(DESTDIR)$(UNITDIR)/
	install -D -m 0644 packaging/podstead-pods.slice.conf $(DESTDIR)$(UNITDIR)/podstead-.slice.d/10-podstead.conf
	install -D -m 0644 packaging/podstead.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/podstead.conf
	install -D -m 0644 packaging/podstead.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/podstead.conf

uninstall: ## remove installed programs; pods, images and state are kept
	rm -f $(DESTDIR)$(PREFIX)/bin/podstead $(LIBEXEC:%=$(DESTDIR)$(LIBEXECDIR)/%)
	rm -f $(DESTDIR)$(UNITDIR)/podstead.service $(DESTDIR)$(USERUNITDIR)/podstead.service $(DESTDIR)$(CATALOGDIR)/podstead.catalog
	rm -f $(DESTDIR)$(UNITDIR)/podstead@.service $(DESTDIR)$(GENERATORDIR)/podstead-generator
	rm -f $(DESTDIR)$(UNITDIR)/podstead.socket $(DESTDIR)$(UNITDIR)/podstead-ro.socket $(DESTDIR)$(UNITDIR)/podstead.slice $(DESTDIR)$(PREFIX)/lib/sysusers.d/podstead.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/podstead.conf
	rm -rf $(DESTDIR)$(UNITDIR)/podstead-.slice.d
	rmdir --ignore-fail-on-non-empty $(DESTDIR)$(LIBEXECDIR) 2>/dev/null || true

package: ## build deb and rpm packages for the architecture of the host, or for ARCHES='amd64 arm64 armv7', in dist
	@packaging/build package dist $(if $(filter file,$(origin ARCHES)),$$($(GO) env GOARCH | sed 's/^arm$$/armv7/'),$(ARCHES))

release: ## build packages, archives, bills of materials and checksums for ARCHES in dist
	@rm -rf dist
	@packaging/build release dist $(ARCHES)

check-packages: ## check that packages are reproducible and that lintian finds no error
	@.ci/deps packages
	@packaging/check

clean: ## remove built and downloaded files
	rm -rf bin dist .cache examples/images
