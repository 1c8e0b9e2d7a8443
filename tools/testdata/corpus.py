"""Texts that bring out differences between tokenizers. They depend on the random generator only."""

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "I've told him we'll see; they're late, it's 7:45, I'd go, don't! He'S HERE, WE'LL, I'M, YOU'RE, THEY'VE, CAN'T, I'D",
    "it'ſ a trap, and so is 'ſt or don'ſ; the K sign (Kelvin) \u212A'K, the \u212Bngstr\u00f6m, \u00df\u1e9e, \ufb01\ufb02 \ufb06 \u0149",
    "Der Übermut grüßt Straßenbahnschaffner; die Größe beträgt 3,14 m².",
    "Où est l'été ? À l'école, cœur d'élève, aujourd'hui, l’heure, 1 234,56 €.",
    "¿Qué pasó, señor Núñez? ¡Más allá del río!",
    "Jak się masz? Zażółć gęślą jaźń. Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Đây là một câu tiếng Việt có nhiều dấu: ngưỡng, nghiêng, chuyển.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΣΊΣΥΦΟΣ, Άλφα.",
    "שָׁלוֹם עֲלֵיכֶם, מה שלומך היום?",
    "مرحبا بالعالم، كَيْفَ حَالُكَ؟ ١٢٣٤٥",
    "नमस्ते दुनिया, यह एक वाक्य है। क़ख़ग़ ज़ड़ढ़ १२३",
    "বাংলা ভাষায় একটি বাক্য। தமிழ் மொழி கொ கோ. తెలుగు భాష. ಕನ್ನಡ. മലയാളം ൊ. සිංහල.",
    "ภาษาไทยไม่มีช่องว่างระหว่างคำ ๑๒๓ ພາສາລາວ ភាសាខ្មែរ မြန်မာဘာသာ བོད་སྐད།",
    "我能吞下玻璃而不伤身体。價錢是１２３元，「引號」……",
    "私はガラスを食べられます。カタカナ、ひらがな、漢字と半角カナ ﾊﾝｶｸ。ー々〆",
    "나는 유리를 먹을 수 있어요. 각낱말 \u1112\u1161\u11ab\u1100\u1173\u11af 한글",
    "Ĝis revido! Ñandú ŋ ɸ ʃ ʒ ǅ ǈ ǋ ǲ ªº ʰʲ ᵃᵇ ˈfəʊ",
    "ქართული ᲥᲐᲠᲗᲣᲚᲘ Հայերեն ᏣᎳᎩ ꮳꮃꭹ ⲀⲂ ⴰⵎⴰⵣⵉⵖ አማርኛ ᓀᐦᐃᔭᐍᐏᐣ ᚠᚢᚦ 𐌰𐌱 𐐀𐐨 𝔘𝔫𝔦 𝟘𝟙 𒀀",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * b[i]; // dot\n}\n",
    "def f(x: int) -> str:\n    return f\"{x!r:>10}\" if x else '''none'''\n\n\nclass A(B):\n        pass\n",
    "func (s *Set) Add(k string, v ...int) error { return fmt.Errorf(\"add %q: %w\", k, err) }\r\n\r\n",
    "SELECT * FROM t WHERE a >= 10 AND b LIKE '%x%' ORDER BY c DESC;--",
    "<div class=\"a-b\"><a href='https://example.com/?q=1&r=%20x#y'>Link</a></div><h1>T</h1><table><tr><td></td></tr></table>",
    "{\"key\": [1, 2.5e-3, null, true], \"nested\": {\"a\\n\": \"\\u00e9\"}}",
    "$ curl -sSL https://example.org/a_b-c.tar.gz | tar xz -C /tmp && echo \"$HOME\" #!/bin/sh",
    "x = \\frac{-b \\pm \\sqrt{b^2-4ac}}{2a}, ∀x∈ℝ: x²≥0 ⇒ ∑_{i=1}^{n} i = n(n+1)/2 ≠ ∞",
    "0 1 12 123 1234 12345 123456 1234567 3.14159 1,000,000 0x1F 1e10 ½ ⅓ Ⅷ ② ٣٤ 一二三 ²³",
    "camelCaseWords HTTPServer XMLHttpRequest snake_case kebab-case SCREAMING_CASE iPhone15Pro v1.2.3-rc4",
    "a/b//c /path/to/file.txt C:\\Users\\me \\\\server a\n/b\r/c //\n///\n",
    "😀😃 👍🏽 👩‍👩‍👧‍👦 👨🏿‍💻 🏳️‍🌈 🇩🇪🇫🇷🇯 ❤️ ☺︎ 1️⃣ #️⃣ 🫠 \U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
    "Z\u0351\u036b\u0343a\u0329\u0317l\u035c\u0321g\u0355o\u0300\u0301\u0302 e\u0301 e\u0323\u0302 o\u0302\u0323 A\u030a \u0344 \u0958 \ufb1d \u2126 \u1e9b\u0323",
    "a\u0300\u0315\u0300\u0315" + "\u0300\u0323\u0315" * 20 + " b" + "\u0301" * 40 + "\U0001d15e \uf900 \ufa0e \u2f800",
    "zero\u200bwidth\u200djoin\u200cnon\ufeffbom\u00adsoft \u202eright\u202c to left\u2066x\u2069",
    "line\u2028sep\u2029para\u0085next\x0bvt\x0cff\x1cfs\x1fus\u00a0nbsp\u2009thin\u3000wide\u1680ogham\u180emvs\u205f",
    "\x00\x01\x02 null\x00byte \x7f del \x1b[31mred\x1b[0m \x08\x07",
    "▁▁lower▁one eighth▁ ▁ Ġ Ċ ĉ č Ã© âĢĻ <0x0A><0xE2> <unk> <s> </s> [UNK]",
    "\ufffd\ufffe\uffff\U0010ffff \ue000\uf8ff \U000f0000 \U000e0100",
    "…—–‘’“”„‚«»‹›·•‰†‡§¶©®™°±×÷¬¦`´¨^~¯¸",
    "--- === *** ___ ### ~~~ ``` ... ,,, ;;; ::: !!! ??? ((( ))) [[[ ]]] {{{ }}} <<< >>> /// \\\\\\ ||| &&& %%% $$$ @@@ +++",
]

