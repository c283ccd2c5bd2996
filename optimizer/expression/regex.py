r"""Java's regular expressions, which Spark has, written for RE2, which DuckDB has: only what means the same in both.

`java("^/shop/(\\d+)\\.html$")` is `RegexPattern(re2="^/shop/([0-9]+)\.html", groups=1, at_end=True, …)`. Every set of
characters is written as ranges, so nothing hangs on what an engine calls a letter. Refused are what RE2 lacks (look
around, back references, possessive), what differs by Java's version (\b, \p{L}) and what differs where nothing is
matched many times over ((a*)*).
"""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from optimizer.errors import ForebayError

Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
DIGITS: Ranges = ((48, 57),)
UPPER: Ranges = ((65, 90),)
LOWER: Ranges = ((97, 122),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACES: Ranges = ((9, 13), (32, 32))                                        # Java's \s has the vertical tab, RE2's not
TERMINATORS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x85, 0x85), (0x2028, 0x2029))      # what Java's . does not match
NAMED: dict[str, Ranges] = {
    "Digit": DIGITS, "Upper": UPPER, "Lower": LOWER, "Alpha": (*UPPER, *LOWER), "Alnum": (*DIGITS, *UPPER, *LOWER),
    "Space": SPACES, "Punct": ((33, 47), (58, 64), (91, 96), (123, 126))}
CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
MOST_REPEATED = 250      # RE2 allows 1000, counted through all nested repetitions
LARGEST = 2000           # characters after all counted repetitions are written out
ACCEPTED = (r"accepted are characters, . [a-z] [^a-z] \d \w \s \D \W \S \p{Alpha} and its like, escaped punctuation, "
            r"\t \n "
            r"\r \f \x41 \u0041, ( ) (?: ) |, * + ? {2,5} and their lazy forms, ^ at the beginning, $ at the end, "
            r"(?i) (?s) "
            "in front")


@dataclass(frozen=True)
class RegexPattern:
    """What a pattern is in RE2, without its `$`, and what decides where it may be used.

    - `at_end`: whether it ended in `$`, which in Java also stands before a last line break.
    - `nullable`: it may match nothing; `breaks`: it may match a line break; `repeated`: it has groups in repetitions.
    """

    re2: str
    groups: int = 0
    nullable: bool = True
    breaks: bool = False
    at_end: bool = False
    repeated: bool = False
    size: int = 0

    def followed(self, by: RegexPattern) -> RegexPattern:
        return RegexPattern(self.re2 + by.re2, self.groups + by.groups, self.nullable and by.nullable,
                            self.breaks or by.breaks, by.at_end, self.repeated or by.repeated, self.size + by.size)

    def otherwise(self, other: RegexPattern) -> RegexPattern:
        both = self.followed(other)
        return replace(both, re2=f"{self.re2}|{other.re2}", nullable=self.nullable or other.nullable)


@lru_cache(maxsize=4096)
def java(text: str) -> RegexPattern:
    """The pattern, or a refusal that says what in it is not accepted."""
    reader = _RegexReader(text)
    pattern = reader.alternatives(top=True)
    if reader.at < len(text):
        raise reader.refusal("a ) without (")
    if pattern.size > LARGEST:
        raise reader.refusal("too many repetitions")
    return pattern


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    gaps, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return (*gaps, (start, LAST)) if start <= LAST else tuple(gaps)


def _overlap(left: Ranges, right: Ranges) -> bool:
    return any(a <= d and c <= b for a, b in left for c, d in right)


def _both_cases(ranges: Ranges) -> Ranges:
    """With the other case of ASCII letters, as Java's (?i) has it."""
    extra = [(max(a, low) + shift, min(b, high) + shift)
             for a, b in ranges for low, high, shift in ((65, 90, 32), (97, 122, -32)) if a <= high and b >= low]
    return (*ranges, *extra)


