"""Upper and lower case as Spark has them, as DuckDB macros: letters that become several (ß), the sigma at a word's end.

No script newer than Unicode 14.
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
        f"CREATE OR REPLACE MACRO spark_crc32(x) AS {_crc32()}"
    )


def _crc32() -> str:
    """The check of a text's bytes, byte by byte with the table of the polynomial 0xEDB88320 (ISO 3309)."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
        table.append(f"{value}")
    digits = "'0123456789ABCDEF'"
    byte = f"(instr({digits}, b[1]) - 1) * 16 + instr({digits}, b[2]) - 1"
    step = f"xor(CAST([{', '.join(table)}] AS BIGINT[])[(xor(c, {byte}) & 255) + 1], c >> 8)"
    numbers = f"list_transform(regexp_extract_all(hex(x), '..'), lambda b: CAST({byte} AS BIGINT))"
    step = step.replace(byte, "b")
    check = f"list_reduce({numbers}, lambda c, b: {step}, CAST(4294967295 AS BIGINT))"
    return f"CASE WHEN x = '' THEN CAST(0 AS BIGINT) ELSE xor({check}, CAST(4294967295 AS BIGINT)) END"
