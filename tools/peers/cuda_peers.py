#!/usr/bin/env python3
"""Times what PyTorch has for the cases of `atlasrt ops bench` on a GPU, and prints JSON for its --peers.

usage: cuda_peers.py [--op OP[,OP...]] [--match TEXT] >peers.json

Every case is captured in a CUDA graph of many launches with results preallocated where that is possible, cold (over copies
of its tensors that no cache holds together) and warm, and timed with events. What a peer leaves out is in its name.
Needs Python 3 and PyTorch 2.8 or later with CUDA.
"""

import argparse
import datetime
import functools
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch.nn.attention import SDPBackend, sdpa_kernel

COLD_BYTES = 256 << 20  # of all copies of a case
MOST_NODES = 1024
SAMPLES = 5
TIRES, REST = 0.05, 0.3  # ms of a call from which on the GPU rests before it is timed, s: its clock falls while it multiplies

SHAPES = [(6144, 4096), (4096, 4096), (24576, 4096), (4096, 12288), (5120, 2048), (2048, 4096)]
OUTPUTS = [(151936, 4096), (151936, 2048)]
EXPERTS, PICKS = 128, 8
EXPERT_SHAPES = {"ExpertUp": (1536, 2048), "ExpertDown": (2048, 768)}
EXPERT_ROWS = [1, 4, 16, 64, 512, 8192]
HEADS = [(32, 8, 128), (32, 4, 128)]
VOCABULARY = 151936


def normal(*size, dtype=torch.bfloat16):
    return torch.randn(*size, device="cuda", dtype=torch.bfloat16).to(dtype)


def size_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def capture(calls, nodes):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(nodes):
            calls[i % len(calls)]()
    return graph


