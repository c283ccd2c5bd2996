"""Airflow, MLflow, data docs and a warm Spark Connect server on 127.0.0.1, each a process in a session of its own; only
what a pid file of ours names is ended.

Everything they write is in `.forebay/up`, or where FOREBAY_UP says: Airflow's home, MLflow's database, logs, pid files,
a pipeline to begin with.
"""
from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from infra import connect
from jobs.commands import airflow_api as rest
from jobs.commands.airflow_home import ROOT, keep_secret, settle, surroundings
from jobs.engine.spark import TOKEN, UP
from jobs.pipeline.folders import SETTING, found
from jobs.storage.lock import held
from optimizer.errors import ForebayError

PLACE = UP.parent
SETTINGS = ROOT / "infra" / "settings"
BIN = Path(sys.executable).parent
HERE = "127.0.0.1"
PATIENCE = 120.0            # seconds until everything answers
LOOK = 1.0                  # seconds between two looks of the keeper
POOLS_LOOK = 30.0           # and between two of its looks for new pipelines, as often as Airflow looks for them
KEEPER = "keeper"
# Airflow's own values are for many machines: minutes until a lost task is noticed, a second between two tasks of a run
SOON = {
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "5",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",
    "AIRFLOW__CORE__EXECUTOR": "forebay_executor.KeptExecutor",  # in infra/settings
    # a task whose pipes close before its process ends is not noticed until then: 5 s as Airflow has it
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
}
PREFERRED = {"airflow": 8080, "mlflow": 5000, "pages": 8090, "spark": 15002}
# held while ports are chosen but not yet listened on
TAKING = os.path.join(tempfile.gettempdir(), f"forebay-up-{os.getuid()}")


@dataclass(frozen=True)
class Service:
    """A child process; `ready` says whether it serves."""

    name: str
    command: tuple[str, ...]
    ready: Callable[[], bool]


def up() -> int:
    """Starts what is not running, waits until all of it answers, says where it is."""
    if (running := [n for n in _names() if _alive(n)]):
        print(f"forebay: {', '.join(running)} are running already; `make down` ends them", file=sys.stderr)
        return 1
    began = time.monotonic()
    _close_to_others()
    (PLACE / "log").mkdir(exist_ok=True)
    for old in (PLACE / "log").glob("*.log"):
        old.unlink()
    with held(TAKING, PATIENCE):
        ports = {name: _free(port) for name, port in PREFERRED.items()}
        environment, password, services = _environment(ports, secrets.token_urlsafe(32)), _password(), _services(ports)
        _prepare(environment)
        for service in services:
            _start(service, environment)
        late = _wait(services, time.monotonic() + PATIENCE)
    for name in late:
        end = "\n".join(_log(name).read_text(errors="replace").splitlines()[-15:])
        print(f"forebay: {name} does not answer; the end of {_log(name)}:\n{end}\n", file=sys.stderr)
    if late:
        return down() or 1
    _pools(ports, environment[SETTING], set())
    where = _where(ports, environment, password)
    keep_secret(UP, json.dumps(where))
    _start(Service(KEEPER, (sys.executable, "-m", "infra.up", "keep", json.dumps(ports)), lambda: True), environment)
    print(
        f"Airflow   {where['airflow']}    user admin, password {password}\n"
        f"Pages     {where['pages']}    every pipeline's data docs, and the way to its charts\n"
        f"MLflow    {where['mlflow']}\n"
        f"Spark     {where['spark']}    for whoever has {TOKEN}, `token` in {UP}\n"
        f"Pipelines {where['pipelines']}\n\n"
        f"All of it answered after {time.monotonic() - began:.0f} s. `make down` ends it; logs are in {PLACE / 'log'}.")
    return 0


def _close_to_others() -> None:
    """Only this user may look into it, whatever modes Airflow and MLflow give their files: logs and databases hold rows
    and passwords.

    A umask would be stronger, and would also close warehouses that a team shares.
    """
    PLACE.mkdir(parents=True, exist_ok=True)
    PLACE.chmod(0o700)


