# What is done with Ballast from the source. `make test` needs Go, a Docker engine (as root one is started for the time) and
# Maven; `make unit` and `make demo` need Go alone.
ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
.DEFAULT_GOAL := build
.PHONY: build demo test unit integration verify lint image bench bench-vs-pulsar clean

build: ## the program: bin/ballast
	cd $(ROOT) && go build -trimpath -o bin/ballast ./cmd/ballast

demo: ## an embedded cluster is balanced: no Pulsar needed
	cd $(ROOT) && go run ./cmd/ballast demo

test: ## lint, unit tests, and the tests against a real cluster in containers
	@$(ROOT)/deploy/ci/test.sh all

unit: ## lint and unit tests
	@$(ROOT)/deploy/ci/test.sh unit

integration: ## the tests against a real cluster in containers
	@$(ROOT)/deploy/ci/test.sh integration

verify: ## the same at full length, into docs/verification.md; VERSION="5.0.1" RUN="TestView" verifies less
	@VERSION='$(VERSION)' RUN='$(RUN)' $(ROOT)/deploy/ci/test.sh verify

lint: ## gofmt, go vet, staticcheck
	@$(ROOT)/deploy/ci/lint.sh

image: ## the local Pulsar image for the tests (VERSION=4.2.4, 4.0.7, 3.0.7 or 5.0.1)
	@$(ROOT)/deploy/ci/with-docker.sh $(ROOT)/deploy/image/build.sh $(or $(VERSION),4.2.4)

bench: ## benchmarks, with allocations
	cd $(ROOT) && go test -run '^$$' -bench . -benchmem ./...

bench-vs-pulsar: ## beside Pulsar's own classes: a table of ratios; needs a JDK 17 and Maven (ARGS="-readme README.md" writes it there)
	cd $(ROOT) && go run ./bench $(ARGS)

clean: ## removes what was built here
	cd $(ROOT) && rm -rf bin && go clean -testcache
