"""What DuckDB has no function for, as macros: upper and lower case as Spark has them (letters that become several, ß,
and the sigma at a word's end; no script newer than Unicode 14), checks and hashes of bytes.
"""
from __future__ import annotations

# all letters whose upper case is more than one character
_BLOCKS = ((0xDF, 0x588), (0x1E96, 0x2000), (0xFB00, 0xFB18))
_GROWING = "".join(c for start, end in _BLOCKS for c in map(chr, range(start, end)) if len(c.upper()) > 1)


def macros() -> tuple[str, ...]:
    """The statements that define them; plain ASCII takes the short way."""
    grown = "x"
    for letter in _GROWING:
        grown = f"replace({grown}, '{letter}', '{letter.upper()}')"
    upper = f"WHEN strlen(x) = length(x) OR NOT regexp_matches(x, '[{_GROWING}]') THEN upper(x) ELSE upper({grown})"
    final = "regexp_replace(replace(x, '\u0130', 'i\u0307'), '(\\p{L})\u03a3([^\\p{L}]|$)', '\\1\u03c2\\2', 'g')"
    return (
        f"CREATE OR REPLACE MACRO spark_upper(x) AS CASE {upper} END",
        f"CREATE OR REPLACE MACRO spark_lower(x) AS CASE WHEN strlen(x) = length(x) THEN lower(x) ELSE lower({final}) "
        "END",
        f"CREATE OR REPLACE MACRO spark_bytes(x) AS {_bytes()}",
        f"CREATE OR REPLACE MACRO spark_crc32(x) AS {_crc32()}",
        *_murmur()
    )


def _bytes() -> str:
    """A text's bytes in UTF-8 as numbers."""
    digits = "'0123456789ABCDEF'"
    byte = f"(instr({digits}, c[1]) - 1) * 16 + instr({digits}, c[2]) - 1"
    return f"list_transform(regexp_extract_all(hex(x), '..'), lambda c: CAST({byte} AS BIGINT))"


def _murmur() -> tuple[str, ...]:
    """Murmur3 of 32 bits, by A. Appleby, over a list of words; Spark takes the rest of a text byte by byte, signed.

    What stands there twice is bound first: the macros are written out where they are called.
    """
    mixed = _low(f"{_turned(_low('k * CAST(3432918353 AS HUGEINT)'), 15)} * CAST(461845907 AS HUGEINT)")
    turned = _low(f"{_turned('m', 13)} * 5 + CAST(3864292196 AS HUGEINT)")
    step = f"list_transform([xor(h, {mixed})], lambda m: {turned})[1]"
    value = f"xor(list_reduce(words, lambda h, k: {step}, CAST(seed AS HUGEINT)), CAST(n AS HUGEINT))"
    first = f"list_transform([{value}], lambda a: {_low('xor(a, a >> 16) * CAST(2246822507 AS HUGEINT)')})"
    second = f"list_transform({first}, lambda a: {_low('xor(a, a >> 13) * CAST(3266489909 AS HUGEINT)')})"
    word = " + ".join(f"b[4 * w + {k + 1}] * {256 ** k}" for k in range(4))
    rest = f"list_transform(b[(len(b) // 4) * 4 + 1:], lambda y: {_low('CASE WHEN y > 127 THEN y - 256 ELSE y END')})"
    words = f"list_concat(list_transform(range(0, len(b) // 4), lambda w: CAST({word} AS HUGEINT)), {rest})"
    of_text = f"list_transform([spark_bytes(x)], lambda b: spark_murmur({words}, len(b), seed))[1]"
    low_half, high_half = _low("x"), _low("CAST(x AS HUGEINT) >> 32")
    signed = "CAST(h - CASE WHEN h >= 2147483648 THEN CAST(4294967296 AS HUGEINT) ELSE 0 END AS INTEGER)"
    return (
        f"CREATE OR REPLACE MACRO spark_murmur(words, n, seed) AS list_transform({second}, lambda a: xor(a, a >> "
        f"16))[1]",
        f"CREATE OR REPLACE MACRO spark_murmur_int(x, seed) AS spark_murmur([{low_half}], 4, seed)",
        f"CREATE OR REPLACE MACRO spark_murmur_long(x, seed) AS spark_murmur([{low_half}, {high_half}], 8, seed)",
        f"CREATE OR REPLACE MACRO spark_murmur_text(x, seed) AS {of_text}",
        f"CREATE OR REPLACE MACRO spark_signed(x) AS list_transform([x], lambda h: {signed})[1]"
    )


def _low(value: str) -> str:
    """The lowest 32 bits."""
    return f"(CAST({value} AS HUGEINT) & CAST(4294967295 AS HUGEINT))"


def _turned(value: str, places: int) -> str:
    """32 bits moved round."""
    up = _low(f"({value}) * {2 ** places}")
    return f"({up} | (({value}) >> {32 - places}))"


def _crc32() -> str:
    """The check of a text's bytes, byte by byte with the table of the polynomial 0xEDB88320 (ISO 3309)."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
        table.append(f"{value}")
    step = f"xor(CAST([{', '.join(table)}] AS BIGINT[])[(xor(c, b) & 255) + 1], c >> 8)"
    check = f"list_reduce(spark_bytes(x), lambda c, b: {step}, CAST(4294967295 AS BIGINT))"
    return f"CASE WHEN x = '' THEN CAST(0 AS BIGINT) ELSE xor({check}, CAST(4294967295 AS BIGINT)) END"
