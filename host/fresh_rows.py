"""The computers that `./test fresh` tries, and what it runs on each. Uses only the standard library."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from minimal_roots import MinimalRoot
from native_compiler import LEND
from plain_folder import ROOT
from readme_commands import TESTS, first_commands

CLONE: Final = "OpJoule"
"""Folder of the clone in the user's home."""
GIT: Final = ("git", "-c", "safe.directory=*")
"""Root reads a clone that belongs to another user."""
EARLIER: Final = (("bookworm", "0.1.0", "7fe837f6"), ("trixie", "632d2d2c", "632d2d2c"))
"""Commits whose users get this one with `git pull`: Debian's release, name in the row, commit."""
_SUITES: Final = {"bookworm": "Debian 12", "trixie": "Debian 13"}


@dataclass(frozen=True)
class Step:
    """Commands that run in the clone, in one shell."""

    name: str
    about: str
    script: str
    commit: str = ""
    """Commit that the clone is moved to before it."""
    may_fail: bool = False


@dataclass(frozen=True)
class Row:
    """One computer, and how far it is tried."""

    name: str
    about: str
    root: MinimalRoot
    steps: Callable[[str], list[Step]]
    """Of the commit to try."""
    user: str = "root"

    @property
    def home(self) -> str:
        """Home folder of the user."""
        return "/root" if self.user == "root" else f"/home/{self.user}"


def readme_at(commit: str) -> list[str]:
    """The commands of README.md's first code block at a commit. Raises: ValueError: the commit is not in this clone."""
    shown = subprocess.run([*GIT, "show", f"{commit}:README.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if shown.returncode:
        raise ValueError(f"commit {commit} is not in this clone, and its README.md is needed: git fetch --unshallow")
    return first_commands(shown.stdout)


def whole_steps(commit: str) -> list[Step]:
    """README's commands, the programs for boards with a 32-bit system, then the installed package."""
    boards = Step("boards", "the programs for boards with a 32-bit system, and what their engines store", BOARDS)
    return [*_readme_steps(commit), boards, Step("install", "pip install", INSTALL)]


def _readme_steps(commit: str) -> list[Step]:
    commands = readme_at(commit)
    return [
        Step("tests" if command == TESTS else f"command-{number}", command, command, commit)
        for number, command in enumerate(commands, 1)
    ]


def upgrade_steps(earlier: str) -> Callable[[str], list[Step]]:
    """README's first command at an earlier commit, then all commands of the commit to try in the same clone."""

    def steps(commit: str) -> list[Step]:
        first, *_ = readme_at(earlier)
        return [
            Step("earlier", f"{first} at {earlier}", first, earlier, may_fail=True),
            *_readme_steps(commit),
        ]

    return steps


def emulated_steps(commit: str) -> list[Step]:
    """What an emulated processor is fast enough for: nothing that measures in real time, and not every test."""
    first, *_ = readme_at(commit)
    words = shlex.join(shlex.split(first)[1:])
    return [
        Step("compiler", "the compiler proper of this computer", LEND),
        Step("command-1", f"set-up of {first}", SET_UP.format(words=words), commit),
        Step("loader-tests", "the loader's tests with LevelDB alone", LOADER_TESTS),
        Step("record", "a record of a simulated meter", RECORD),
        Step("report", "the report of the example", REPORT),
    ]


BOARDS: Final = ".venv/bin/python -m pytest -m thorough -k armhf host/tests/loader/test_board_builds.py"
INSTALL: Final = f"""set -e
cd
python3 -m venv elsewhere
elsewhere/bin/pip install --quiet ./{CLONE}
cd {CLONE}
../elsewhere/bin/opjoule runs list
cd
elsewhere/bin/python - <<'END'
import opjoule
run = opjoule.open_run("{CLONE}/runs/example")
energy_j = run.energy(run.phase("run")).energy_j
print(f"{{opjoule.__file__}}: {{energy_j.value:.3f}} J")
assert "elsewhere" in opjoule.__file__ and energy_j.value > 0
END
"""
SET_UP: Final = """set -e
host/measure.py --help >/dev/null
PYTHONPATH=host python3 -c 'import bootstrap; bootstrap.set_up(bootstrap.Needs())'
.venv/bin/python - {words} <<'END'
import sys
import bootstrap
from opjoule.cli import commands
bootstrap.set_up(commands.parse(sys.argv[1:]).needs)
END
"""
LOADER_TESTS: Final = """set -e
apt-get install -q -y --no-install-recommends doctest-dev
cmake -S loader-cpp -B build/loader -DOPJOULE_TESTS=ON
cmake --build build/loader --target loader-tests
build/loader/loader-tests
"""
RECORD: Final = f"""set -e
cd
printf 'time_s,current_a,voltage_v\\n0,0.6,5.0\\n10,0,5.0\\n' > profile.csv
{CLONE}/firmware/sim/rig-sim --elf {CLONE}/.pio/build/uno/firmware.elf --profile profile.csv --pty /tmp/meter \
  --pace 0 --patience-s 600 --truth truth.json &
until test -L /tmp/meter; do kill -0 $!; sleep 0.1; done
status=0
{CLONE}/host/measure.py record --meter serial:/tmp/meter --out trace || status=$?
wait $!
{CLONE}/.venv/bin/python - "$status" <<'END'
import json, sys
import numpy as np
import pyarrow.parquet as pq
assert sys.argv[1] in ("0", "6"), "6: at --pace 0 the meter's clock contradicts this computer's"
power = pq.read_table("trace/power.parquet")
meter_ns, current_a, voltage_v = (power[name].to_numpy() for name in ("meter_ns", "current_a", "voltage_v"))
energy_j = np.trapezoid(current_a * voltage_v, meter_ns * 1e-9)
true_j = json.load(open("truth.json"))["total_j"]
print(f"SIMULATED: {{len(power)}} samples, {{energy_j:.3f}} J, true {{true_j:.3f}} J")
assert abs(energy_j - true_j) < 0.01 * true_j
END
"""
REPORT: Final = """set -e
host/measure.py report runs/example
test -s runs/example/report.html
"""


def _rows() -> list[Row]:
    rows = []
    for suite, debian in _SUITES.items():
        for user, about in (("root", "as root"), ("user", "as a user with sudo")):
            root = MinimalRoot(suite, "amd64")
            rows.append(Row(f"{suite}-{user}", f"{debian} amd64, {about}", root, whole_steps, user))
    for suite, debian in _SUITES.items():
        about = f"{debian} arm64 (a Raspberry Pi as host), emulated"
        rows.append(Row(f"{suite}-arm64", about, MinimalRoot(suite, "arm64"), emulated_steps))
    for suite, version, commit in EARLIER:
        about = f"{_SUITES[suite]} amd64, a clone that was set up at {version}"
        rows.append(Row(f"{suite}-from-{version}", about, MinimalRoot(suite, "amd64"), upgrade_steps(commit)))
    return rows


ROWS: Final = tuple(_rows())
