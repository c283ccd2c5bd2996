"""The names of the tables and views in a plan's SQL: what a person reads in `explain --sql`.

`files_0` are the stored rows of input 0, `changes_1` what came and left of input 1. State sets go by their names on the
disk: `kept_panes0`. Boundaries are numbered as the run has them: `answer_after_2` is the answer after its third.
"""
from __future__ import annotations


def files(i: int) -> str:
    """What is stored of an input's stream or relation."""
    return f"files_{i}"


def received(i: int) -> str:
    """What the tasks that read an input's files have sent to this one."""
    return f"received_{i}"


def of_input(i: int) -> str:
    """An input's rows or partials as its window holds them, each with the boundaries at which it counts."""
    return f"input_{i}"


def of_level(i: int, place: int) -> str:
    """The same as the partials of a level."""
    return f"{of_input(i)}_level_{place}"


def changes(i: int) -> str:
    """An input's rows that came or left, where only these are read."""
    return f"changes_{i}"


def kept(state_set: str) -> str:
    """What a state set's files hold."""
    return f"kept_{state_set}"


def new(state_set: str) -> str:
    """What this run adds to a state set."""
    return f"new_{state_set}"


def extremes(i: int) -> str:
    """An input's extremes, kept and new ones."""
    return f"extremes_{i}"


def totals_before(i: int, number: int) -> str:
    """An input's totals as of the boundary before the run's boundary `number`."""
    return totals_after(i, number - 1) if number else f"totals_{i}_before"


def totals_after(i: int, number: int) -> str:
    return f"totals_{i}_after_{number}"


def totals(i: int) -> str:
    """An input's totals, each with the boundaries from which to which they hold: of a run whose statements answer
    several boundaries each."""
    return f"totals_{i}"


def answer_before(number: int) -> str:
    """The kept answer as of the boundary before the run's boundary `number`."""
    return answer_after(number - 1) if number else "answer_before"


def answer_after(number: int) -> str:
    return f"answer_after_{number}"


def answers_upto(number: int) -> str:
    """The kept answer at the boundaries that one statement answers, up to the run's boundary `number`, by when it
    holds.
    """
    return f"answers_upto_{number}"


def added(number: int) -> str:
    """What the run's boundary `number` adds to the kept answer."""
    return f"added_at_{number}"


def slices(place: int, number: int) -> str:
    """An answer's partials by the shortest window that holds them, for windows that end together."""
    return f"slices_{place}_at_{number}"


def sampled(i: int) -> str:
    """An input's rows by the hashes of their attributes and keys."""
    return f"sampled_{i}"


def keyed(i: int, c: int) -> str:
    """The same by the hash of their key of equality class c."""
    return f"keyed_{i}_{c}"


def uncoded(i: int) -> str:
    """An input's rows before their strings are made numbers."""
    return f"uncoded_{i}"


def codes(attribute: str) -> str:
    """The enumeration of an attribute's values, and of those that it is joined with."""
    return f"codes_{attribute}"
