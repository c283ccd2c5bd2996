"""The container files, as far as they can be held without an engine: what they copy, call and mount exists, nothing is unpinned, only this machine listens."""
from __future__ import annotations

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


def test_every_value_is_given_or_demanded() -> None:
    """No password has a default."""
    used = set(re.findall(r"\$\{([A-Z_]+)(:[-?])?", TEXT))
    assert all(how for _, how in used)
    demanded = {name for name, how in used if how == ":?"}
    example = dict(line.split("=", 1) for line in (HERE / "example.env").read_text().splitlines() if line and not line.startswith("#"))
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


def test_volumes_and_files_are_there() -> None:
    mounts = [v.rpartition(":")[0] if v.endswith(":ro") else v for s in SERVICES.values() for v in s.get("volumes", [])]
    named = {m.split(":")[0] for m in mounts if re.match(r"[a-z]+:", m)}
    assert named == set(COMPOSE["volumes"])
    assert all((HERE / m.split(":")[0]).exists() for m in mounts if m.startswith("./"))


def test_the_image_is_made_of_what_is_there() -> None:
    text = (HERE / "Containerfile").read_text()
    assert re.search(r"^FROM \S+:\d+\.\d+\.\d+-\S+$", text, re.M) and (HERE / "requirements.lock").read_text().count("--hash=") > 10
    python = re.search(r"python:(\d+\.\d+)", text)
    assert python is not None and f"{python[1]}" in ("3.11", "3.12")
    assert all((ROOT / path).exists() for path in re.findall(r"-r (\S+)", text))
    assert "USER forebay" in text.split("COPY")[0], "nothing of ours runs as root"


def test_the_server_s_command_has_delta_and_the_address() -> None:
    command = connect.command("0.0.0.0", 15002, "local[*]")
    assert "delta" in command[command.index("--jars") + 1] and "spark.connect.grpc.binding.port=15002" in command
    assert command[command.index("--class") + 1] == connect.SERVER and Path(command[0]).exists()