def keep(ports: Mapping[str, int]) -> None:
    """Starts again whichever service has ended, and makes the pools of pipelines that come, until `down` ends this."""
    services, pooled, looked = _services(ports), set[str](), time.monotonic()
    while True:
        time.sleep(LOOK)
        for name in _revived(services, os.environ):
            print(f"{name} had ended and is started again", flush=True)
        if time.monotonic() > looked + POOLS_LOOK:
            with suppress(OSError, ForebayError):      # Airflow may be the one that is started again
                pooled, looked = _pools(ports, os.environ[SETTING], pooled), time.monotonic()


def _revived(services: list[Service], environment: Mapping[str, str]) -> list[str]:
    """What is left of one that has ended would hold its port."""
    ended = [s for s in services if not _alive(s.name)]
    for service in ended:
        for left in _session(service.name):
            with suppress(psutil.NoSuchProcess):
                left.kill()
        _start(service, environment)
    return [s.name for s in ended]


def down() -> int:
    """Ends what `up` started, the keeper first, and nothing else: a pid that now belongs to another process is left
    alone.
    """
    running = sorted((n for n in _names() if _alive(n)), key=lambda n: n != KEEPER)
    if running[:1] == [KEEPER]:
        _end(_session(KEEPER))
    _end([p for n in running for p in _session(n)])
    for name in _names():
        (PLACE / f"{name}.pid").unlink()
    print(f"ended: {', '.join(n for n in running if n != KEEPER) or 'nothing was running'}")
    return 0


def _end(ours: list[psutil.Process]) -> None:
    for process in ours:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(ours, timeout=15)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=5)


def _where(ports: Mapping[str, int], environment: Mapping[str, str], password: str) -> dict[str, str]:
    """For people, and in where.json for programs."""
    web = {name: f"http://{HERE}:{ports[name]}" for name in ("airflow", "pages", "mlflow")}
    return {
        **web, "spark": environment["FOREBAY_MASTER"],
        "token": environment[TOKEN],
        "pipelines": environment[SETTING],
        "user": "admin",
        "password": password
    }


