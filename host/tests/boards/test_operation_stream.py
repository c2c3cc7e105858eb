"""The program that generates the operations, and the one that carries them to the board."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from opjoule.base.errors import RigFault
from opjoule.boards.runner import OperationStream


def test_a_generator_whose_carrier_does_not_start_is_ended(tmp_path: Path, monkeypatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*arguments, **options) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(RigFault, match="cannot start /no/such/carrier: No such file"):
        OperationStream(["sleep", "60"], ["/no/such/carrier"], tmp_path / "raw/log")
    [generator] = started
    assert generator.returncode == -signal.SIGKILL
