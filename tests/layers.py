"""The rules of who may import what, as functions from parsed sources to sentences about what breaks them; nothing is imported, only syntax trees are read."""
from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

FLOORS = ("optimizer", "expectations", "jobs", "dags")            # a floor imports itself and what is below it
FRONT, UTILITY = "forebay", "infra"                               # the front stands on all; infra installs, it may use jobs and nothing uses it
OWNERS: Mapping[str, tuple[str, ...]] = {
    "pyspark": ("jobs/engine/spark.py",), "delta": ("jobs/engine/spark.py",), "duckdb": ("jobs/engine/kernel.py",), "deltalake": ("jobs/storage/tables.py",),
    "sqlglot": ("optimizer/sql*.py", "jobs/verify_sql*.py"), "pandas": ("forebay/*.py",), "airflow": ("dags/*.py", "infra/settings/*.py"),
    "mlflow": ("jobs/reports/tracking.py",), "numba": ("jobs/papers/operators/compiled.py",), "great_expectations": ("jobs/reports/data_docs.py",),
    "matplotlib": ("jobs/papers/experiments/*.py", "jobs/reports/tracking_chart.py", "forebay/*.py"),
}
PRELOAD = "infra/settings/airflow_local_settings.py"              # imports for others, and uses nothing of it
PURE = ("__future__", "abc", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools",
        "hashlib", "heapq", "itertools", "json", "logging", "math", "operator", "re", "statistics", "string", "struct", "sys", "textwrap", "types",
        "typing", "unicodedata")
ASKED = (ast.Import, ast.ImportFrom, ast.Call, ast.FunctionDef, ast.AsyncFunctionDef)
IMPURE_CALLS = ("open", "print", "input", "exec", "eval", "datetime.now", "datetime.utcnow", "datetime.today", "date.today", "datetime.datetime.now")


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
    found = (f for folder in (*FLOORS, FRONT, UTILITY) for f in sorted((root / folder).rglob("*.py")))
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


def upward(module: Module) -> Iterator[str]:
    """Imports that go to a higher floor, or to infra."""
    ours = (*FLOORS, FRONT, UTILITY)
    allowed = {**{p: FLOORS[:i + 1] for i, p in enumerate(FLOORS)}, FRONT: (*FLOORS, FRONT), UTILITY: (*FLOORS[:3], UTILITY)}[module.package]
    for name, line in imports(module):
        target = name.split(".")[0]
        if target in ours and target not in allowed:
            yield f"{module.path}:{line} imports {name}: {module.package} may import {', '.join(allowed)}"


def trespassing(module: Module) -> Iterator[str]:
    """Heavy packages outside the files that own them."""
    for name, line in imports(module) if module.path != PRELOAD else ():
        owners = OWNERS.get(name.split(".")[0])
        if owners is not None and not any(fnmatch(module.path, o) for o in owners):
            yield f"{module.path}:{line} imports {name}: only {', '.join(owners)} may"


def impure(module: Module) -> Iterator[str]:
    """In the optimizer: packages that reach files, clocks, chance or processes, and calls that do."""
    if module.package != "optimizer":
        return
    for name, line in imports(module):
        if name.split(".")[0] not in (*PURE, "optimizer", "sqlglot"):
            yield f"{module.path}:{line} imports {name}: the optimizer may import {', '.join(PURE)}, itself and sqlglot"
    for node in nodes(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in IMPURE_CALLS:
            yield f"{module.path}:{node.lineno} calls {ast.unparse(node.func)}: the optimizer has no files, no clock and no output"


def dependent(module: Module) -> Iterator[str]:
    """What recomputes answers shares no code with what plans them: of the optimizer it may know the error type."""
    for name, line in imports(module):
        if fnmatch(module.path, "jobs/verify*.py") and name.startswith("optimizer.") and not name.startswith("optimizer.errors"):
            yield f"{module.path}:{line} imports {name}: verify may import optimizer.errors only"


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
            yield f"{module.path}:{node.lineno} {node.name} has {(node.end_lineno or 0) - node.lineno + 1} lines, at most 60"


def circles(modules: tuple[Module, ...]) -> Iterator[str]:
    """Modules that import each other when they are loaded; an import inside a function waits and makes no circle."""
    names = {m.name for m in modules}
    edges = {m.name: sorted({t for n, _ in _imported(m, _loaded(m.tree)) for t in _targets(n, names)} - {m.name}) for m in modules}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> Iterator[str]:
        if name in path:
            yield " → ".join((*path[path.index(name):], name))
        elif name not in done:
            for target in edges[name]:
                yield from visit(target, (*path, name))
            done.add(name)

    for name in sorted(edges):
        yield from visit(name, ())


def _targets(name: str, names: set[str]) -> Iterator[str]:
    """The module a dotted name is, or lies in; packages only by their own name, since `from package import module` needs nothing of the package."""
    if name in names:
        yield name
    elif name.rpartition(".")[0] in names:
        yield name.rpartition(".")[0]


def _loaded(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is loaded: no function bodies, nothing that only type checkers read."""
    for child in ast.iter_child_nodes(node):
        checked = isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)) and not checked and not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child
            yield from _loaded(child)
