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
    ("model.layers.0.mlp.gate_proj.weight_packed", "U8", [7, 9]),
    ("model.layers.0.mlp.gate_proj.weight", "F8_E4M3", [7, 9]),
    ("model.layers.0.mlp.gate_proj.weight_scale", "F8_E4M3", [7, 9]),
    ("model.layers.0.mlp.gate_proj.weight_scale_inv", "BF16", [3, 5]),
    ("model.layers.0.mlp.gate_proj.weight_global_scale", "F32", [1]),
    ("model.layers.0.input_layernorm.weight", "F32", [97]),
    ("model.layers.0.input_layernorm.weight", "BF16", [97]),
    ("model.layers.0.self_attn.q_proj.bias", "BF16", [97]),
    ("large.weight", "BF16", [1024, 2048]),
]
MASK = (1 << 64) - 1


def words(name, count):
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & MASK
    z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def bfloat16(x):
    b = x.view(np.uint32)
    return ((b + np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def rounded(x, kind):
    return {"BF16": bfloat16, "F16": lambda x: x.astype(np.float16), "F32": lambda x: x}[kind](x).tobytes()


def values(name, kind, shape):
    n, columns = math.prod(shape), shape[-1]
    if "scale" in name:
        if kind in ("F8_E4M3", "U8", "F8_E8M0"):
            return bytes([0x38 if kind == "F8_E4M3" else 127]) * n
        return rounded(np.full(n, 32 if "global_scale" in name else 1 / 32, np.float32), kind)
    if kind in ("BF16", "F16", "F32"):
        u = words(name, -(-n // 4)).view(np.uint16)[:n].astype(np.int32)
        a = math.sqrt(3 / columns) if len(shape) > 1 else 1 / 16
        x = (2 * u - 65535).astype(np.float32) * np.float32(a / 65536)
        if len(shape) == 1 and "norm" in name:
            x = np.float32(1) + x
        return rounded(x, kind)
    if kind in ("U8", "F8_E4M3"):
        raw = words(name, -(-n // 8)).view(np.uint8)[:n]
        return (raw if kind == "U8" else raw & 0xBF).tobytes()
    blocks = n // 32
    per = 5 if kind == "Q8_0" else 3
    w = words(name, blocks * per).reshape(blocks, per)
    codes = np.ascontiguousarray(w[:, :-1]).view(np.uint8)
    k = 1 / ((74 if kind == "Q8_0" else 4.6) * math.sqrt(columns))
    d = ((98304 + (w[:, -1:] & np.uint64(0xFFFF)).astype(np.int32)).astype(np.float32) * np.float32(k / 131072)).astype(np.float16)
    if kind == "Q8_0":
        codes = np.where(codes == 0x80, 0x81, codes).astype(np.uint8)
    parts = [d.view(np.uint8)]
    if kind == "Q4_1":
        parts.append((np.float32(-7.5) * d.astype(np.float32)).astype(np.float16).view(np.uint8))
    return np.concatenate([*parts, codes], axis=1).tobytes()


def main():
    records = []
    for name, kind, shape in CASES:
        data = values(name, kind, shape)
        records.append({"name": name, "type": kind, "shape": shape, "start": data[:16].hex(), "sha256": hashlib.sha256(data).hexdigest()})
    print(json.dumps(records, indent=1))


main()