def replay(graph, times):
    """Milliseconds of so many replays."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def measure(calls):
    """Microseconds of one call, the median."""
    nodes = len(calls)
    while True:
        graph = capture(calls, nodes)
        replay(graph, 1)
        once = replay(graph, 1)
        rounds = min(int(1 / max(once, 1e-3)) + 1, MOST_NODES // nodes)
        if once >= 1 or rounds < 2:
            break
        graph.reset()
        nodes *= rounds
    if once / nodes >= TIRES:
        time.sleep(REST)
    times = [replay(graph, 3) / 3 / nodes * 1e3 for _ in range(SAMPLES)]
    graph.reset()
    return statistics.median(times)


class Bench:
    def __init__(self, ops, match):
        self.ops, self.match, self.rows = ops, match, []

    def run(self, op, case, name, make, touched=None):
        """make gives the tensors of one copy, of which touched bytes are used, and a function that launches over them."""
        if self.ops and op not in self.ops or self.match not in case:
            return
        copies = []
        try:
            copies.append(make())
            copies[0][1]()
            torch.cuda.synchronize()
            size = touched or size_of(copies[0][0])
            count = min(COLD_BYTES // size + 1, MOST_NODES)
            cold = 0
            if count * size >= COLD_BYTES * 3 // 4:
                copies += [make() for _ in range(count - 1)]
                cold = measure([call for _, call in copies])
            warm = measure([copies[0][1]]) if count > 1 else 0
            self.rows.append({"op": op, "case": case, "name": name, "cold_us": round(cold, 3), "warm_us": round(warm, 3)})
        except Exception as error:  # a peer that cannot do a case is none
            torch.cuda.synchronize()
            print(f"cuda_peers.py: {op} {case}: {name}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
        del copies
        if torch.cuda.memory_reserved() > 40 << 30:
            torch.cuda.empty_cache()


def bf16_product(rows, n, k):
    x, w, out = normal(rows, k), normal(n, k), normal(rows, n)
    return (x, w, out), lambda: torch.mm(x, w.t(), out=out)


@triton.jit
def round_row(x, codes, scales, cols, COLS: tl.constexpr):
    """A row in e4m3 and its scale, a program for each."""
    row = tl.program_id(0)
    at = tl.arange(0, COLS)
    values = tl.load(x + row * cols + at, mask=at < cols, other=0).to(tl.float32)
    scale = tl.max(tl.abs(values)) / 448
    tl.store(codes + row * cols + at, (values / scale).to(tl.float8e4nv), mask=at < cols)
    tl.store(scales + row, scale)


@triton.jit
def round_blocks(x, codes, scales, rows, blocks, BLOCKS: tl.constexpr):
    """A row in e4m3 with a scale for every 128 columns, a program for each; scales are [blocks, rows]."""
    row = tl.program_id(0)
    block = tl.arange(0, BLOCKS)
    at, there = block[:, None] * 128 + tl.arange(0, 128)[None, :], block < blocks
    values = tl.load(x + row * blocks * 128 + at, mask=there[:, None], other=0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(values), 1), 1e-30) / 448
    tl.store(codes + row * blocks * 128 + at, (values / scale[:, None]).to(tl.float8e4nv), mask=there[:, None])
    tl.store(scales + block * rows + row, scale, mask=there)


def f8_product(rows, n, k, rounds=False, fast=False):
    x, w = normal(rows, k, dtype=torch.float8_e4m3fn), normal(n, k, dtype=torch.float8_e4m3fn)
    a, b = torch.ones(rows, 1, device="cuda"), torch.ones(1, n, device="cuda")
    out = normal(rows, n)
    multiply = lambda: torch._scaled_mm(x, w.t(), a, b, out_dtype=torch.bfloat16, use_fast_accum=fast, out=out)
    if not rounds:
        return (x, w, a, b, out), multiply
    plain = normal(rows, k)

    def call():
        round_row[(rows,)](plain, x, a, k, COLS=triton.next_power_of_2(k), num_warps=8)
        multiply()

    return (plain, x, w, a, b, out), call


def f8_block_product(rows, n, k, rounds=False):
    x, w = normal(rows, k, dtype=torch.float8_e4m3fn), normal(n, k, dtype=torch.float8_e4m3fn)
    a = torch.ones(k // 128, rows, device="cuda").t()  # for 1 row of 128 columns, outer first
    b = torch.ones(n // 128, k // 128, device="cuda").t()
    out = normal(rows, n)
    multiply = lambda: torch._scaled_mm(x, w.t(), a, b, out_dtype=torch.bfloat16, out=out)
    if not rounds:
        return (x, w, a, b, out), multiply
    plain = normal(rows, k)

    def call():
        round_blocks[(rows,)](plain, x, a, rows, k // 128, BLOCKS=triton.next_power_of_2(k // 128), num_warps=8)
        multiply()

    return (plain, x, w, a, b, out), call


PRODUCTS = [
    ("bf16", "cuBLAS", bf16_product),
    ("f8", "_scaled_mm by row, f8 in", f8_product),
    ("f8", "_scaled_mm by row, fast sums, f8 in", functools.partial(f8_product, fast=True)),
    ("f8", "Triton, then _scaled_mm by row", functools.partial(f8_product, rounds=True)),
    ("f8", "Triton, then _scaled_mm by row, fast sums", functools.partial(f8_product, rounds=True, fast=True)),
    ("f8block", "_scaled_mm by block, f8 in", f8_block_product),
    ("f8block", "Triton, then _scaled_mm by block", functools.partial(f8_block_product, rounds=True)),
]


def products(bench):
    for scheme, name, make in PRODUCTS:
        for op, shapes, counts in (("Linear", SHAPES, [1, 16, 64, 512, 8192]), ("Logits", OUTPUTS, [1, 16, 64])):
            for n, k in shapes:
                for rows in counts:
                    bench.run(op, f"{scheme} {n}×{k} rows {rows}", name, lambda: make(rows, n, k))


def mixture(bench):
    for rows in EXPERT_ROWS:
        picks = torch.rand(rows, EXPERTS, device="cuda").topk(PICKS).indices.flatten()
        ends = torch.bincount(picks, minlength=EXPERTS).cumsum(0).to(torch.int32)
        for op, (n, k) in EXPERT_SHAPES.items():

            def plain():
                x, w = normal(rows * PICKS, k), normal(EXPERTS, n, k)
                return (x, w), lambda: torch._grouped_mm(x, w.transpose(-2, -1), offs=ends)

            def f8():
                x = normal(rows * PICKS, k, dtype=torch.float8_e4m3fn)
                w = normal(EXPERTS, n, k, dtype=torch.float8_e4m3fn)
                a, b = torch.ones(rows * PICKS, device="cuda"), torch.ones(EXPERTS, n, device="cuda")
                call = lambda: torch._scaled_grouped_mm(
                    x, w.transpose(-2, -1), a, b, offs=ends, out_dtype=torch.bfloat16, use_fast_accum=True)
                return (x, w, a, b), call

            for scheme, name, make in (("bf16", "_grouped_mm", plain), ("f8", "_scaled_grouped_mm, f8 in", f8)):
                case = f"{scheme} {EXPERTS}×{n}×{k} top {PICKS} rows {rows}"
                touched = (picks.unique().numel() * n * k + rows * PICKS * k) * (2 if scheme == "bf16" else 1)
                bench.run(op, case, name + ", product alone", make, touched)


def attend(backend, q, k, v, causal):
    def call():
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])

    return (q, k, v), call


def attention(bench):
    flash, cudnn = SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION
    for heads, keys, width in HEADS:
        label = f"{heads}/{keys}×{width}"
        for length in (1 << 10, 8 << 10, 32 << 10):
            for n in (1, 4, 16, 64):
                cache = lambda: (normal(n, keys, length, width), normal(n, keys, length, width))
                # The query heads that share a key head are rows of one.
                folded = lambda: normal(n, keys, heads // keys, width)
                plain = lambda: normal(n, heads, 1, width)
                for name, backend, query in (
                    ("SDPA flash, not paged", flash, plain),
                    ("SDPA flash, folded, not paged", flash, folded),
                    ("SDPA cuDNN, folded, not paged", cudnn, folded),
                ):
                    bench.run("PagedAttention", f"{label} {n} decodes at {length}", name,
                              lambda: attend(backend, query(), *cache(), False))
        for n in (2 << 10, 8 << 10):
            for name, backend in (("SDPA flash, not paged", flash), ("SDPA cuDNN, not paged", cudnn)):
                bench.run("PagedAttention", f"{label} prefill of {n}", name, lambda: attend(
                    backend, normal(1, heads, n, width), normal(1, keys, n, width), normal(1, keys, n, width), True))


def norm(rows, n):
    x, residual, scale = normal(rows, n), normal(rows, n), normal(n)
    return (x, residual, scale), lambda: F.rms_norm(residual.add_(x), (n,), scale, 1e-6)


def gate(rows, n):
    x = normal(rows, 2 * n)
    return (x, x[:, :n]), lambda: F.silu(x[:, :n]) * x[:, n:]


def route(rows):
    x = normal(rows, EXPERTS)
    return (x,), lambda: torch.topk(x.softmax(-1), PICKS)


def greedy(rows):
    x = normal(rows, VOCABULARY, dtype=torch.float32)
    return (x,), lambda: x.argmax(-1)


def drawn(rows, k):
    """Filters by k, sorted, or by p alone, which sorts all; draws by exponential variates."""
    x = normal(rows, VOCABULARY, dtype=torch.float32) * 3

    def call():
        values, ids = torch.topk(x, k) if k else torch.sort(x, descending=True)
        p = torch.softmax(values / 0.7, -1)
        p = p.masked_fill(p.cumsum(-1) - p >= 0.9, 0)
        return ids.gather(-1, (p / torch.empty_like(p).exponential_()).argmax(-1, keepdim=True))

    return (x,), call


def memory():
    x, y = torch.zeros(256 << 20, dtype=torch.uint8, device="cuda"), torch.zeros(256 << 20, dtype=torch.uint8, device="cuda")
    return (x, y), lambda: y.copy_(x)


def small(bench):
    for rows in EXPERT_ROWS:
        bench.run("Route", f"{EXPERTS} experts top {PICKS} rows {rows}", "softmax, topk", lambda: route(rows))
    for rows in (1, 64, 8192):
        for n in (4096, 2048):
            bench.run("RMSNorm", f"{n} residual rows {rows}", "add_, rms_norm", lambda: norm(rows, n))
        bench.run("SwiGLU", f"12288 rows {rows}", "silu, mul", lambda: gate(rows, 12288))
    for rows in (1, 16, 64):
        for what, name, make in (
            ("greedy", "argmax", lambda: greedy(rows)),
            ("top p 0.9", "sort, softmax, cumsum, draw", lambda: drawn(rows, 0)),
            ("top k 40 top p 0.9", "topk, softmax, cumsum, draw", lambda: drawn(rows, 40)),
        ):
            bench.run("Sample", f"{VOCABULARY} {what} rows {rows}", name, make)
    bench.run("Copy", "256 MiB", "copy_", memory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--op", default="", help="operations, separated by commas; empty: all")
    parser.add_argument("--match", default="", help="only cases whose name holds this")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("cuda_peers.py: PyTorch sees no GPU")
    torch.manual_seed(1)
    bench = Bench([op for op in arguments.op.split(",") if op], arguments.match)
    with torch.inference_mode():
        small(bench)
        products(bench)
        mixture(bench)
        attention(bench)
    about = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }
    json.dump({"about": about, "rows": bench.rows}, sys.stdout, ensure_ascii=False, indent=0)
    print()


if __name__ == "__main__":
    main()
