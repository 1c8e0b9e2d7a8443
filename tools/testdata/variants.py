"""Changes to published tokenizers, for parts that files in the wild have but none of the six does."""

import copy

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WHITESPACE = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN35 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + WHITESPACE
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + WHITESPACE
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
BAILING = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
EXAONE = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
KIMI_HEAD = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI_TAIL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = (
    rf"[\p{{Han}}]+|{KIMI_HEAD}*{KIMI_TAIL}+{CONTRACTIONS}?|{KIMI_HEAD}+{KIMI_TAIL}*{CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + WHITESPACE
)
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def before_bytes(*parts):
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*parts, BYTES]}}


def metaspace(scheme, cut):
    part = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}
    return {"normalizer": None, "pre_tokenizer": part, "decoder": {key: part[key] for key in part if key != "split"} | {"split": True}}


def token(number, content, **flags):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {"id": number, "content": content} | plain | flags


FLAGGED = [
    token(0, "<unk>", special=True),
    token(1, "<s>", special=True, lstrip=True),
    token(2, "</s>", special=True, rstrip=True),
    token(32000, "<both>", lstrip=True, rstrip=True),
    token(32001, "zqxj", single_word=True),
    token(32002, "ñañé", single_word=True),
    token(32003, "<norm>", normalized=True),
    token(32004, "in voll", normalized=True, lstrip=True),
    token(32005, "<bo"),
    token(32006, "zqxj zqxj", single_word=True, rstrip=True),
]

VARIANTS = {  # name: base, changes
    "qwen35": ("deepseek_v3", before_bytes(split(QWEN35))),
    "tekken": ("deepseek_v3", before_bytes(split(TEKKEN)) | {"model": {"ignore_merges": True}}),
    "gpt2": ("deepseek_v3", {"pre_tokenizer": BYTES | {"add_prefix_space": True, "use_regex": True}}),
    "smollm": ("deepseek_v3", before_bytes({"type": "Digits", "individual_digits": True}, split(GPT2))),
    "digit_groups": ("deepseek_v3", before_bytes({"type": "Digits", "individual_digits": False}, {"type": "Punctuation"})),
    "punctuation": ("deepseek_v3", before_bytes({"type": "Punctuation", "behavior": "MergedWithNext"})),
    "words": ("deepseek_v3", before_bytes({"type": "Whitespace"})),
    "blanks": ("deepseek_v3", before_bytes({"type": "WhitespaceSplit"})),
    "removed": ("deepseek_v3", before_bytes(split(r"\s+", "Removed"))),
    "inverted": ("deepseek_v3", before_bytes(split(r"[\p{L}\p{M}]+|\p{N}", "Removed", True))),
    "with_previous": ("deepseek_v3", before_bytes(split(r"[.!?]", "MergedWithPrevious"), split(" ", "MergedWithNext", kind="String"))),
    "contiguous": ("deepseek_v3", before_bytes(split(r"[aeiouàé\n ]", "Contiguous"), split(r"\p{Lu}", "MergedWithNext"))),
    "nfkc": ("deepseek_v3", {"normalizer": {"type": "NFKC"}}),
    "nfd": ("deepseek_v3", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]}}),
    "nfc": ("deepseek_v3", {"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "NFC"},
        {"type": "Replace", "pattern": {"Regex": r"\s{2,}|\p{Sm}"}, "content": " ~"},
    ]}}),
    "behind_bytes": ("deepseek_v3", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Punctuation", "behavior": "Contiguous"}, BYTES | {"use_regex": True}, {"type": "Digits", "individual_digits": False},
        split("[0-9][0-9][0-9]"),
    ]}}),
    "nested_class": ("deepseek_v3", before_bytes(split(BLOOM), split(r"\p{N}"))),
    "possessive": ("deepseek_v3", before_bytes(split(BAILING))),
    "without_han": ("deepseek_v3", before_bytes(split(KIMI))),
    "words_in_groups": ("deepseek_v3", before_bytes(split(EXAONE))),
    "digit_cuts": ("deepseek_v3", before_bytes(split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))"))),
    "digits_from_end": ("deepseek_v3", before_bytes(split(r"\d{1,3}(?=(?:\d{3})*\b)"), split(GPT2))),
    "between_delimiters": ("deepseek_v3", before_bytes({"type": "CharDelimiterSplit", "delimiter": "e"}, {"type": "BertPreTokenizer"})),
    "metaspace_always": ("llama2", metaspace("always", True)),
    "metaspace_first": ("llama2", metaspace("first", False)),
    "metaspace_never": ("llama2", metaspace("never", True)),
    "unknown_fused": ("llama2", {"model": {"byte_fallback": False, "fuse_unk": True}}),
    "unknown_apart": ("llama2", {"model": {"byte_fallback": False, "fuse_unk": False}}),
    "flags": ("llama2", {"added_tokens": FLAGGED}),
    "flags_nfkc": ("llama2", {"added_tokens": FLAGGED, "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "NFKC"}, {"type": "Lowercase"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}}),
}  # fmt: skip


def apply(base, changes):
    """The tokenizer with the changes: of the model key by key, of the rest whole."""
    changed = copy.copy(base)
    for key, value in changes.items():
        changed[key] = base["model"] | value if key == "model" else value
    return changed
