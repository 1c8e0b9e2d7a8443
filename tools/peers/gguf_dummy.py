#!/usr/bin/env python3
"""Writes a GGUF file of made-up weights and no vocabulary, which llama.cpp's benchmarks read.

usage: gguf_dummy.py CONFIG TYPE FILE

CONFIG is a config.json of a llama, qwen3 or qwen3_moe (tools/peers has some), TYPE one of BF16, Q8_0, Q4_0 or Q4_K_M, whose mixture is that
of llama-quantize. Weights have a mean of about zero. Needs numpy, and as much space as the weights take.
"""

import json
import struct
import sys

import numpy

ALIGNMENT = 32
FAMILIES = {"llama": "llama", "qwen3": "qwen3", "qwen3_moe": "qwen3moe"}  # llama.cpp's names
NUMBERS = {"F32": 0, "Q4_0": 2, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14, "BF16": 30}  # of ggml_type
BLOCKS = {"F32": (1, 4), "Q4_0": (32, 18), "Q8_0": (32, 34), "Q4_K": (256, 144), "Q6_K": (256, 210), "BF16": (1, 2)}  # weights, bytes


def pattern(kind, norm, size, random):
    """Some thousand blocks of a type, which are repeated to fill a tensor: bytes. Values are as large as size says."""
    n = 32768
    half = lambda x: numpy.asarray(x, numpy.float16).view(numpy.uint8).reshape(n, -1)
    codes = lambda size: random.integers(0, 256, (n, size), numpy.uint8)
    scales = lambda most: half(random.uniform(0.5, 1, (n, 1)) * most * size)
    if norm:
        return numpy.ones(n, numpy.float32).tobytes()
    if kind in ("F32", "BF16"):
        values = random.standard_normal(n * 64, numpy.float32) * numpy.float32(0.02 * size)
        return values.tobytes() if kind == "F32" else (values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()
    if kind == "Q4_0":
        nibbles = codes(16)  # none stands for −8, so that their mean is zero
        nibbles |= numpy.where(nibbles & 0x0F == 0, 0x08, 0).astype(numpy.uint8)
        nibbles |= numpy.where(nibbles & 0xF0 == 0, 0x80, 0).astype(numpy.uint8)
        parts = scales(0.006), nibbles
    elif kind == "Q8_0":
        parts = scales(0.0004), codes(32)
    elif kind == "Q4_K":  # minima of 7.5 times the scale: the same six bits for both
        parts = scales(0.0002), scales(0.0015), numpy.full((n, 12), 0x22, numpy.uint8), codes(128)
    elif kind == "Q6_K":
        parts = codes(192), numpy.full((n, 16), 16, numpy.uint8), scales(0.0001)
    return numpy.concatenate(parts, axis=1).tobytes()


def more_bits(layer, layers):
    """Whether llama.cpp's Q4_K_M gives a layer's values and downs six bits."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def tensors(config, kind):
    """(name, sizes with the innermost first, type) of all."""
    hidden, layers, vocab = config["hidden_size"], config["num_hidden_layers"], config["vocab_size"]
    heads, keys = config["num_attention_heads"], config["num_key_value_heads"]
    head = config.get("head_dim") or hidden // heads
    experts = config.get("num_experts", 0)
    plain = "Q4_K" if kind == "Q4_K_M" else kind
    finer = "Q6_K" if kind == "Q4_K_M" else kind
    yield "token_embd.weight", (hidden, vocab), plain
    yield "output_norm.weight", (hidden,), "F32"
    yield "output.weight", (hidden, vocab), finer
    for i in range(layers):
        of = lambda name: f"blk.{i}.{name}.weight"
        fine = finer if more_bits(i, layers) else plain
        yield of("attn_norm"), (hidden,), "F32"
        yield of("attn_q"), (hidden, heads * head), plain
        yield of("attn_k"), (hidden, keys * head), plain
        yield of("attn_v"), (hidden, keys * head), fine
        yield of("attn_output"), (heads * head, hidden), plain
        if config["model_type"] != "llama":
            yield of("attn_q_norm"), (head,), "F32"
            yield of("attn_k_norm"), (head,), "F32"
        yield of("ffn_norm"), (hidden,), "F32"
        if experts:
            inner = config["moe_intermediate_size"]
            yield of("ffn_gate_inp"), (hidden, experts), "F32"
            yield of("ffn_gate_exps"), (hidden, inner, experts), plain
            yield of("ffn_up_exps"), (hidden, inner, experts), plain
            yield of("ffn_down_exps"), (inner, hidden, experts), fine
        else:
            inner = config["intermediate_size"]
            yield of("ffn_gate"), (hidden, inner), plain
            yield of("ffn_up"), (hidden, inner), plain
            yield of("ffn_down"), (inner, hidden), fine


def settings(config):
    """(key, value) of the file's head; floats are written as float32, whole numbers as uint32."""
    arch = FAMILIES[config["model_type"]]
    yield "general.architecture", arch
    yield "tokenizer.ggml.model", "none"
    names = {
        "vocab_size": "vocab_size",
        "block_count": "num_hidden_layers",
        "context_length": "max_position_embeddings",
        "embedding_length": "hidden_size",
        "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads",
        "attention.head_count_kv": "num_key_value_heads",
        "attention.key_length": "head_dim",
        "attention.value_length": "head_dim",
        "expert_count": "num_experts",
        "expert_used_count": "num_experts_per_tok",
        "expert_feed_forward_length": "moe_intermediate_size",
    }
    for key, name in names.items():
        if name in config:
            yield f"{arch}.{key}", int(config[name])
    yield f"{arch}.rope.freq_base", float(config["rope_theta"])
    yield f"{arch}.attention.layer_norm_rms_epsilon", float(config["rms_norm_eps"])


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def value(x):
    if isinstance(x, str):
        return struct.pack("<I", 8) + string(x)
    return struct.pack("<If", 6, x) if isinstance(x, float) else struct.pack("<II", 4, x)


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in ("BF16", "Q8_0", "Q4_0", "Q4_K_M"):
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    if config.get("model_type") not in FAMILIES:
        sys.exit(f"gguf_dummy.py: {sys.argv[1]} has the model_type {config.get('model_type')}, not one of {', '.join(FAMILIES)}")
    head, infos, offset, sizes = list(settings(config)), [], 0, []
    for name, shape, kind in tensors(config, sys.argv[2]):
        weights, size = BLOCKS[kind]
        bytes_of = int(numpy.prod(shape, dtype=numpy.int64)) // weights * size
        infos.append(string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, NUMBERS[kind], offset))
        # As in atlasrt/internal/weights/dummy, or rows of a prompt would become alike.
        sizes.append(((kind, len(shape) == 1, 0.125 if ".attn_output." in name else 1), bytes_of))
        offset += -(-bytes_of // ALIGNMENT) * ALIGNMENT
    random = numpy.random.default_rng(1)
    patterns = {of: pattern(*of, random) for of in sorted({of for of, _ in sizes})}
    with open(sys.argv[3], "wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(infos), len(head)))
        file.write(b"".join(string(key) + value(x) for key, x in head) + b"".join(infos))
        for of, bytes_of in sizes:
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            for at in range(0, bytes_of, len(patterns[of])):
                file.write(patterns[of][: bytes_of - at])
        file.write(b"\0" * (-file.tell() % ALIGNMENT))


if __name__ == "__main__":
    main()
