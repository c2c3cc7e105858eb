"""Which folder of the C++ code may include which, and how long its files and functions may be."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = re.compile(r'(?m)^\s*#include "([^"]+)"')
LOADER = {
    "include": {"include"},
    "board": {"include"},
    ".": {"include", "board"},
    "oplog": {"include", "board"},
    "databases": {"include"},
    "workload": {"include", "board", "oplog"},
    "processes": {"include", "board"},
    "probe": {"include", "board", "processes"},
    "medium-sim": {"include", "board", "processes"},
    "cli": {"include", "board", "oplog", "workload"},
    "programs": {"include", "board", "cli", "probe", "medium-sim"},
}
"""Folder of loader-cpp -> those whose headers it may include beside its own; '.' has the sources of include/."""
FIRMWARE = {
    "lib/protocol": set(),
    "lib/clock": set(),
    "lib/faults": {"lib/protocol", "lib/clock"},
    "lib/sensor": {"lib/protocol", "lib/clock"},
    "lib/sampling": {"lib/protocol", "lib/clock", "lib/faults", "lib/sensor"},
    "lib/link": {"lib/protocol", "lib/clock", "lib/faults", "lib/sampling"},
    "lib/meter": {"lib/protocol", "lib/clock", "lib/faults", "lib/sensor", "lib/sampling", "lib/link"},
    "src": {"lib/protocol", "lib/clock", "lib/faults", "lib/sensor", "lib/sampling", "lib/link", "lib/meter"},
    "sim/signal": {"sim"},
    "sim/sensors": {"sim", "sim/signal"},
    "sim/mcu": {"sim", "sim/signal", "sim/sensors"},
    "sim/link": {"sim", "sim/signal", "sim/mcu"},
    "sim": {"sim/signal", "sim/sensors", "sim/mcu", "sim/link"},
}
"""The same for firmware. Only src/ and sim/ know hardware: lib/ is built on a desktop, too."""
HARDWARE = re.compile(r"(?m)^\s*#include <(Arduino\.h|Wire\.h|avr/)")
GUARDED = {"interrupt_lock.h"}
"""With a branch for a desktop."""
LONGEST_FILE, LONGEST_FUNCTION = 400, 60
GENERATED = {"firmware/lib/protocol/src/messages.h"}


def sources(top):
    """The C++ files that git knows below `top`, tests and benchmarks left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", top],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    files = [ROOT / path for path in listed if path.endswith((".cc", ".cpp", ".h"))]
    skipped = {"tests", "test", "bench", "platformio"}
    return [path for path in files if path.is_file() and not skipped & set(path.relative_to(ROOT).parts)]


def folder_of(path, folders):
    """The longest of `folders` that `path`, relative to their top, lies in; '.' where none is."""
    inside = [folder for folder in folders if path.as_posix().startswith(folder + "/")]
    return max(inside, key=len, default="." if "." in folders else "")


def crossings(layers, folder, included):
    """The folders of `included` that `folder` must not include."""
    return sorted(set(included) - layers[folder] - {folder})


def against_layers(top, layers, headers):
    """Lines `file includes header`, for each include that the layers do not allow."""
    lines = []
    for path in sources(top):
        relative = path.relative_to(ROOT / top)
        folder = folder_of(relative, layers)
        for header in INCLUDE.findall(path.read_text()):
            of = headers(relative, header)
            if of is not None and crossings(layers, folder, [of]):
                lines.append(f"{top}/{relative} includes {header}")
    return lines


def loader_header(_, header):
    return "include" if header.startswith("loader/") else folder_of(Path(header), LOADER)


def firmware_header(relative, header):
    beside = (ROOT / "firmware" / relative).parent / header
    below = [ROOT / "firmware" / folder for folder in ("sim", "src", "src/arduino")]
    libraries = (ROOT / "firmware/lib").glob("*/src")
    for place in (beside, *(folder / header for folder in (*libraries, *below))):
        if place.is_file():
            return folder_of(place.resolve().relative_to(ROOT / "firmware"), FIRMWARE)
    return None


def functions(text):
    """(first line, number of lines) of the function bodies of a file, as clang-format lays them out."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        begin = re.match(r"( *)(:? ?)[^ /#}:].*\{$", line)
        if not begin or re.search(r"\]\(|\[[^]]*\] \{|= [\[{]", line):
            continue
        if re.match(r" *(template.*> )?(namespace|class|struct|union|enum|extern|typedef)\b", line):
            continue
        # A constructor's initialisers stand four columns to the right of its closing brace.
        indent = len(begin.group(1)) - (4 if begin.group(2) else 0)
        if indent in (0, 2):
            end = next((at for at in range(start, len(lines)) if lines[at] == " " * indent + "}"), start)
            yield line.strip(), end - start + 1


def too_long(path, text):
    name = path.relative_to(ROOT).as_posix()
    length = len(text.splitlines())
    faults = [f"{name}: {length} lines"] if length > LONGEST_FILE else []
    return faults + [f"{name}: {first}: {count} lines" for first, count in functions(text) if count > LONGEST_FUNCTION]


def test_the_loader_and_the_probe_include_downwards_only():
    assert against_layers("loader-cpp", LOADER, loader_header) == []


def test_the_firmware_and_the_simulator_include_downwards_only():
    assert against_layers("firmware", FIRMWARE, firmware_header) == []


@pytest.mark.parametrize(
    ("folder", "header"),
    [
        ("probe", "workload/settings.h"),
        ("board", "workload/operation.h"),
        ("databases", "board/clock.h"),
        ("workload", "databases/shared/gate.h"),
        ("cli", "programs/loader_words.h"),
    ],
)
def test_an_include_across_the_layers_is_found(folder, header):
    assert crossings(LOADER, folder, [loader_header(None, header)])


def test_the_layers_have_no_cycle():
    for layers in (LOADER, FIRMWARE):
        below = {folder: set(others) - {"sim"} for folder, others in layers.items()}
        while below:
            lowest = {folder for folder, others in below.items() if not others & set(below) - {folder}}
            assert lowest, f"each includes another: {sorted(below)}"
            below = {folder: others for folder, others in below.items() if folder not in lowest}


def test_the_portable_firmware_includes_no_hardware():
    names = {path.name for path in sources("firmware/lib") if HARDWARE.search(path.read_text())}
    assert names <= GUARDED


def test_no_file_and_no_function_is_too_long():
    files = [path for top in ("loader-cpp", "firmware") for path in sources(top)]
    assert len(files) > 150
    texts = ((path, path.read_text()) for path in files if path.relative_to(ROOT).as_posix() not in GENERATED)
    assert [line for path, text in texts for line in too_long(path, text)] == []


def test_what_is_too_long_is_found():
    body = "  step();\n" * LONGEST_FUNCTION
    path = ROOT / "firmware/lib/meter/src/some.cpp"
    assert too_long(path, f"void Meter::run() {{\n{body}}}\n") != []
    assert too_long(path, f"class Meter {{\n  void run() {{\n{body}  }}\n}};\n") != []
    assert too_long(path, "step();\n" * (LONGEST_FILE + 1)) != []
    assert too_long(path, "class Meter {\n" + "  int step_;\n" * LONGEST_FUNCTION + "};\n") == []
