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
        "END"
    )
