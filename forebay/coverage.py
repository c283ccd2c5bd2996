"""A window coverage graph as people see it: a tree in text, a picture in a file.

Prices and choices come as a document.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, TextIO

from forebay import pictures
from forebay.text import Text, line, table

TITLES = {"original": "as written", "shared": "shared", "factored": "with factor windows"}
SIX = Context(prec=6)
Node = Mapping[str, Any]


def described(document: Mapping[str, Any]) -> Text:
    """`document` as optimizer.coverage.spec makes it."""
    def text(out: TextIO) -> None:
        line(out, _opening(document) + "\n")
        costs = document["cost"]
        rows = [(TITLES[k], _amount(costs[k]), f"{costs['original'] / costs[k]:.2f}") for k in TITLES]
        table(out, ("plan", "cost", "times cheaper"), rows, (False, True, True))
        for name in TITLES:
            if name == "original" or document["graphs"][name] != document["graphs"]["original"]:
                line(out, f"\n{TITLES[name]}\n" + "\n".join(tree(document["graphs"][name])))
        for remark in _remarks(document):
            line(out, "\n" + remark)
    return text


def _opening(document: Mapping[str, Any]) -> str:
    if document["relation"] == "each alone":
        return f"{document['function']} is holistic: each window is evaluated from the rows by itself"
    events = "one event" if document["rate"] == 1 else f"{document['rate']:,} events"
    return (f"{document['function']}: a window is {document['relation']} finer ones; {events} a unit of time, costs of "
            f"{_amount(document['R'])} units")


def _remarks(document: Mapping[str, Any]) -> Iterator[str]:
    cost, paper, beyond = document["cost"]["factored"], document["paper"], document["beyond"]
    if paper["factored"] != cost:
        listed = ", ".join(paper["factors"]) or "none"
        yield f"The paper's own choice of factor windows ({listed}) costs {_amount(paper['factored'])}."
    if document["search"] == "heuristic":
        yield "The set is too large for an exact search; factor windows were taken while they saved something."
    if beyond and beyond["cost"] < cost:
        factors = ", ".join(beyond["factors"]) or "no factor windows"
        yield f"Where a window may be {beyond['relation']}: {_amount(beyond['cost'])}, with {factors}."


def tree(nodes: Sequence[Node]) -> list[str]:
    """The forest under the rows, each window below the one that it reads."""
    return ["rows", *_below(nodes, None, "")]


def _below(nodes: Sequence[Node], source: str | None, indent: str) -> Iterator[str]:
    mine = [n for n in nodes if n["reads"] == source]
    for n in mine:
        last = n is mine[-1]
        role = " (factor window)" if n["factor"] else ""
        yield f"{indent}{'└─' if last else '├─'} {n['window']}{role}: {_amount(n['cost'])}"
        yield from _below(nodes, n["window"], indent + ("   " if last else "│  "))


def _amount(number: float) -> str:
    """Periods and costs can be beyond any float."""
    if isinstance(number, int):
        return f"{number:,}" if number < 10**15 else f"{Decimal(number).normalize(SIX)}".lower()
    return f"{number:,.6g}"


def picture(document: Mapping[str, Any], path: str) -> None:
    """The three graphs side by side."""
    import matplotlib  # half a second that only pictures pay

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(TITLES), 5), layout="constrained")
    for panel, name in zip(figure.subplots(1, len(TITLES)), TITLES):
        _draw(panel, document["graphs"][name], f"{TITLES[name]}: {_amount(document['cost'][name])}")
    pictures.save(figure, path)


def _draw(panel: Any, nodes: Sequence[Node], title: str) -> None:
    places = _places(nodes)
    for n in nodes:
        panel.annotate("", places[n["window"]], places[n["reads"]], arrowprops={
            "arrowstyle": "->",
            "shrinkA": 12,
            "shrinkB": 14,
            "color": "gray"
        })
    look = {"ha": "center", "va": "center", "fontsize": 9}
    panel.text(*places[None], "rows", bbox={"boxstyle": "round", "fc": "lightgray", "ec": "gray"}, **look)
    for n in nodes:
        style = {
            "boxstyle": "round",
            "fc": "white",
            "ec": "tab:orange" if n["factor"] else "tab:blue",
            "ls": "--" if n["factor"] else "-"
        }
        panel.text(*places[n["window"]], f"{n['window']}\n{_amount(n['cost'])}", bbox=style, **look)
    width, depth = max(x for x, _ in places.values()), min(y for _, y in places.values())
    panel.set(title=title, xlim=(-0.6, width + 0.6), ylim=(depth - 0.5, 0.5))
    panel.axis("off")


def _places(nodes: Sequence[Node]) -> dict[str | None, tuple[float, float]]:
    """Leaves side by side, what is read above the middle of its readers."""
    places: dict[str | None, tuple[float, float]] = {}
    free = 0

    def put(name: str | None, depth: int) -> float:
        nonlocal free
        across = [put(n["window"], depth + 1) for n in nodes if n["reads"] == name]
        if not across:
            free += 1
        places[name] = ((across[0] + across[-1]) / 2 if across else free - 1.0, -float(depth))
        return places[name][0]

    put(None, 0)
    return places