# Blocks whose characters have kept their properties for years, so that the edition of Unicode does not matter.
BLOCKS = [
    (0x20, 0x7E), (0x20, 0x7E), (0x00, 0x1F), (0x7F, 0xFF), (0x100, 0x24F), (0x250, 0x2FF), (0x300, 0x36F), (0x391, 0x3A1),
    (0x3B1, 0x3CE), (0x400, 0x482), (0x591, 0x5C7), (0x5D0, 0x5EA), (0x621, 0x669), (0x905, 0x939), (0x93C, 0x94D),
    (0x958, 0x96F), (0xE01, 0xE3A), (0xE40, 0xE5B), (0xF40, 0xF47), (0x10A0, 0x10C5), (0x1100, 0x11FF), (0x13A0, 0x13F4),
    (0x1E00, 0x1EFF), (0x1F00, 0x1F15), (0x2000, 0x2027), (0x2028, 0x2064), (0x2070, 0x2071), (0x20A0, 0x20BF),
    (0x2100, 0x218B), (0x2190, 0x23FE), (0x2460, 0x24FF), (0x2500, 0x27BF), (0x2C00, 0x2C2E), (0x3000, 0x303F),
    (0x3041, 0x3096), (0x3099, 0x30FF), (0x3131, 0x318E), (0x3220, 0x32FE), (0x4E00, 0x9FA5), (0x9FA6, 0x9FCC),
    (0xA000, 0xA48C), (0xAC00, 0xD7A3), (0xF900, 0xFA6D), (0xFB00, 0xFB06), (0xFB1D, 0xFB36), (0xFB50, 0xFBB1),
    (0xFE00, 0xFE0F), (0xFE20, 0xFE2F), (0xFF01, 0xFFBE), (0xFFFD, 0xFFFD), (0x10400, 0x1049D), (0x12000, 0x1236E),
    (0x1D100, 0x1D126), (0x1D15E, 0x1D164), (0x1D400, 0x1D454), (0x1D7CE, 0x1D7FF), (0x1F100, 0x1F10C), (0x1F1E6, 0x1F1FF),
    (0x1F300, 0x1F5FF), (0x1F600, 0x1F64F), (0x20000, 0x2A6D6), (0xE0100, 0xE01EF),
]  # fmt: skip

SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\u00a0", "\u2003", "\u3000", "\x0b", "\x0c", "\u0085", "\u2028"]
SUFFIXES = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'M", "'lL", "'D", "'ſ", "’s", "'", "''s", "'K"]
DIGITS = "0123456789٣५๗２½²Ⅷ一"
CASES = ["a", "b", "A", "Z", "ǅ", "ʰ", "ª", "中", "\u0301", "é", "É", "ß", "ſ", "1", "'", "-", " ", "_", "/", "\n", "!"]


def character(rng):
    low, high = rng.choice(BLOCKS)
    return chr(rng.randint(low, high))


def characters(rng, limit):
    return "".join(character(rng) for _ in range(rng.randint(1, limit)))


def word(rng):
    """A piece of some sentence."""
    sentence = rng.choice(SENTENCES)
    start = rng.randrange(len(sentence))
    return sentence[start : start + rng.randint(1, 12)]


def spaces(rng):
    return "".join(rng.choice(SPACES) for _ in range(rng.randint(1, 6)))


def noise(rng):
    return bytes(rng.randrange(256) for _ in range(rng.randint(1, 24))).decode("utf-8", "replace")


def digits(rng):
    return "".join(rng.choice(DIGITS) for _ in range(rng.randint(1, 9)))


def cases(rng):
    return "".join(rng.choice(CASES) for _ in range(rng.randint(1, 14)))


def repeated(rng):
    return rng.choice([character(rng), word(rng), rng.choice(SPACES), rng.choice("=-_*#a0.\n ")]) * rng.randint(2, 70)


def contraction(rng):
    return word(rng) + rng.choice(SUFFIXES) + rng.choice(["", "", " ", word(rng)])


def mixture(rng):
    parts = [word, word, word, spaces, spaces, noise, digits, cases, contraction, lambda r: characters(r, 4)]
    return "".join(rng.choice(parts)(rng) for _ in range(rng.randint(2, 8)))


def with_added(rng, added):
    """Added tokens, whole and broken, among other text."""
    parts = []
    for _ in range(rng.randint(1, 5)):
        token = rng.choice(added)
        if rng.random() < 0.2:
            token = token[: rng.randint(1, len(token))]
        if rng.random() < 0.05:
            token = token.swapcase()
        parts += [rng.choice(["", "", " ", "\n", word(rng), spaces(rng), mixture(rng)]), token]
    return "".join(parts) + rng.choice(["", " ", "\n\n", word(rng)])


def texts(rng, added, scale=1):
    """The corpus of a tokenizer with these added tokens; scale makes it smaller."""
    found = ["", " ", "\n", "a", *SENTENCES, *SPACES, *added[:300]]
    found += ["a" * 20000, "ab" * 5000, " " * 3000, "\n" * 1000, "é" * 3000, "中" * 3000, "🙂" * 500, "1" * 1000, "'" * 1000]
    found.append("\n".join(SENTENCES * 5))
    found.append(" ".join(mixture(rng) for _ in range(500)))
    for make, count in (
        (mixture, 4000), (lambda r: characters(r, 12), 1500), (cases, 1500), (noise, 700), (contraction, 500),
        (digits, 200), (spaces, 400), (repeated, 500), (lambda r: with_added(r, added), 1500),
    ):  # fmt: skip
        found += [make(rng) for _ in range(int(count * scale))]
    return found
