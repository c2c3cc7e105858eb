"""The golden frames as a C++ header for the firmware's own tests; generate.py writes it."""

import tomllib
from pathlib import Path
from typing import Any


def _values(values: list[Any]) -> str:
    """The initialiser of a struct; arrays are nested."""
    inner = [_values(v) if isinstance(v, list) else f"{v}" + ("u" if v > 0x7FFFFFFF else "") for v in values]
    return "{" + ", ".join(inner) + "}"


def _frame(frame: dict[str, Any], message: dict[str, Any], class_name: str) -> list[str]:
    data = bytes.fromhex(frame["bytes"])
    name = frame["name"]
    fields = [frame.get("fields", {})[field.name] for field in message["fields"]]
    out = [f"// {frame['about']}" if "about" in frame else f"// {name}", f"struct golden_{name} {{"]
    out += [
        f"  using Message = {class_name};",
        f"  using Item = {class_name + 'Item' if message['items'] else 'NoItem'};",
    ]
    out += [f"  static uint32_t seq() {{ return {frame['seq']}u; }}"]
    out += ["  static std::vector<uint8_t> bytes() {", "    return {"]
    rows = [data[i : i + 16] for i in range(0, len(data), 16)]
    out += ["        " + ", ".join(f"0x{byte:02x}" for byte in row) + "," for row in rows] + ["    };", "  }"]
    out += [f"  static Message message() {{ return {_values(fields)}; }}"]
    items = ", ".join(_values(item) for item in frame.get("items", []))
    return [*out, f"  static std::vector<Item> items() {{ return {{{items}}}; }}", "};", ""]


def golden_header(path: Path, definition: dict[str, Any], class_names: dict[str, str], notice: str) -> str:
    """Text of golden_frames.h, from golden/frames.toml at `path`. `class_names`: C++ name of each message."""
    frames = tomllib.loads(path.read_text())["frame"]
    messages = {message["name"]: message for message in definition["message"]}
    out = [
        f"// {notice.replace('messages.toml', 'golden/frames.toml')}",
        "// clang-format off",
        "#ifndef OPJOULE_TEST_GOLDEN_FRAMES_H_",
    ]
    out += ["#define OPJOULE_TEST_GOLDEN_FRAMES_H_", "", "#include <stdint.h>", "", "#include <vector>", ""]
    out += ['#include "messages.h"', "", "namespace opjoule {", "namespace protocol {", ""]
    out += ["// Stands where a message has no items.", "struct NoItem {"]
    out += ["  template <typename Writer>", "  void write(Writer&) const {}"]
    out += ["  template <typename Reader>", "  void read(Reader& in) { in.get8(); }", "};", ""]
    for frame in frames:
        out += _frame(frame, messages[frame["message"]], class_names[frame["message"]])
    out += ["#define OPJOULE_GOLDEN_FRAMES \\"]
    out += [", \\\n".join(f"  golden_{frame['name']}" for frame in frames), ""]
    out += [
        "}  // namespace protocol",
        "}  // namespace opjoule",
        "",
        "#endif  // OPJOULE_TEST_GOLDEN_FRAMES_H_",
        "",
    ]
    return "\n".join(out)
