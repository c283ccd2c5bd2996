"""What `make down` ends is what `make up` started, with its children, and nothing that later got the same number."""
from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from infra import up
from jobs.engine.spark import TOKEN


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "PLACE", tmp_path)
    (tmp_path / "log").mkdir()


@pytest.mark.slow
def test_a_service_ends_with_its_children(tmp_path: Path) -> None:
    up._start(up.Service("sleeper", ("/bin/sh", "-c", "sleep 600 & sleep 600"), lambda: True),
              {"PATH": "/bin:/usr/bin"})
    leader = int((tmp_path / "sleeper.pid").read_text().split()[0])
    while len(family := up._session("sleeper")) < 3:
        assert up._alive("sleeper")
    assert up.down() == 0
    assert up._born(leader) == "" and not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family)
    assert list(tmp_path.glob("*.pid")) == []


@pytest.mark.slow
def test_a_service_that_ended_is_started_again_without_what_it_left(tmp_path: Path) -> None:
    service = up.Service("sleeper", ("/bin/sh", "-c", "sleep 600 & sleep 600"), lambda: True)
    up._start(service, {"PATH": "/bin:/usr/bin"})
    first = int((tmp_path / "sleeper.pid").read_text().split()[0])
    while len(family := up._session("sleeper")) < 3:
        assert up._alive("sleeper")
    assert up._revived([service], {"PATH": "/bin:/usr/bin"}) == []
    psutil.Process(first).kill()
    while up._alive("sleeper"):
        pass
    assert up._revived([service], {"PATH": "/bin:/usr/bin"}) == ["sleeper"] and up._alive("sleeper")
    psutil.wait_procs(family, timeout=5)
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family)
    assert up.down() == 0


def test_a_process_that_got_the_number_later_is_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        (tmp_path / "scheduler.pid").write_text(f"{other.pid} 1.00")
        assert up.down() == 0
        assert other.poll() is None and list(tmp_path.glob("*.pid")) == []
    finally:
        other.kill()
        other.wait()


def test_a_port_that_is_taken_is_not_used() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert up._free(port) != port


def test_only_this_user_may_look_at_what_it_writes(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    up._close_to_others()
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    up._start(up.Service("brief", ("/bin/true",), lambda: True), {"PATH": "/bin:/usr/bin"})
    assert (tmp_path / "log/brief.log").stat().st_mode & 0o777 == 0o600


def test_the_token_of_spark_is_on_no_command_line() -> None:
    ports = {name: i for i, name in enumerate(up.PREFERRED, 1)}
    environment, services = up._environment(ports, "a-token"), up._services(ports)
    assert environment[TOKEN] == "a-token" and up._where(ports, environment, "p")["token"] == "a-token"
    assert not [s.name for s in services if "a-token" in " ".join(s.command)
                ] and "a-token" not in environment["FOREBAY_MASTER"]
    assert environment[
        "FOREBAY_MASTER"] == "sc://localhost:4", "without TLS Spark's client sends a token to this name only"


def test_nothing_listens_for_other_machines() -> None:
    """Airflow's server of logs has no setting for its address."""
    commands = {s.name: s.command for s in up._services({name: 1 for name in up.PREFERRED})}
    assert "--skip-serve-logs" in commands["scheduler"] and "0.0.0.0" not in str(commands)
