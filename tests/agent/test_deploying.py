"""The files by which the agent is deployed: their tools take them, and the agent knows what they say."""

from __future__ import annotations

import argparse
import configparser
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.cli import COMMANDS
from agent.commands import capture, daemon
from agent.config import VARIABLES
from tests.shared import CHECKOUT

FOLDER = CHECKOUT / "packaging"
UNIT = FOLDER / "systemd/rooflight-agent.service"
MANIFESTS = sorted(FOLDER.glob("kubernetes/*.yaml"))
SCRIPTS = sorted(FOLDER.glob("slurm/*.sh"))
PAGE = CHECKOUT / "docs/deploying.md"
#: What torch and NVIDIA's container runtime read, and the two of our own files.
FOREIGN = {
    "KINETO_USE_DAEMON",
    "KINETO_IPC_SOCKET_DIR",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
}
OURS = {*VARIABLES.values(), "ROOFLIGHT_CONFIG", "ROOFLIGHT_JOBS"}


def flags(add: Any) -> set[str]:
    parser = argparse.ArgumentParser()
    add(parser)
    return {option for action in parser._actions for option in action.option_strings}


def unit() -> configparser.ConfigParser:
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment, method-assign]
    found.read_string(UNIT.read_text())
    return found


def of_the_agent() -> Iterator[list[str]]:
    """The arguments of ``rooflight-agent`` wherever it is started."""
    yield unit()["Service"]["ExecStart"].split()[1:]
    spec = yaml.safe_load((FOLDER / "kubernetes/agent.yaml").read_text())["spec"]["template"]["spec"]
    yield spec["containers"][0]["args"]
    text = PAGE.read_text().replace("\\\n", " ")
    for line in re.findall(r"rooflight-agent(?::\S+)? ((?:daemon|capture|doctor)\b[^`\n]*)", text):
        yield line.split()


def test_the_agent_knows_every_flag() -> None:
    started = list(of_the_agent())
    assert [words[0] for words in started].count("daemon") >= 3
    known = {"daemon": flags(daemon.add_arguments), "capture": flags(capture.add_arguments)}
    for command, *rest in started:
        assert command in COMMANDS
        given = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert given <= known.get(command, set()), (command, given)


@pytest.mark.parametrize("file", [UNIT, *MANIFESTS, *SCRIPTS, PAGE], ids=lambda path: path.name)
def test_every_variable_is_read_by_somebody(file: Path) -> None:
    named = set(re.findall(r"\b(?:ROOFLIGHT|KINETO|NVIDIA)_[A-Z_]+\b", file.read_text()))
    assert named <= OURS | FOREIGN


@pytest.mark.systemd
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    program = unit()["Service"]["ExecStart"].split()[0]
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace(program, sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60)
    about_it = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, about_it) == (0, [])


def test_the_units_folders_are_those_of_its_flags() -> None:
    service = unit()["Service"]
    words = service["ExecStart"].split()
    assert words[words.index("--socket-dir") + 1] == f"/run/{service['RuntimeDirectory']}"
    assert "ROOFLIGHT_STATE=/var/lib/" + service["StateDirectory"] in UNIT.read_text()
    # What processes record lies in the host's /tmp.
    assert (service["PrivateTmp"], service["ReadWritePaths"]) == ("no", "/tmp")


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda path: path.name)
def test_every_mount_has_its_volume(file: Path) -> None:
    document = yaml.safe_load(file.read_text())
    spec = document["spec"]
    spec = spec["template"]["spec"] if document["kind"] == "DaemonSet" else spec
    volumes = {volume["name"] for volume in spec["volumes"]}
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    mounted = {mount["name"] for container in containers for mount in container["volumeMounts"]}
    assert mounted == volumes


def test_agent_and_training_share_one_folder() -> None:
    agent, training = (yaml.safe_load(path.read_text()) for path in MANIFESTS)
    pod, container = agent["spec"]["template"]["spec"], training["spec"]["containers"][0]
    folder = {row["name"]: row.get("value") for row in container["env"]}["KINETO_IPC_SOCKET_DIR"]
    args = pod["containers"][0]["args"]
    assert args[args.index("--socket-dir") + 1] == folder
    for spec in (pod, training["spec"]):
        [of_sockets] = [volume for volume in spec["volumes"] if volume["name"] == "sockets"]
        assert of_sockets["hostPath"]["path"] == folder
        mounts = [mount for c in spec["containers"] for mount in c["volumeMounts"]]
        assert {"name": "sockets", "mountPath": folder} in mounts
    assert pod["hostPID"] is True
    assert agent["spec"]["selector"]["matchLabels"] == agent["spec"]["template"]["metadata"]["labels"]
    assert all(c["securityContext"]["readOnlyRootFilesystem"] for c in pod["containers"])
    # Probes ask the port that the flag names.
    port = args[args.index("--metrics") + 1].rpartition(":")[2]
    assert [str(p["containerPort"]) for p in pod["containers"][0]["ports"]] == [port]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_bash_takes_the_script(script: Path) -> None:
    checks = [["bash", "-n", str(script)]]
    if checker := shutil.which("shellcheck"):
        checks.append([checker, str(script)])
    for command in checks:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert os.access(script, os.X_OK)


class Node:
    """A node whose ``systemctl`` writes down what it is asked, and ends with ``status``."""

    def __init__(self, folder: Path, status: int = 0) -> None:
        self.folder, self.asked = folder, folder / "asked"
        self.asked.touch()
        program = folder / "systemctl"
        program.write_text(f'#!/bin/sh\necho "$1" >> {self.asked}\nexit {status}\n')
        program.chmod(0o755)

    def run(self, script: str, job: str) -> list[str]:
        """What was asked up to now, after a job's script, which never fails."""
        told = {"SLURM_JOB_ID": job, "ROOFLIGHT_JOBS": str(self.folder / "jobs")}
        environ = os.environ | told | {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", FOLDER / "slurm" / script], env=environ, capture_output=True)
        assert done.returncode == 0
        return self.asked.read_text().split()


def test_the_agent_stops_with_the_last_job_of_the_node(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.run("prolog.sh", "1")
    assert node.run("prolog.sh", "2") == ["start", "start"]
    assert node.run("epilog.sh", "1") == ["start", "start"], "job 2 still runs"
    assert node.run("epilog.sh", "2") == ["start", "start", "stop"]


def test_a_failing_systemctl_does_not_drain_the_node(tmp_path: Path) -> None:
    node = Node(tmp_path, status=1)
    node.run("prolog.sh", "1")
    assert node.run("epilog.sh", "1") == ["start", "stop"]
