"""The container files, as far as they can be held without an engine: what they copy, call and mount exists, nothing is
unpinned, only this machine listens.
"""
from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import connect

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "infra" / "containers"
COMPOSE: dict[str, Any] = yaml.safe_load((HERE / "compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
TEXT = (HERE / "compose.yml").read_text()
SAID = ("infra/containers/compose.yml", "infra/up.py", "jobs/commands/airflow_home.py", "docs/deploy.md",
        "docs/airflow.md")


def test_every_value_is_given_or_demanded() -> None:
    """No password has a default."""
    used = set(re.findall(r"\$\{([A-Z_]+)(:[-?])?", TEXT))
    assert all(how for _, how in used)
    demanded = {name for name, how in used if how == ":?"}
    example = dict(
        line.split("=", 1)
        for line in (HERE / "example.env").read_text().splitlines()
        if line and not line.startswith("#"))
    assert demanded <= set(example) and not any(example[name] for name in demanded)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_calls_what_is_there(name: str) -> None:
    service = SERVICES[name]
    image = service["image"]
    assert image.startswith("forebay:") or re.search(r":\d+\.\d+", image), "an image is pinned"
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert set(service.get("depends_on", {})) <= set(SERVICES)
    if image.startswith("forebay:"):
        program, *rest = service["command"]
        assert shutil.which(program, path=str(Path(sys.executable).parent))
        assert rest[0] != "-m" or (ROOT / (rest[1].replace(".", "/") + ".py")).exists()


def test_a_scheduler_whose_worker_was_killed_ends_and_is_started_anew() -> None:
    """Airflow's own would wait for ever for the lock that the worker held."""
    module, _, name = COMPOSE["x-forebay"]["environment"]["AIRFLOW__CORE__EXECUTOR"].partition(".")
    assert f"class {name}(" in (ROOT / "infra" / "settings" / f"{module}.py").read_text()
    assert "/opt/forebay/infra/settings" in (
        HERE / "Containerfile").read_text() and SERVICES["scheduler"]["restart"] == "unless-stopped"


def test_volumes_and_files_are_there() -> None:
    mounts = [v.rpartition(":")[0] if v.endswith(":ro") else v for s in SERVICES.values() for v in s.get("volumes", [])]
    named = {m.split(":")[0] for m in mounts if re.match(r"[a-z]+:", m)}
    assert named == set(COMPOSE["volumes"])
    assert all((HERE / m.split(":")[0]).exists() for m in mounts if m.startswith("./"))


def test_the_image_is_made_of_what_is_there() -> None:
    text = (HERE / "Containerfile").read_text()
    assert re.search(r"^FROM \S+:\d+\.\d+\.\d+-\S+$", text,
                     re.M) and (HERE / "requirements.lock").read_text().count("--hash=") > 10
    python = re.search(r"python:(\d+\.\d+)", text)
    assert python is not None and f"{python[1]}" in ("3.11", "3.12")
    assert all((ROOT / path).exists() for path in re.findall(r"-r (\S+)", text))
    assert "USER forebay" in text.split("COPY")[0], "nothing of ours runs as root"


def test_the_server_s_command_has_delta_and_the_address() -> None:
    command = connect.command("0.0.0.0", 15002, "local[*]")
    assert "delta" in command[command.index("--jars") + 1] and "spark.connect.grpc.binding.port=15002" in command
    assert command[command.index("--class") + 1] == connect.SERVER and Path(command[0]).exists()


def airflow_s_options() -> set[str]:
    """As environment variables; read from its own description of them, without importing it."""
    spec = importlib.util.find_spec("airflow")
    assert spec is not None and spec.origin is not None
    with open(Path(spec.origin).parent / "config_templates" / "config.yml", encoding="utf-8") as file:
        described = yaml.load(file, yaml.CSafeLoader)
    return {
        f"AIRFLOW__{section}__{option}".upper() for section, said in described.items() for option in said["options"]
    }


@pytest.mark.slow
def test_what_airflow_is_told_are_options_that_it_has() -> None:
    """A name that it does not know would be passed over in silence."""
    said = {name: set(re.findall(r"AIRFLOW__\w+", (ROOT / name).read_text())) for name in SAID}
    assert all(said.values())
    assert {name: found - airflow_s_options() for name, found in said.items()} == dict.fromkeys(SAID, set())


def test_notes_name_what_is_there() -> None:
    """Of Kubernetes and managed Spark, too: modules, files, our variables and the options of our commands."""
    text = (ROOT / "docs" / "deploy.md").read_text()
    code = "".join(p.read_text() for folder in ("dags", "infra", "jobs") for p in (ROOT / folder).rglob("*.py")) + TEXT
    assert all(
        (ROOT / (module.replace(".", "/") + ".py")).exists() for module in re.findall(r"python -m ([\w.]+)", text))
    assert all((ROOT / path).exists() for path in re.findall(r"`(infra/[\w/.]+|tests/[\w/.]+)`", text))
    assert all(re.search(rf"\b{name}\b", code) for name in re.findall(r"`(FOREBAY_\w+)", text))
    assert all((ROOT / "docs" / link).exists() for link in re.findall(r"\]\(([\w.-]+\.md)\)", text))
    asked = re.search(r"python -m infra\.connect ((?:--\w+ \S+ ?)+)", text)
    assert asked is not None and set(re.findall(r"--\w+", asked[1])) <= set(
        re.findall(r"--\w+", (ROOT / "infra" / "connect.py").read_text()))
