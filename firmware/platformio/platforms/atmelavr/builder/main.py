"""Build script of the stand-in atmelavr platform: avr-gcc from PATH.

A project has no framework, or Arduino's (frameworks/arduino.py). The flags are those that
PlatformIO's own platform uses for a project without a framework, so that both builds differ only in
the compiler's version.
"""

from SCons.Script import COMMAND_LINE_TARGETS, AlwaysBuild, Builder, Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
mcu = board.get("build.mcu")
arch = [f"-mmcu={mcu}"]

env.Replace(
    AR="avr-gcc-ar",
    AS="avr-as",
    CC="avr-gcc",
    CXX="avr-g++",
    LINK="avr-g++",
    RANLIB="avr-gcc-ranlib",
    SIZETOOL="avr-size",
    OBJCOPY="avr-objcopy",
    ARFLAGS=["rc"],
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
    SIZEPROGREGEXP=r"^(?:\.text|\.data|\.rodata|\.bootloader)\s+(\d+).*",
    SIZEDATAREGEXP=r"^(?:\.data|\.bss|\.noinit)\s+(\d+).*",
    SIZECHECKCMD="$SIZETOOL -A -d $SOURCES",
    SIZEPRINTCMD="$SIZETOOL -A -d $SOURCES",
)
env.Append(
    ASFLAGS=[*arch, "-x", "assembler-with-cpp"],
    CCFLAGS=["-Os", "-Wall", "-ffunction-sections", "-fdata-sections", *arch],
    CXXFLAGS=["-fno-exceptions", "-fno-threadsafe-statics"],
    CPPDEFINES=[("F_CPU", board.get("build.f_cpu"))],
    LINKFLAGS=["-Os", *arch, "-Wl,--gc-sections", "-Wl,--relax"],
    LIBS=["m"],
    BUILDERS={
        "IntelHex": Builder(
            action=env.VerboseAction("$OBJCOPY -O ihex -R .eeprom $SOURCES $TARGET", "Building $TARGET"),
            suffix=".hex",
        )
    },
)

elf = env.BuildProgram()
image = env.IntelHex("$BUILD_DIR/${PROGNAME}", elf)
if "upload" in COMMAND_LINE_TARGETS:
    raise SystemExit("upload: flash .pio/build/uno/firmware.hex with avrdude (docs/reference/firmware.md)")
AlwaysBuild(env.Alias("size", elf, env.VerboseAction("$SIZEPRINTCMD", "Sizes of $SOURCE")))
Default([elf, image])
