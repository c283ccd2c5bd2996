"""Pages that read well without a network: Great Expectations' own without what they load from elsewhere, styled here,
and an index of what was found.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

ELSEWHERE = re.compile(r"<script\b.*?</script>|<link\b[^>]*>|<img\b[^>]*>|<footer\b.*?</footer>|<!--.*?-->",
                       re.S | re.I)
CALLS = re.compile(r"""\s(?:on\w+|data-toggle)\s*=\s*("[^"]*"|'[^']*')""", re.I)
LINKS = re.compile(r"""<a\b[^>]*href\s*=\s*["'](?:https?:)?//[^"']*["'][^>]*>(.*?)</a>""", re.S | re.I)
ADDRESSES = re.compile(r"""(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s"'<>)]*""", re.I)
INNER = re.compile(r"""href\s*=\s*["'](?:\.\./)+(?:expectations/[^"']*|index\.html)["']""")
OPENING = re.compile(r"<h4>Expectation Validation Result</h4>\s*<p[^>]*>.*?</p>", re.S)      # the same on every page
NO_NAME = re.compile(r"\s*Data asset: None<br>")
ADVERTISING = re.compile(r"""<div[^>]*id=["']ge-cta-footer.*?</div>\s*</div>""", re.S)
STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #18794e; --bad: #c62a2f; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 75rem; padding: 1rem 2rem 4rem; }
h1 { font-size: 1.5rem; }
h2, h4 { font-size: 1.15rem; margin-top: 2rem; }
h5, h6, .h6 { font-size: 1rem; font-weight: 600; margin: .4rem 0; }
table { border-collapse: collapse; margin: .5rem 0 1rem; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top;
  overflow-wrap: break-word; }
td:first-child { white-space: nowrap; }
.alert { border-left: 4px solid var(--line); background: #8881; padding: .4rem .8rem; margin: 1rem 0 .5rem; }
.badge { border: 1px solid var(--line); border-radius: .5rem; padding: 0 .4rem; font-size: .85em; }
.good, .text-success { color: var(--good); } .bad, .text-danger { color: var(--bad); } .muted { opacity: .7; }
.fa-check-circle::before { content: "\\2713"; }
.fa-times::before { content: "\\2717"; } .fa-exclamation-triangle::before { content: "!"; }
nav, footer, .card, a[href*="collapse-body"] { display: none; } code { font-size: .95em; } a { color: inherit; }
"""


def offline(page: str, title: str = "Expectations", notice: str = "") -> str:
    """A page of Great Expectations' with a title, and with nothing that a reader's browser would fetch, run or follow
    elsewhere; above all a notice, where there is one.
    """
    body = page[page.index("<body"):] if "<body" in page else page
    opening = f"<h1>{escape(title)}</h1><p>On the rows of the newest boundary that has any.</p>"
    for pattern, left in ((OPENING, opening), (NO_NAME, ""), (ELSEWHERE, ""), (ADVERTISING, ""), (CALLS, ""),
                          (LINKS, r"\1"), (INNER, 'href="index.html"'), (ADDRESSES, "")):
        body = pattern.sub(left, body)
    return f'{page_head(title)}<p><a href="index.html">All suites</a></p>{notice}{body}'


def index(title: str, sections: Iterable[tuple[str, Sequence[str], Sequence[Sequence[str]]]], notice: str = "") -> str:
    """Headed tables of texts; a cell that is markup is a Markup."""
    parts = [page_head(title), f"<body><h1>{escape(title)}</h1>{notice}"]
    for heading, names, rows in sections:
        parts.append(f"<h2>{escape(heading)}</h2>")
        parts.append(table(names, rows))
    return "\n".join([*parts, "</body></html>"])


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Of texts; a cell that is markup is a Markup."""
    if not rows:
        return '<p class="muted">none</p>'
    head, body = "".join(f"<th>{escape(name)}</th>" for name in names), ""
    for row in rows:
        texts = [cell if isinstance(cell, Markup) else escape(str(cell)) for cell in row]
        body += f"<tr>{''.join(f'<td>{text}</td>' for text in texts)}</tr>\n"
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


class Markup(str):
    """HTML that is meant as such."""


def link(path: str, text: str) -> Markup:
    return Markup(f'<a href="{escape(path)}">{escape(text)}</a>')


def failing(text: str) -> Markup:
    return Markup(f'<strong class="bad">{escape(text)}</strong>')


def verdict(passed: int, expected: int, failing: int = 0) -> Markup:
    """`failing`: findings that stop a boundary now, which a sample of what was published before knows nothing of."""
    stopped = f", but {failing} stop{'s' if failing == 1 else ''} a boundary" if failing else ""
    of_class = "good" if passed == expected and not failing else "bad"
    return Markup(f'<span class="{of_class}">{passed} of {expected} hold{stopped}</span>')


def heading(state: str, reasons: Sequence[str] = ()) -> Markup:
    """RUNNING, or what has stopped and why, with the command that lets it pass."""
    texts = "".join(f"<p>{escape(reason)}</p>" for reason in reasons)
    return Markup(f'<div class="alert {"bad" if reasons else "good"}"><strong>{escape(state)}</strong>{texts}</div>')


def page_head(title: str) -> str:
    return ('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(title)}</title><style>{STYLE}</style></head>")
