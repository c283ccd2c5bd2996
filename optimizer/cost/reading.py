"""Work of an input's view w{i} (optimizer.plan.operators.views): rows read, early aggregated, kept in state; no join here."""
from __future__ import annotations

from optimizer.cost.tally import Tally
from optimizer.plan.division import ahead, by_key, dealt
from optimizer.plan.lowering import extremes
from optimizer.statistics.cardinality import Flow

INTERVAL = 3          # columns of a row in a temporary table beside its own: _in, _out, _known
TIMES = 2             # columns more to read where a file's bounds do not prove its rows' times: event time and _boundary


def read_input(tally: Tally, i: int) -> None:
    """The view w{i} (optimizer.plan.operators.views.view)."""
    low, f = tally.low, tally.sizes.flows[i]
    if low.window(i) is None:
        _relation(tally, i, f)
    elif not low.early(i) or low.plan.keeping == "recompute" and low.plan.layout == "raw":
        _late(tally, i, f)
    elif low.plan.keeping == "running":
        _totals(tally, i, f)
    else:
        _panes(tally, i, f)


def _relation(tally: Tally, i: int, f: Flow) -> None:
    part, width = tally.part(i), tally.width(i)
    tally.add(tally.scan(i), scan=f.read * max(f.columns, 1), files=1, statements=1)
    if tally.low.early(i):
        tally.add(tally.set(i), group=f.window * part * width, made=f.set * part * width, keep=f.set * part * width)
    else:
        tally.add(tally.scan(i), keep=f.window * part * width)


def _read(tally: Tally, i: int, rows: float, files: float, columns: int, passing: float) -> float:
    """Rows of stream i read from files, and sent where they cross an exchange; gives how many reach the view."""
    low, f = tally.low, tally.sizes.flows[i]
    share = 1 / low.parts if ahead(low, i) or dealt(low, i) else 1.0
    tally.add(tally.scan(i), scan=rows * max(columns, 1) * share, files=max(files * share, 1.0), statements=1)
    if not ahead(low, i):
        return passing * tally.part(i)
    sent = passing
    if low.early(i):
        sent = min(max(passing / f.came * f.pane, f.set) if f.came else f.set, passing)
        tally.add(tally.set(i), group=passing * share * tally.width(i), made=sent * share * tally.width(i))
    tally.add(tally.scan(i), exchange=sent * tally.part(i), statements=1)
    return sent * tally.part(i)


def _late(tally: Tally, i: int, f: Flow) -> None:
    """The window's rows each time: a view for recompute, which needs no times where bounds prove them; else a table of rows with their intervals."""
    query = tally.low.shape.query
    exact = tally.low.plan.keeping == "recompute" and not query.returns_rows and not query.windows
    mixed = f.mixed or query.returns_rows
    reached = _read(tally, i, f.read, f.panes, f.columns + (int(f.timed) if exact else TIMES * mixed), f.window)
    if not exact:
        tally.add(tally.scan(i), times=reached * mixed, keep=reached * (tally.width(i) + INTERVAL), statements=1)


def _panes(tally: Tally, i: int, f: Flow) -> None:
    """What came, early aggregated by interval, is added to state; older panes are read from it."""
    low, part, width = tally.low, tally.part(i), tally.width(i) + 2
    rows, panes, made = (f.window, f.panes, f.by_pane) if tally.new else (f.came, 1.0, f.pane)
    reached = _read(tally, i, f.read if tally.new else f.arriving, panes, f.columns + TIMES * f.mixed, rows)
    tally.add(tally.set(i), times=reached * f.mixed, group=reached * width, made=made * part * width, keep=made * part * width, statements=2)
    tally.add(tally.set(i), state_write=made * part * width)
    if not tally.new and not (low.shape.query.windows and len(low.plan.digits) == 1 and low.plan.keeping == "recompute"):      # there each window reads its own
        share = part if dealt(low, i) else 1.0
        tally.add(tally.set(i), state_read=f.stored * share * width, files=tally.files(f.panes * share))
    if low.plan.keeps_answer:
        tally.add(tally.set(i), keep=f.stored * part * width)


def _totals(tally: Tally, i: int, f: Flow) -> None:
    """Rows that came and left change the totals; extremes are kept by interval beside them."""
    low, part, width = tally.low, tally.part(i), tally.width(i) - len(extremes(tally.low, i))
    rows, files = (f.read, f.panes) if tally.new else (f.arriving * (2 if f.left else 1), 2 if f.left else 1)
    passing = f.window if tally.new else f.came + f.left
    reached = _read(tally, i, rows, files, f.columns + TIMES * f.mixed, passing)
    before = 0.0 if tally.new else f.set
    tally.add(tally.scan(i), times=reached * f.mixed, keep=reached * (tally.width(i) + INTERVAL), statements=1)
    tally.add(tally.set(i), look=2 * reached, group=(reached + before * part) * width, made=f.set * part * width, keep=f.set * part * width, statements=2)
    tally.add(tally.set(i), state_write=f.set * part * width, state_read=before * width, files=0 if tally.new else low.parts if by_key(low) else 1)
    if extremes(low, i):
        _extremes(tally, i, f, reached * f.came / passing if passing and not tally.new else reached)


def _extremes(tally: Tally, i: int, f: Flow, came: float) -> None:
    own, part = len(extremes(tally.low, i)), tally.part(i)
    width, made = tally.keys(i) + own + 2, f.by_pane if tally.new else f.pane
    tally.add(tally.set(i), look=came, group=came * width, made=made * part * width, keep=made * part * width, state_write=made * part * width, statements=2)
    tally.add(tally.set(i), group=(f.set + f.stored) * part * tally.width(i), made=f.set * part * tally.width(i))
    if not tally.new:
        tally.add(tally.set(i), state_read=f.stored * width, files=tally.files(f.panes))
