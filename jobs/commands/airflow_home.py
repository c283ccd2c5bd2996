"""What Airflow finds around it: the variables its processes read when they are imported, and a home with a migrated
database; Airflow itself is not imported.

A home's database is a copy of an empty one, which `make install` prepares (`python -m jobs.commands.airflow_home`):
making one takes eight seconds.
"""
from __future__ import annotations

import base64
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from optimizer.errors import failed

ROOT = Path(__file__).resolve().parent.parent.parent
FOREIGN = ("AIRFLOW", "FOREBAY_FAILPOINT")       # of another Airflow, or meant for one process
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
CONFIGURATION = "[core]\nfernet_key = {fernet}\n[api]\nsecret_key = {session}\n[api_auth]\njwt_secret = {token}\n"
PATIENCE = 240          # seconds for a migration, on a busy machine
SHOWN = 2000            # characters of a log in an error


def surroundings(home: Path, pipelines: str, **more: str) -> dict[str, str]:
    """The environment of any of Airflow's processes.

    `pipelines` as FOREBAY_PIPELINES has it; variables in `more` are stronger than those that are set here.
    """
    variables = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{database(home)}",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(ROOT),
        "FOREBAY_PIPELINES": pipelines,
        **QUIET
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**inherited, **variables, **more}


def settle(home: Path) -> None:
    """Makes a home, or brings the database of an older Airflow's up to date.

    Its secrets are its own, and are there before any of its processes.
    """
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)      # Airflow makes its logs readable by all
    if not (home / "airflow.cfg").exists():
        # As Airflow would write it, with a token's secret as long as its algorithm asks for. Several processes that
        # start at once would each write another.
        fernet = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
        keep_secret(home / "airflow.cfg", CONFIGURATION.format(fernet=fernet, session=secrets.token_hex(16),
                                                               token=secrets.token_hex(64)))
    empty = prepare()
    if not database(home).exists():
        shutil.copy(empty, database(home))
        database(home).chmod(0o600)
    elif _revision(database(home)) != _revision(empty):
        _migrate(home)


def prepare() -> Path:
    """The empty database of this environment's Airflow, made if there is none."""
    template = Path(sys.prefix, "share", "forebay", f"airflow-{version('apache-airflow')}.db")
    if not template.exists():
        draft = template.with_name(f"{template.stem}-{os.getpid()}")
        draft.mkdir(parents=True)
        try:
            _migrate(draft)
            os.replace(database(draft), template)
        finally:
            shutil.rmtree(draft)
    return template


def database(home: Path) -> Path:
    return home / "airflow.db"


def _migrate(home: Path) -> None:
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    migration = subprocess.run(command, env=surroundings(home, str(home)), cwd=home, capture_output=True, text=True,
                               timeout=PATIENCE)
    if migration.returncode:
        log = migration.stderr[-SHOWN:]
        raise failed("no-airflow", f"Airflow's database {database(home)} could not be made: {log}",
                     "`make install` mends the environment")
    with closing(sqlite3.connect(database(home))) as there:
        there.execute("PRAGMA wal_checkpoint(TRUNCATE)")      # all of it is in the one file that is copied


def _revision(path: Path) -> str | None:
    with closing(sqlite3.connect(path)) as there:
        try:
            return str(there.execute("SELECT version_num FROM alembic_version").fetchone()[0])
        except (sqlite3.Error, TypeError):
            return None


def keep_secret(path: Path, text: str) -> None:
    """For this machine's user only, from the first byte on."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    prepare()