def _environment(ports: Mapping[str, int], token: str) -> dict[str, str]:
    """`token`: Spark Connect answers only who has it, since it runs any code as its owner."""
    airflow = f"http://{HERE}:{ports['airflow']}"
    settings = {
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__API__HOST": HERE,
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{airflow}/execution/",
        "AIRFLOW__API__PORT": str(ports["airflow"]),
        "AIRFLOW__API__BASE_URL": airflow,
        **SOON, "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{SETTINGS}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": HERE,
        "FOREBAY_POOLS": "on",
        "FOREBAY_MASTER": f"sc://localhost:{ports['spark']}",
        TOKEN: token,
        "MLFLOW_TRACKING_URI": f"http://{HERE}:{ports['mlflow']}",
        "FOREBAY_PAGES": f"http://{HERE}:{ports['pages']}",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    named = os.environ.get(SETTING, str(PLACE / "pipelines")).split(os.pathsep)
    return surroundings(PLACE / "airflow", os.pathsep.join(os.path.abspath(os.path.expanduser(n)) for n in named),
                        **settings)


def _prepare(environment: Mapping[str, str]) -> None:
    """Airflow's home, and a pipeline to look at where none is named."""
    settle(PLACE / "airflow")
    if environment[SETTING] == str(PLACE / "pipelines") and not (PLACE / "pipelines" / "shop").exists():
        command = [sys.executable, "-m", "forebay.cli", "init", str(PLACE / "pipelines" / "shop")]
        example = subprocess.run(command, env=dict(environment), cwd=ROOT, capture_output=True, text=True, timeout=180)
        if example.returncode:
            raise SystemExit(f"forebay: no example could be made:\n{example.stderr[-2000:]}")


def _pools(ports: Mapping[str, int], pipelines: str, with_pool: set[str]) -> set[str]:
    """A pool a pipeline, without which Airflow never schedules it; gives the pipelines there are."""
    names = {f.name for f in found(pipelines) if f.pipeline}
    if names - with_pool:
        server = rest.login(f"http://{HERE}:{ports['airflow']}", "admin", _password())
        for name in sorted(names - with_pool):
            rest.pool(server, f"forebay__{name}")
    return names


def _services(ports: Mapping[str, int]) -> list[Service]:
    airflow, mlflow = f"http://{HERE}:{ports['airflow']}", f"http://{HERE}:{ports['mlflow']}"
    store = (f"sqlite:///{PLACE / 'mlflow.db'}", "--artifacts-destination", str(PLACE / "artifacts"))
    return [
        Service("spark", connect.command(HERE, ports["spark"]), lambda: _open(ports["spark"])),
        Service("mlflow", (str(BIN / "mlflow"), "server", "--backend-store-uri", *store, "--host", HERE, "--port",
                           str(ports["mlflow"]), "--workers", "1"), lambda: _get(f"{mlflow}/health") is not None),
        Service("api-server",
                (str(BIN / "airflow"), "api-server", "--host", HERE, "--port", str(ports["airflow"]), "--workers", "1"),
                lambda: _get(f"{airflow}/api/v2/monitor/health") is not None),
        Service("scheduler", (str(BIN / "airflow"), "scheduler", "--skip-serve-logs"),
                lambda: _healthy(airflow, "scheduler")),
        Service("dag-processor", (str(BIN / "airflow"), "dag-processor"), lambda: _healthy(airflow, "dag_processor")),
        Service("pages", (sys.executable, "-m", "infra.pages", "--host", HERE, "--port", str(ports["pages"])),
                lambda: _open(ports["pages"])),
    ]


def _start(service: Service, environment: Mapping[str, str]) -> None:
    # what the one before ended with stays
    number = os.open(_log(service.name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(number, "a", encoding="utf-8") as log:
        child = subprocess.Popen(service.command, env=dict(environment), cwd=PLACE, stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=log, start_new_session=True)
    (PLACE / f"{service.name}.pid").write_text(f"{child.pid} {_born(child.pid)}")


def _wait(services: list[Service], deadline: float) -> list[str]:
    """The names of those that do not answer in time, or have ended."""
    waiting = list(services)
    while waiting and time.monotonic() < deadline and all(_alive(s.name) for s in waiting):
        time.sleep(0.5)
        waiting = [s for s in waiting if not s.ready()]
    return [s.name for s in waiting]


def _password() -> str:
    """Made once, for this machine's user only."""
    path = PLACE / "airflow" / "simple_auth_manager_passwords.json.generated"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        keep_secret(path, json.dumps({"admin": secrets.token_urlsafe(12)}))
    return str(json.loads(path.read_text())["admin"])


def _names() -> list[str]:
    return sorted(p.stem for p in PLACE.glob("*.pid"))


def _alive(name: str) -> bool:
    """Whether the process that was started is there: numbers are used again, with another time of birth."""
    pid, born = (PLACE / f"{name}.pid").read_text().split()
    return _born(int(pid)) == born


def _born(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.NoSuchProcess:
        return ""


def _session(name: str) -> list[psutil.Process]:
    """The processes of a service: its leader's session, which also holds what the leader left behind."""
    leader = int((PLACE / f"{name}.pid").read_text().split()[0])
    return [
        process for process in psutil.process_iter()
        if _in_session(process.pid, leader) and process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    ]


def _in_session(pid: int, leader: int) -> bool:
    try:
        return os.getsid(pid) == leader
    except (ProcessLookupError, PermissionError):
        return False


def _free(port: int) -> int:
    """This one, or any other that is free."""
    for wanted in (port, 0):
        with socket.socket() as probe:
            # one that was just left is free, one that is listened on is not
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HERE, wanted))
                return int(probe.getsockname()[1])
            except OSError:
                continue
    raise SystemExit("forebay: no port is free")


def _open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HERE, port)) == 0


def _get(url: str) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, OSError):
        return None


def _healthy(airflow: str, part: str) -> bool:
    health = _get(f"{airflow}/api/v2/monitor/health")
    return health is not None and json.loads(health).get(part, {}).get("status") == "healthy"


def _log(name: str) -> Path:
    return PLACE / "log" / f"{name}.log"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["keep", settings]:
            keep(json.loads(settings))
        case ["down"]:
            sys.exit(down())
        case _:
            sys.exit(up())
