"""Rules of the house that import-linter does not hold (see setup.cfg).

They are functions from syntax trees to sentences about what breaks them.
"""
from __future__ import annotations

import ast
import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOTS = ("optimizer", "expectations", "jobs", "dags", "forebay", "infra")
# Of a package: more, and nobody finds the one that is meant.
MOST_MODULES = 12
PURE = ("__future__", "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal",
        "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "itertools", "json", "logging", "math",
        "operator", "re", "statistics", "string", "struct", "sys", "textwrap", "threading", "types", "typing",
        "unicodedata")
# Still of two modules each: to users and in jobs, of files and of statements, of queries and of paper D.
TWICE = ("Pipeline", "Source", "Window")
ASKED = (ast.Import, ast.ImportFrom, ast.Call, ast.FunctionDef, ast.AsyncFunctionDef)
IMPURE_CALLS = ("open", "print", "input", "exec", "eval", "datetime.now", "datetime.utcnow", "datetime.today",
                "date.today", "datetime.datetime.now")


@dataclass(frozen=True)
class Module:
    """`path` is relative to the repository, with slashes."""

    path: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def package(self) -> str:
        return self.path.split("/")[0]


def parsed(path: str, text: str) -> Module:
    return Module(path, ast.parse(text, path))


@cache
def repository(root: Path) -> tuple[Module, ...]:
    """Every module of the product."""
    found = (f for folder in ROOTS for f in sorted((root / folder).rglob("*.py")))
    gc.disable()      # nothing of a tree is garbage yet, and looking takes a third of the time
    try:
        return tuple(parsed(f.relative_to(root).as_posix(), f.read_text(encoding="utf-8")) for f in found)
    finally:
        gc.enable()


@cache
def nodes(module: Module) -> tuple[ast.AST, ...]:
    """Those that a rule asks about; ast.walk takes twice as long."""
    found, todo = [], [module.tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ASKED):
            found.append(node)
        for value in map(vars(node).get, node._fields):
            if value.__class__ is list:
                todo += [v for v in value if isinstance(v, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                todo.append(value)
    return tuple(found)


@cache
def imports(module: Module) -> tuple[tuple[str, int], ...]:
    """Dotted names with their lines, also of imports inside functions."""
    return tuple(_imported(module, nodes(module)))


def _imported(module: Module, among: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    """`from a import b` gives a.b, as b may be a module."""
    for node in among:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.name.split(".")
            base = base[:len(base) - node.level + module.path.endswith("__init__.py")] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{stem}.{alias.name}", node.lineno) for alias in node.names)


def impure(module: Module) -> Iterator[str]:
    """In the optimizer: packages that reach files, clocks, chance or processes, and calls that do."""
    if module.package != "optimizer":
        return
    for name, line in imports(module):
        if name.split(".")[0] not in (*PURE, "optimizer", "sqlglot", "numpy"):
            yield (f"{module.path}:{line} imports {name}: the optimizer may import {', '.join(PURE)}, itself, sqlglot "
                   "and numpy")
    for node in nodes(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in IMPURE_CALLS:
            yield (f"{module.path}:{node.lineno} calls {ast.unparse(node.func)}: the optimizer has no files, no clock "
                   "and no output")


def unexplained(module: Module) -> Iterator[str]:
    """Modules that do not open with a sentence."""
    if not (ast.get_docstring(module.tree) or "").strip():
        yield f"{module.path} has no docstring: say what is true here and what it may not do"


def oversized(module: Module) -> Iterator[str]:
    """Functions over 60 lines, files over 600."""
    last = max((n.end_lineno or 0 for n in module.tree.body), default=0)
    if last > 600:
        yield f"{module.path} has {last} lines, at most 600"
    for node in nodes(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= 60:
            length = (node.end_lineno or 0) - node.lineno + 1
            yield f"{module.path}:{node.lineno} {node.name} has {length} lines, at most 60"


def ambiguous(modules: tuple[Module, ...]) -> Iterator[str]:
    """Class names that mean different things in different modules.

    The oracle has its own names, for it shares nothing.
    """
    places = defaultdict(list)
    for module in modules:
        if not module.path.startswith("jobs/verify/"):
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef) and node.name not in TWICE:
                    places[node.name].append(f"{module.path}:{node.lineno}")
    for name, defined in places.items():
        if len(defined) > 1:
            yield f"class {name} is defined in {' and '.join(defined)}: say in its name what each is"


def crowded(modules: tuple[Module, ...]) -> Iterator[str]:
    """Packages of more modules than a reader can keep in mind."""
    sizes = Counter(m.path.rpartition("/")[0] for m in modules if not m.path.endswith("__init__.py"))
    for package, count in sizes.items():
        if package.split("/")[0] in ("optimizer", "jobs") and count > MOST_MODULES:
            yield f"{package} has {count} modules, at most {MOST_MODULES}"
