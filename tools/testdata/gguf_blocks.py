"""Records random GGUF blocks and the float32 values that the `gguf` package gives them.

    pip install gguf numpy
    python tools/testdata/gguf_blocks.py atlasrt/internal/weights/gguf/testdata/blocks.safetensors
"""

import json
import struct
import sys

import gguf
import numpy as np

TYPES = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"]
# Byte offsets of the float16 scales of a block: random bits there would mostly be NaN, infinite or huge.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0]}
VALUES = 1536


def blocks(name, rng):
    elements, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    count = VALUES // elements
    if name == "F32":
        return rng.standard_normal((count, 1)).astype(np.float32).view(np.uint8)
    if name == "F16":
        return rng.standard_normal((count, 1)).astype(np.float16).view(np.uint8)
    if name == "BF16":
        return rng.standard_normal((count, 1)).astype(np.float32).view(np.uint8)[:, 2:]
    raw = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in SCALES[name]:
        scales = rng.standard_normal((count, 1)).astype(np.float16)
        scales[0] = np.float16(6e-8)  # the smallest subnormal
        scales[1] = np.float16(-0.0)
        raw[:, at : at + 2] = scales.view(np.uint8)
    return raw


def write(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        kind = {"uint8": "U8", "float32": "F32"}[array.dtype.name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    rng = np.random.default_rng(1)
    tensors = {}
    for name in TYPES:
        raw = blocks(name, rng)
        values = gguf.quants.dequantize(raw.reshape(-1), gguf.GGMLQuantizationType[name])
        tensors[name + ".blocks"] = raw.reshape(-1)
        tensors[name + ".values"] = values.astype(np.float32).reshape(-1)
    write(sys.argv[1], tensors)


main()
