"""docker-compose.yml and Dockerfile hold together, and with what our programs really take.

No container engine runs here, so what an engine would refuse is checked against a schema of our own, and
what it would only find at run time against the programs and files themselves.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import rooflight
from tests.shared import CHECKOUT

COMPOSE = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
SCHEMA = json.loads((CHECKOUT / "tests/data/compose.schema.json").read_text())
# A line that ends in a backslash goes on.
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text().replace("\\\n", " ")
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|DATABASE")


@cache
def help_of(*command: str) -> str:
    """What ``PROGRAM COMMAND --help`` prints; fails when there is no such command."""
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run([program, *command[1:], "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def instructions(name: str) -> list[str]:
    """The arguments of every instruction ``name`` of the Dockerfile."""
    return re.findall(rf"^{name}\s+(.+)$", DOCKERFILE, re.MULTILINE)


def stages() -> dict[str, str]:
    """Name and text of each build stage."""
    parts = re.split(r"^FROM\s+(\S+)\s+AS\s+(\S+)\n", DOCKERFILE, flags=re.MULTILINE)
    return dict(zip(parts[2::3], parts[3::3], strict=True))


def test_the_file_is_what_the_format_allows() -> None:
    jsonschema.validate(COMPOSE, SCHEMA)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"comand": ["serve"]},
        {"ports": ["8585"]},
        {"depends_on": {"db": {"condition": "healthy"}}},
        {"image": "postgres"},
        {"environment": {"A": 1}},
    ],
    ids=lambda s: next(iter(s)),
)
def test_the_schema_refuses_what_an_engine_would(spoiled: dict[str, Any]) -> None:
    broken = COMPOSE | {"services": SERVICES | {"db": SERVICES["db"] | spoiled}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


def test_the_parts_of_the_product_are_there() -> None:
    assert {"db", "server", "worker", "agent"} <= SERVICES.keys()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_for_what_can_happen(name: str) -> None:
    for other, how in SERVICES[name].get("depends_on", {}).items():
        assert other in SERVICES
        if how["condition"] == "service_completed_successfully":
            # One that is started again for ever never completes.
            assert SERVICES[other].get("restart", "no") == "no"
        if how["condition"] == "service_healthy":
            own = SERVICES[other].get("healthcheck", {})
            in_image = "HEALTHCHECK" in stages().get(SERVICES[other].get("build", {}).get("target"), "")
            assert "test" in own or (in_image and not own.get("disable"))


def test_no_service_waits_for_itself() -> None:
    done: set[str] = set()
    while ready := {n for n, s in SERVICES.items() if n not in done and set(s.get("depends_on", {})) <= done}:
        done |= ready
    assert done == set(SERVICES)


def test_every_volume_is_declared_and_used() -> None:
    used = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


def test_what_a_worker_analyses_is_what_the_server_stored() -> None:
    for service in ("server", "worker"):
        assert "data:/data" in SERVICES[service]["volumes"]
        assert SERVICES[service]["environment"]["ROOFLIGHT_DATA"] == "/data"
    databases = {
        SERVICES[name]["environment"]["ROOFLIGHT_DATABASE"]
        for name in ("server", "worker", "migrate", "token")
    }
    assert len(databases) == 1


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_is_written_down(name: str) -> None:
    for key, value in SERVICES[name].get("environment", {}).items():
        if SECRET.search(key):
            # ${NAME:?why}: compose refuses to start without it.
            assert re.search(r"\$\{[A-Z_]+:\?[^}]+\}", value), key


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_the_loopback_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", []))


def test_the_published_port_is_the_one_the_server_listens_on() -> None:
    from app.settings import Settings

    (port,) = SERVICES["server"]["ports"]
    assert port.split(":")[2] == str(Settings.model_fields["port"].default)
    assert instructions("EXPOSE") == [port.split(":")[2]]


@pytest.mark.parametrize("name", SERVICES)
def test_every_setting_is_one_that_our_programs_read(name: str) -> None:
    from agent.config import VARIABLES
    from app.settings import Settings

    known = {f"ROOFLIGHT_{field.upper()}" for field in Settings.model_fields} | set(VARIABLES.values())
    seen = {key for key in SERVICES[name].get("environment", {}) if key.startswith("ROOFLIGHT_")}
    assert seen <= known


def our_calls() -> list[tuple[str, ...]]:
    """Every call of our console scripts in both files, as words."""
    calls: list[tuple[str, ...]] = []
    for service in SERVICES.values():
        command = service.get("command", [])
        if service.get("entrypoint") is None and service.get("build", {}).get("target") == "server":
            calls.append(("rooflight-server", *command))
        shell = command[0] if service.get("entrypoint") else ""
        calls += [
            tuple(line.split()) for line in re.findall(r"^\s*(rooflight-\w+ [^>|;\n]+)", shell, re.MULTILINE)
        ]
    programs = [json.loads(text)[0] for text in instructions("ENTRYPOINT")]
    commands = [json.loads(text) for text in instructions("CMD")]
    return calls + [(p, *c) for p, c in zip(programs, commands, strict=True)]


def test_all_calls_are_seen() -> None:
    # migrate, token, server, worker; the agent's two; the two default commands of the images.
    assert len(our_calls()) == 8


@pytest.mark.parametrize("call", our_calls(), ids=" ".join)
def test_a_call_is_one_that_the_program_takes(call: tuple[str, ...]) -> None:
    words = [word for word in call[1:] if word != "--help"]
    path = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
    text = help_of(call[0], *path)
    for flag in (word for word in words if word.startswith("--")):
        assert re.search(rf"{flag}\b", text), f"{flag} of {' '.join(call)}"


def test_the_images_carry_the_version_of_the_product() -> None:
    ours = {s["image"] for s in SERVICES.values() if "build" in s}
    assert ours == {f"rooflight-server:{rooflight.__version__}", f"rooflight-agent:{rooflight.__version__}"}


@pytest.mark.parametrize("name", [n for n, s in SERVICES.items() if "build" in s])
def test_a_build_target_is_a_stage(name: str) -> None:
    assert SERVICES[name]["build"]["target"] in stages()


def test_an_image_ends_as_a_user_without_rights() -> None:
    for name in ("server", "agent"):
        users = re.findall(r"^USER\s+(\S+)", stages()[name], re.MULTILINE)
        assert users[-1:] == ["rooflight"]


def test_what_the_images_copy_is_there_and_sent_to_the_builder() -> None:
    sent = [
        line[1:] for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    sources = [word for line in instructions("COPY") for word in line.split()[:-1]]
    assert sources
    for source in sources:
        name = source.removeprefix("./")
        assert (CHECKOUT / name).exists(), name
        assert any(fnmatch(name, pattern) for pattern in sent), f"{name} is kept back by .dockerignore"
