"""Records what atlasrt/internal/weights/dummy promises: written from its package comment, not from its code.

    pip install numpy
    python tools/testdata/dummy_values.py > atlasrt/internal/weights/dummy/testdata/values.json
"""

import hashlib
import json
import math

import numpy as np

CASES = [
    ("model.layers.0.mlp.gate_proj.weight", "BF16", [64, 96]),
    ("model.layers.0.mlp.gate_proj.weight", "F16", [64, 96]),
    ("model.layers.0.mlp.gate_proj.weight", "F32", [3, 5]),
    ("model.layers.0.mlp.gate_proj.weight", "Q8_0", [64, 96]),
    ("model.layers.0.mlp.gate_proj.weight", "Q4_0", [64, 96]),
    ("model.layers.0.mlp.gate_proj.weight", "Q4_1", [64, 96]),
    ("model.layers.0.mlp.gate_proj.weight", "Q5_0", [64, 96]),
    ("model.layers.0.mlp.gate_proj.weight", "Q4_K", [64, 768]),
    ("model.layers.0.mlp.gate_proj.weight", "Q6_K", [64, 768]),
    ("model.layers.0.mlp.gate_proj.weight", "U8", [7, 9]),
    ("model.layers.0.mlp.gate_proj.weight", "F8_E4M3", [7, 9]),
    ("model.layers.0.mlp.gate_proj.weight_scale", "F8_E4M3", [7, 9]),
    ("model.layers.0.input_layernorm.weight", "F32", [97]),
    ("model.layers.0.input_layernorm.weight", "BF16", [97]),
    ("model.layers.0.self_attn.q_proj.bias", "BF16", [97]),
    ("model.layers.0.linear_attn.A_log", "F32", [97]),
    ("model.layers.0.linear_attn.dt_bias", "F32", [97]),
    ("model.layers.0.linear_attn.conv1d.weight", "BF16", [97, 1, 4]),
    ("model.layers.0.linear_attn.out_proj.weight", "BF16", [64, 96]),
    ("model.layers.0.self_attn.o_proj.weight", "BF16", [64, 96]),
    ("model.layers.0.self_attn.o_proj.weight", "Q4_0", [64, 96]),
    ("large.weight", "BF16", [1024, 2048]),
    ("large.weight", "Q8_0", [3001, 4096]),
]
# Vectors to which 1 is added when they are loaded.
ADDED = [("model.layers.0.input_layernorm.weight", "F32", [97]), ("model.layers.0.self_attn.q_proj.bias", "F32", [97])]
# Scales of a whole matrix: its name, how it is stored, its shape, the scale's suffix and shape, and k.
SCALES = [
    ("model.layers.0.mlp.gate_proj.weight", "f8", [64, 96], "_scale", [], 0.6),
    ("model.layers.0.mlp.gate_proj.weight", "f8block", [300, 200], "_scale_inv", [3, 2], 0.6),
    ("model.layers.0.mlp.gate_proj.weight", "nvfp4", [64, 96], "_scale_2", [], 3.4),
    ("model.layers.0.self_attn.o_proj.weight", "nvfp4", [64, 96], "_scale_2", [], 3.4),
]
PERIOD = 262139
MASK = (1 << 64) - 1


