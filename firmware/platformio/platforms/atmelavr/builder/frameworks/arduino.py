"""The Arduino framework of the stand-in atmelavr platform: Debian's arduino-core-avr.

The flags are those of the core's own platform.txt, so that a program is compiled as in the Arduino IDE.
"""

from pathlib import Path

from SCons.Script import DefaultEnvironment

AVR = Path("/usr/share/arduino/hardware/arduino/avr")
IDE_VERSION = 10819

env = DefaultEnvironment()
board = env.BoardConfig()
if not (AVR / "cores/arduino/Arduino.h").exists():
    raise SystemExit(f"{AVR} is missing: install arduino-core-avr")

core = AVR / "cores" / board.get("build.core")
variant = AVR / "variants" / board.get("build.variant")
env.Append(
    CFLAGS=["-std=gnu11"],
    CXXFLAGS=["-std=gnu++11", "-fpermissive"],
    # avr-gcc 5.4 does not define DECIMAL_DIG for C++.
    CPPDEFINES=[
        ("ARDUINO", IDE_VERSION),
        "ARDUINO_ARCH_AVR",
        "ARDUINO_AVR_UNO",
        ("DECIMAL_DIG", "__DECIMAL_DIG__"),
    ],
    CPPPATH=[str(core), str(variant)],
    LIBSOURCE_DIRS=[str(AVR / "libraries")],
)
env.Append(
    LIBS=[
        env.BuildLibrary(
            str(Path("$BUILD_DIR") / "FrameworkArduino"),
            str(core),
        )
    ]
)
