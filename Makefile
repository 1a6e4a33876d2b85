# Podstead. `make` alone lists what there is to make.

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -c
GO          ?= go
PREFIX      ?= /usr/local
DESTDIR     ?=
LIBEXECDIR  ?= /usr/libexec/podstead
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
TESTFLAGS   ?=
FUZZTIME    ?= 10s
SOAKTIME    ?= 30m
SOAKRUNS    ?= 20
MUTATEFLAGS ?=

# What is fetched but not installed lies here, see .ci/deps.
export PATH := $(PATH):$(CURDIR)/.cache/debian/usr/bin:/usr/local/go/bin

TOOL       := $(GO) tool -modfile=tools/go.mod
GOBUILD    := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'
NEED_ROOT   = @test $$(id -u) = 0 || { echo "make $@: containers need root: run it as root (sudo make $@)" >&2; exit 1; }
# Packages with tests that need root: their files carry the build tag e2e.
E2E_PACKAGES = $$(grep -rl '^//go:build e2e' --include='*_test.go' . | xargs -r -n1 dirname | sort -u)

.PHONY: help deps build demo test unit race e2e vm lint check bench soak images fuzz mutate install uninstall clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what build, demo and test need (Debian: runc, busybox-static, gcc)
	@.ci/deps test

build: ## build bin/podstead and bin/containerd-shim-podstead-v1
	@.ci/deps build
	$(GOBUILD) -o bin/ ./cmd/podstead ./cmd/containerd-shim-podstead-v1

images: ## write the images of the examples as archives (examples/images)
	@.ci/deps demo
	$(GO) run ./test/images -o examples/images

demo: ## run a first pod, examples/hello.toml, to its end (root)
	$(NEED_ROOT)
	@$(MAKE) --no-print-directory build images
	@bash .ci/demo

test: ## run all tests; the ones that need root only as root
	@.ci/deps test
	@status=0; $(MAKE) --no-print-directory unit || status=1; \
	if [ $$(id -u) = 0 ]; then $(MAKE) --no-print-directory e2e || status=1; \
	else echo "make test: not root: the tests on real containers were not run (sudo make test)" >&2; fi; exit $$status

unit: ## run the tests that need no root, with the race detector
	@.ci/deps unit
	$(GO) test -race -shuffle=on $(TESTFLAGS) ./...

race: ## run the tests that need no root ten times with the race detector
	@.ci/deps unit
	$(GO) test -race -shuffle=on -count=10 $(TESTFLAGS) ./...

e2e: ## run the tests on real containers (root)
	$(NEED_ROOT)
	@$(MAKE) --no-print-directory deps build images
	$(GO) test -tags e2e -p 1 -count=1 -timeout 20m $(TESTFLAGS) $(E2E_PACKAGES)

vm: ## run tests in a machine with pure cgroup v2 and systemd: QEMU, without KVM (root)
	$(NEED_ROOT)
	@.ci/deps vm
	$(GO) test -tags vm -count=1 -timeout 38m $(TESTFLAGS) ./test/vm

lint: ## run the linters, the same as CI
	@.ci/deps build
	$(TOOL) golangci-lint run ./...

check: ## do all that CI does, in its order (root)
	@.ci/run

bench: ## measure and write docs/benchmarks.md (root)
	$(NEED_ROOT)
	@.ci/deps bench
	@$(MAKE) --no-print-directory build images
	$(GO) run ./test/bench -o docs/benchmarks.md

soak: ## run the conformance suite SOAKRUNS (20) times on a loaded machine, then restart pods and kill the daemon for SOAKTIME (30m) (root)
	$(NEED_ROOT)
	@.ci/deps soak
	@$(MAKE) --no-print-directory build images
	setsid stress --quiet --cpu $$(nproc) --io 1 --vm 1 --vm-bytes 64M & load=$$!; trap "kill -- -$$load" EXIT; \
	$(GO) test -tags e2e -count=$(SOAKRUNS) -timeout 0 -failfast ./test/conformance
	PODSTEAD_SOAK=$(SOAKTIME) $(GO) test -tags soak -count=1 -timeout 0 -v ./test/faults

fuzz: ## fuzz every target for FUZZTIME (10s)
	@.ci/deps build
	@grep -rE '^func Fuzz[A-Za-z0-9_]+\(' --include='*_test.go' . \
	| sed -E 's/^(.*)\/[^\/]+:func (Fuzz[A-Za-z0-9_]+).*/\1 \2/' | sort \
	| while read -r dir name; do \
		echo "fuzz $$dir $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$dir" </dev/null || exit 1; \
	done

mutate: ## change supervisor/lifecycle in small ways; its tests must notice (half an hour)
	@.ci/deps build
	$(GO) run ./test/mutate -min-kill 95 -explained docs/mutants.md -last 'TestFactsStayBounded|Worlds|Walks' $(MUTATEFLAGS) ./supervisor/lifecycle

install: ## install to PREFIX (/usr/local) and LIBEXECDIR (/usr/libexec/podstead), below DESTDIR
	@test -x bin/podstead -a -x bin/containerd-shim-podstead-v1 || $(MAKE) --no-print-directory build
	install -D -m 0755 bin/podstead $(DESTDIR)$(PREFIX)/bin/podstead
	install -D -m 0755 bin/containerd-shim-podstead-v1 $(DESTDIR)$(LIBEXECDIR)/containerd-shim-podstead-v1

uninstall: ## remove what install put there; pods, images and state stay
	rm -f $(DESTDIR)$(PREFIX)/bin/podstead $(DESTDIR)$(LIBEXECDIR)/containerd-shim-podstead-v1
	rmdir --ignore-fail-on-non-empty $(DESTDIR)$(LIBEXECDIR) 2>/dev/null || true

clean: ## remove what was built and fetched into the tree
	rm -rf bin .cache examples/images