def hashed(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def words(count):
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def bfloat16(x):
    b = x.view(np.uint32)
    return ((b + np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def rounded(x, kind):
    return {"BF16": bfloat16, "F16": lambda x: x.astype(np.float16), "F32": lambda x: x}[kind](x).tobytes()


# Words of a block, bytes of a block but its f16 numbers, and k.
BLOCKS = {"Q5_0": (4, 20, 8.8), "Q4_K": (19, 140, 259), "Q6_K": (27, 208, 1367)}


def scales(words, k):
    u = (words & np.uint64(0xFFFF)).astype(np.int32)
    return ((98304 + u).astype(np.float32) * np.float32(k / 131072)).astype(np.float16)


def blocks(kind, columns):
    per, size, k = BLOCKS[kind]
    w = words(PERIOD * per).reshape(PERIOD, per)
    codes = np.ascontiguousarray(w[:, :-1]).view(np.uint8)[:, :size]
    d = scales(w[:, -1:], 1 / (k * math.sqrt(columns)))
    if kind == "Q5_0":  # code i: a nibble, low ones first, and bit i of the first four bytes
        nibbles = np.concatenate([codes[:, 4:] & 15, codes[:, 4:] >> 4], axis=1)
        high = np.unpackbits(codes[:, :4], axis=1, bitorder="little")
        codes = np.concatenate([np.packbits(high | (nibbles == 0), axis=1, bitorder="little"), codes[:, 4:]], axis=1)
    if kind == "Q6_K":
        return np.concatenate([codes, d.view(np.uint8)], axis=1)
    if kind == "Q5_0":
        return np.concatenate([d.view(np.uint8), codes], axis=1)
    minimum = (np.float32(7.5) * d.astype(np.float32)).astype(np.float16)
    return np.concatenate([d.view(np.uint8), minimum.view(np.uint8), codes], axis=1)


def spread(name, columns):
    return 64 * columns if name.endswith(("o_proj.weight", "out_proj.weight")) else columns


def pattern(name, kind, shape, added):
    """The units of a pattern, a row of bytes each."""
    columns = spread(name, shape[-1])
    if kind in ("BF16", "F16", "F32"):
        u = words(PERIOD).view(np.uint16).astype(np.int32)
        a, offset = (math.sqrt(3 / columns), 0) if len(shape) > 1 else (1 / 16, 0)
        if len(shape) == 1 and "norm" in name:
            offset = 1 - added
        elif name.endswith("A_log"):
            a = 1
        elif name.endswith("dt_bias"):
            a, offset = 2, -4
        x = np.float32(offset) + (2 * u - 65535).astype(np.float32) * np.float32(a / 65536)
        return np.frombuffer(rounded(x, kind), np.uint8).reshape(PERIOD, -1)
    if kind in ("U8", "F8_E4M3"):
        raw = words(PERIOD).view(np.uint8).reshape(PERIOD, 8)
        if kind == "U8":
            return raw
        return raw & 0x0F | 0x30 if name.endswith("scale") else raw & 0xBF
    if kind in BLOCKS:
        return blocks(kind, columns)
    per = 5 if kind == "Q8_0" else 3
    w = words(PERIOD * per).reshape(PERIOD, per)
    codes = np.ascontiguousarray(w[:, :-1]).view(np.uint8)
    k = 1 / ({"Q8_0": 74, "Q4_0": 4.2, "Q4_1": 4.6}[kind] * math.sqrt(columns))
    d = scales(w[:, -1:], k)
    if kind == "Q8_0":
        codes = np.where(codes == 0x80, 0x81, codes).astype(np.uint8)
    if kind == "Q4_0":
        codes = np.where(codes & 0x0F == 0, codes | 0x08, codes)
        codes = np.where(codes & 0xF0 == 0, codes | 0x80, codes).astype(np.uint8)
    parts = [d.view(np.uint8)]
    if kind == "Q4_1":
        parts.append((np.float32(-7.5) * d.astype(np.float32)).astype(np.float16).view(np.uint8))
    return np.concatenate([*parts, codes], axis=1)


def values(name, kind, shape, added=0):
    units = pattern(name, kind, shape, added)
    n = math.prod(shape)
    size = n * {"BF16": 2, "F16": 2, "F32": 4}.get(kind, 1) if not kind.startswith("Q") else n // (256 if kind.endswith("K") else 32) * units.shape[1]
    needed = -(-size // units.shape[1])
    chosen = (hashed(name) + np.arange(needed, dtype=object)) % PERIOD
    return units[chosen.astype(np.int64)].tobytes()[:size]


def main():
    records = []

    def record(name, kind, shape, data, **more):
        records.append({"name": name, "type": kind, "shape": shape, "start": data[:16].hex(), "sha256": hashlib.sha256(data).hexdigest(), **more})

    for name, kind, shape in CASES:
        record(name, kind, shape, values(name, kind, shape))
    for name, kind, shape in ADDED:
        record(name, kind, shape, values(name, kind, shape, 1), plus=1)
    for name, scheme, matrix, suffix, shape, k in SCALES:
        data = np.full(math.prod(shape), 1 / (k * math.sqrt(spread(name, matrix[-1]))), np.float32).tobytes()
        record(name + suffix, "F32", shape, data, scheme=scheme, matrix=name, matrixshape=matrix)
    print(json.dumps(records, indent=1))


main()
