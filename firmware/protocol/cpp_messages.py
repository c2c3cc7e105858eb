"""The messages as a C++ header."""

import textwrap
from typing import Any

from layout import SIZES, Definition, Field, camel, class_name


def _comment(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, initial_indent=indent + "// ", subsequent_indent=indent + "// ")


def _type(field: Field) -> str:
    return ("int" if field.wire[0] == "i" else "uint") + field.wire[1:] + "_t"


def _member(field: Field) -> str:
    array = f"[{field.count}]" if field.count > 1 else ""
    return f"{_comment(field.about, '  ')}\n  {_type(field)} {field.name}{array};"


def _access(field: Field, verb: str) -> str:
    """One line of write() or read(); a signed field travels as its two's complement."""
    bits = SIZES[field.wire] * 8
    element = f"{field.name}[i]" if field.count > 1 else field.name
    if verb == "write":
        line = f"out.put{bits}(static_cast<uint{bits}_t>({element}));"
    else:
        line = f"{element} = static_cast<{_type(field)}>(in.get{bits}());"
    loop = f"for (uint8_t i = 0; i < {field.count}; ++i) " if field.count > 1 else ""
    return f"    {loop}{line}"


def _struct(name: str, about: str, fields: list[Field], constants: list[tuple[str, Any]]) -> list[str]:
    out = [_comment(about), f"struct {name} {{"]
    out += [f"  static constexpr uint8_t {key} = {value};" for key, value in constants]
    out += [_member(field) for field in fields]
    for verb, stream, const in (("write", "Writer& out", " const"), ("read", "Reader& in", "")):
        if fields:
            out += [f"  template <typename {stream.split('&')[0]}>", f"  void {verb}({stream}){const} {{"]
            out += [_access(field, verb) for field in fields] + ["  }"]
        else:
            out += [f"  template <typename {stream.split('&')[0]}>"]
            out += [f"  void {verb}({stream.split()[0]}){const} {{}}"]
    return [*out, "};", ""]


def _enum(enum: Definition) -> list[str]:
    out = [_comment(enum["about"]), f"enum class {camel(enum['name'])} : uint8_t {{"]
    out += [f"  {name} = {value},  // {about}" for name, value, about in enum["values"]]
    return [*out, "};", ""]


def cpp_messages(definition: Definition, notice: str) -> str:
    """Text of messages.h: C++11 without heap or Arduino headers."""
    protocol = definition["protocol"]
    out = [
        f"// {notice}",
        "// C++11, no heap, no interrupts touched: plain structs, safe wherever their owner is.",
        "// write() needs a Writer with put8/put16/put32/put64, read() a Reader with get8 to get64",
        "// (frame_encoder.h, frame_decoder.h); fields follow type and seq, little endian, without padding.",
        "// clang-format off",
        "#ifndef OPJOULE_PROTOCOL_MESSAGES_H_",
        "#define OPJOULE_PROTOCOL_MESSAGES_H_",
        "",
        "#include <stdint.h>",
        "",
        "namespace opjoule {",
        "namespace protocol {",
        "",
        f"constexpr uint16_t kVersion = {protocol['version']};",
        f"constexpr uint32_t kBaud = {protocol['baud']}UL;",
        f"constexpr uint32_t kTickHz = {protocol['tick_hz']}UL;",
        f"constexpr uint8_t kMaxFrameBytes = {protocol['max_frame_bytes']};  // type to CRC, before COBS",
        "constexpr uint8_t kHeaderBytes = 5;    // type u8, seq u32",
        "constexpr uint8_t kCrcBytes = 2;",
        "",
    ]
    for enum in definition["enum"]:
        out += _enum(enum)
        if enum["name"] == "fault":
            out += [f"constexpr uint8_t kFaultCount = {len(enum['values'])};", ""]
    out += ["enum class Type : uint8_t {"]
    out += [f"  {message['name']} = 0x{message['type']:02x}," for message in definition["message"]] + [
        "};",
        "",
    ]
    for message in definition["message"]:
        name = class_name(message)
        constants = [("kType", f"0x{message['type']:02x}"), ("kBytes", message["bytes"])]
        if message["items"]:
            constants.append(("kItemBytes", message["item_bytes"]))
        out += _struct(name, message["about"], message["fields"], constants)
        if message["items"]:
            out += _struct(
                name + "Item",
                f"Repeated after {name} to the end of the frame.",
                message["items"],
                [("kBytes", message["item_bytes"])],
            )
    out += [
        "}  // namespace protocol",
        "}  // namespace opjoule",
        "",
        "#endif  // OPJOULE_PROTOCOL_MESSAGES_H_",
        "",
    ]
    return "\n".join(out)