def _written(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _character(ranges[0][0])
    return "[" + "".join(_character(a) + (f"-{_character(b)}" if b > a else "") for a, b in sorted(ranges)) + "]"


def _character(code: int) -> str:
    plain = chr(code)
    return plain if plain.isascii() and (plain.isalnum() or plain in "_ /:,;=<>@%&~'\"!#") else f"\\x{{{code:x}}}"


class _RegexReader:
    """Reads one pattern from left to right; (?i) folds ASCII only, as in Java."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.fold, self.dot = text, 0, False, complement(TERMINATORS)
        for flags in ("(?is)", "(?si)", "(?i)", "(?s)"):
            if text.startswith(flags):
                self.at, self.fold = len(flags), "i" in flags
                self.dot = ((0, LAST),) if "s" in flags else self.dot
                break

    def refusal(self, what: str) -> ForebayError:
        return ForebayError("bad-pattern", f"the pattern {self.text!r} has {what} at character {self.at + 1}",
                            hint=ACCEPTED)

    def peek(self, length: int = 1) -> str:
        return self.text[self.at:self.at + length]

    def take(self) -> str:
        if self.at >= len(self.text):
            raise self.refusal("no end")
        self.at += 1
        return self.text[self.at - 1]

    def alternatives(self, top: bool = False) -> RegexPattern:
        pattern = self.branch(top)
        branches = 1
        while self.peek() == "|":
            self.at += 1
            pattern = pattern.otherwise(self.branch(top))
            branches += 1
        if pattern.at_end and branches > 1:
            raise self.refusal("$ in one of several alternatives")
        return pattern

    def branch(self, top: bool) -> RegexPattern:
        pattern, first = RegexPattern(""), True
        while (symbol := self.peek()) not in ("", "|", ")"):
            if symbol == "^":
                if not first:
                    raise self.refusal("^ inside")
                self.at += 1
                piece = RegexPattern("^")
                if self.peek() in ("*", "+", "?", "{"):
                    raise self.refusal("a repeated ^")
            elif symbol == "$":
                self.at += 1
                if not top or self.at < len(self.text):
                    raise self.refusal("$ inside")
                return replace(pattern, at_end=True)
            else:
                piece = self.repeated(self.atom())
            pattern, first = pattern.followed(piece), False
        return pattern

    def atom(self) -> RegexPattern:
        symbol = self.take()
        if symbol == "(":
            return self.group()
        if symbol == "[":
            return self.characters(self.set_of_characters())
        if symbol == ".":
            return self.characters(self.dot)
        if symbol == "\\":
            return self.characters(self.escaped())
        if symbol in "*+?{}])":
            self.at -= 1
            raise self.refusal(f"a {symbol} that is not escaped")
        return self.characters(self.single(symbol))

    def single(self, symbol: str) -> Ranges:
        code = ord(symbol)
        if 0xD800 <= code <= 0xDFFF:
            raise self.refusal("half a character")
        return ((code, code),)

    def characters(self, ranges: Ranges) -> RegexPattern:
        full = _both_cases(ranges) if self.fold else ranges
        return RegexPattern(_written(full), 0, False, _overlap(full, TERMINATORS), size=1)

    def group(self) -> RegexPattern:
        captures = 1
        if self.peek() == "?":
            if self.peek(2) != "?:":
                raise self.refusal(f"({self.peek(3)}")
            self.at, captures = self.at + 2, 0
        inner = self.alternatives()
        if self.peek() != ")":
            raise self.refusal("a ( without )")
        self.at += 1
        return replace(inner, re2=f"({'' if captures else '?:'}{inner.re2})", groups=inner.groups + captures)

    def repeated(self, atom: RegexPattern) -> RegexPattern:
        symbol = self.peek()
        if symbol not in ("*", "+", "?", "{") or not symbol:
            return atom
        self.at += 1
        least, most, text = {"*": (0, None, "*"), "+": (1, None, "+"), "?": (0, 1, "?")}.get(symbol) or self.counts()
        if self.peek() == "?":
            self.at, text = self.at + 1, f"{text}?"
        if self.peek() in ("*", "+", "?", "{"):
            raise self.refusal("a repetition of a repetition, or a possessive one")
        if atom.nullable and most != 1:
            raise self.refusal("a repetition of what may be empty")
        return replace(atom, re2=atom.re2 + text, nullable=atom.nullable or least == 0,
                       repeated=atom.repeated or atom.groups > 0 and most != 1, size=atom.size * max(least, most or 1,
                                                                                                     1))

    def counts(self) -> tuple[int, int | None, str]:
        """{n}, {n,} and {n,m}."""
        start = self.at
        while self.take() != "}":
            pass
        inside = self.text[start:self.at - 1]
        low, comma, high = inside.partition(",")
        if not low.isascii() or not low.isdigit() or high and not (high.isascii() and high.isdigit()):
            raise self.refusal(f"{{{inside}}}")
        least, most = int(low), int(high) if high else None if comma else int(low)
        if max(least, most or 0) > MOST_REPEATED or most is not None and most < max(least, 1):
            raise self.refusal(f"a repetition {{{inside}}}, beyond {MOST_REPEATED} or empty")
        return least, most, f"{{{inside}}}"

    def escaped(self) -> Ranges:
        symbol = self.take()
        sets: dict[str, Ranges] = {"d": DIGITS, "w": WORD, "s": SPACES}
        if symbol.lower() in sets:
            return sets[symbol] if symbol in sets else complement(sets[symbol.lower()])
        if symbol in CONTROLS:
            return ((CONTROLS[symbol], CONTROLS[symbol]),)
        if symbol in ("x", "u"):
            digits = "".join(self.take() for _ in range(2 if symbol == "x" else 4))
            if not all(c in "0123456789abcdefABCDEF" for c in digits):
                raise self.refusal(f"\\{symbol}{digits}")
            return self.single(chr(int(digits, 16)))
        if symbol == "p" and self.peek() == "{":
            name = self.text[self.at + 1:].partition("}")[0]
            if name in NAMED and not (self.fold and name in ("Upper", "Lower")):      # those differ by Java's version
                self.at += len(name) + 2
                return NAMED[name]
        if symbol.isascii() and symbol.isprintable() and not symbol.isalnum():
            return ((ord(symbol), ord(symbol)),)
        self.at -= 1
        raise self.refusal(f"\\{symbol}")

    def set_of_characters(self) -> Ranges:
        """[…], whose [ has been read."""
        negated = self.peek() == "^"
        self.at += negated
        ranges: Ranges = ()
        while self.peek() != "]" or not ranges:
            ranges += self.member()
        self.at += 1
        full = _both_cases(ranges) if self.fold else ranges
        return complement(full) if negated else full

    def member(self) -> Ranges:
        symbol = self.take()
        # && intersects; one & is itself.
        if symbol in "[]^" or symbol == "&" and self.peek() == "&":
            self.at -= 1
            raise self.refusal(f"a {symbol} inside [ ] that is not escaped")
        low = self.escaped() if symbol == "\\" else self.single(symbol)
        if self.peek() != "-" or self.peek(2) in ("-]", "-"):
            return low
        self.at += 1
        symbol = self.take()
        if symbol in "[]&^-":
            raise self.refusal("a range that is not from one character to another")
        high = self.escaped() if symbol == "\\" else self.single(symbol)
        start, end = low[0][0], high[0][0]
        if low[0] != (start, start) or high[0] != (end, end) or len(low) + len(high) > 2 or end < start:
            raise self.refusal("a range that is not from one character to another")
        if start < 0xD800 and end > 0xDFFF:
            raise self.refusal("a range over U+D800 to U+DFFF")      # Java sees halves of characters there
        return ((start, end),)
