"""Texts that tokenizers get wrong, and random ones."""
import random

HARD = [
    "", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n \n", "\u00a0", "\u3000", "a", " a", "a ", " a ", "  a  b   c    d",
    "Hello, world!", "Hello, y'all! How are you 😁 ?", "I'm, you're, we've, she'll, it'd, don't, HE'S, I'M", "'s 't 're 've 'm 'll 'd ''s",
    "The quick brown fox jumps over the lazy dog.", "ALL CAPS and MixedCase and camelCaseWords and snake_case_words",
    "0123456789", "3.14159 1,000,000 1e-10 0x1F 12 345 6789 ½ ²³ Ⅷ ٣٤٥ १२३", "1 22 333 4444 55555 666666",
    "tabs\tand\t\ttabs", "line one\nline two\r\nline three\rline four\n\n\nline seven", "trailing spaces   \n   leading spaces",
    "def f(x):\n    return x ** 2  # square\n\n\nclass A:\n\tpass\n", "for (int i = 0; i < n; ++i) { a[i] += b[i] * c; }",
    "<html><body class=\"x\">&nbsp;</body></html>", "{\"key\": [1, 2.5, null, true], \"s\": \"\\u00e9\"}", "SELECT * FROM t WHERE a<>'b';",
    "https://example.com/a/b?c=d&e=f#g user@example.org", "C:\\Windows\\System32 /usr/local/bin ~/x", "a" * 300, "ab" * 200, "aaaa " * 50,
    "antidisestablishmentarianism Donaudampfschifffahrtsgesellschaft", "pneumonoultramicroscopicsilicovolcanoconiosis" * 5,
    "ÀÉÎÕÜ àéîõü ß ÿ Œœ Ææ", "e\u0301 n\u0303 a\u030a\u0301 Å Å Ω Ω", "ﬁ ﬂ ﬀ Ⅳ ① ㎏ ｆｕｌｌ　ｗｉｄｔｈ", "İstanbul ıIiİ DŽ dž ẞ", "naïve café résumé Zoë",
    "你好，世界！这是一个测试。", "日本語のテキストとカタカナ、ひらがな。", "한국어 텍스트입니다. 안녕하세요?", "中文English混合123テスト", "𠀀𠀁𪚥 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙𝟚",
    "Привет, как дела? ЁЖ", "Γειά σου Κόσμε ΣΑΣ σας", "مرحبا بالعالم، كيف الحال؟", "שלום עולם", "नमस्ते दुनिया", "สวัสดีชาวโลก", "Xin chào thế giới", "ქართული հայերեն",
    "😀😃😄", "👩‍👩‍👧‍👦 👨🏽‍💻 🏳️‍🌈 🇩🇪🇫🇷", "☺️ ❤️ ✔ ★ ™ © € £ ¥ ₿", "e😀e 😀 e", "zero\u200bwidth\u200cjoin\u200der\ufeffbom \u200e\u200f",
    "\u0000", "a\u0000b", "\u0001\u0002\u007f\u0080\u009f", "\ufffd \ufffe", "\U000e0041\U0010ffff\ue000", "\u2028\u2029\u0085\u000b\u000c", "soft\u00adhyphen non\u2011breaking",
    "…—–‐“”‘’«»„‚", "!!!???...,,,;;;:::", "((([[[{{{}}}]]])))", "-----=====_____*****", "$5 + £3 = €8; 50% off @home #tag ^_^ ~ | `code`", "!@#$%^&*()_+-=[]{}|;':\",./<>?",
    "<s>", "</s>", "<unk> <pad>", "<|im_start|>user\nHi<|im_end|>\n", "<|endoftext|>", "a<|endoftext|>b", " <|im_end|> ", "<|im_end", "|im_end|>", "<<|im_end|>>", "[CLS] hi [SEP] [MASK] [UNK]",
    "<0x0A> <0xE2>", "▁", "▁▁hello▁world", "Ġhello Ċ", "##ing un##able", "\u0301", "\u0301a", " \u0301", "a\u0301\u0301\u0301\u0301", "क्षि क्‍ष", "ᄀ각ᆨ 각 ㄱ", "\u1112\u1161\u11ab",
    "x" * 101, "é" * 101, "word " * 30 + "\n" * 5 + " " * 20 + "end", "The year 2024 was 1st, 2nd, 3rd & 4th; v1.2.3-beta+exp.sha.5114f85",
    "\u180e mongolian", "\u00a0\u00a0nbsp\u00a0\u00a0", "a\u2003b\u2009c\u202fd", "ſ K ﬆ 'ſ", "ℝ ∀x∈S: ∑ᵢ xᵢ² ≤ ∞ ⇒ ∫f(x)dx", "½⅓ ௧௨ 𝟏𝟐 ۱۲۳ ৩", "Łódź Żółć ĳ ŉ",
]

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz", "ABC XYZ", " \t\n\r", "0123456789", ".,;:!?'\"()[]{}<>-_=+*/\\|@#$%^&~`", "éàüßñøåçÉÀÜ", "e\u0301\u0300\u0308\u0327n\u0303",
    "你好世界的一是不了", "ひらカタ漢字ー", "안녕하세요", "Приветмирё", "αβγΣσς", "مرحبا", "שלום", "नमस्ते", "😀👍🏽👩\u200d💻🇩🇪\ufe0f",
    "\u00a0\u3000\u200b\u200d\u2028\u0085\ufeff", "\u0000\u0001\u001f\u007f\u0080\u00ad", "½²Ⅷ٣१", "ﬁｆ㎏①", "\ufffd▁Ġ<>|#", "\U0001d518\U00020000\U000e0001",
]
WORDS = ["the", "The", "and", "tokenizer", "don't", "it's", "graph", "<|im_end|>", "<s>", "[MASK]", "<extra>", "hello", "world", "  ", "\n\n", "1234", "<|im_start|>", "un", "able", "▁the", "newtoken"]


def random_strings(count, seed):
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 8)):
            if rng.random() < 0.3:
                parts.append(rng.choice(WORDS))
            else:
                alphabet = rng.choice(ALPHABETS)
                parts.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 7))))
            if rng.random() < 0.3:
                parts.append(" ")
        out.append("".join(parts))
    return out
