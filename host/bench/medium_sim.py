#!/usr/bin/env python3
"""Compares programs on a simulated medium with its model: latency of a synced write, rate of a stream, cost of a call.

    .venv/bin/python host/bench/medium_sim.py build/loader/medium-sim [--folder DIR]

A C program (statically linked), Python and, if their compilers are installed, Go and Java write 4 KiB and sync it, 300
times on each medium. A stream writes beyond the dirty limit for some seconds. SIMULATED media on this computer; needs
cc.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEDIA = {"sd": (14e6, 0.005), "emmc": (128e6, 0.001), "ssd": (153e6, 0.0003)}
"""Name -> sequential write rate [bytes/s], duration of a cache flush [s]."""
SYNCS = 300
BYTES = 4096
STREAM_S = 15

C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static char block[65536];
int main(int count, char** words) {
  const char* what = words[1];
  int n = atoi(words[3]);
  int fd = open(words[2], O_RDWR | O_CREAT | (strcmp(what, "dsync") ? 0 : O_DSYNC), 0600);
  if (count < 4 || fd < 0) return 2;
  double start = now();
  if (!strcmp(what, "stream")) {
    double bytes = 0;
    while (now() - start < n) bytes += write(fd, block, sizeof block);
    printf("%.9f %.0f\n", now() - start, bytes);
    return 0;
  }
  for (int i = 0; i < n; ++i) {
    double begin = now();
    int failed = 0;
    if (!strcmp(what, "fsync")) failed = pwrite(fd, block, 4096, 0) != 4096 || fsync(fd);
    else if (!strcmp(what, "dsync")) failed = pwrite(fd, block, 4096, 0) != 4096;
    else if (!strcmp(what, "trapped")) fsync(-1);
    else if (!strcmp(what, "pread")) failed = pread(fd, block, 4096, 0) < 0;
    else if (!strcmp(what, "pwrite")) failed = pwrite(fd, block, 4096, 0) != 4096;
    if (failed) return 1;
    printf("%.9f\n", now() - begin);
  }
  return 0;
}
"""
PYTHON = """
import os, sys, time
fd = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT, 0o600)
for _ in range(int(sys.argv[3])):
    begin = time.perf_counter()
    os.pwrite(fd, bytes(4096), 0)
    os.fsync(fd)
    print(time.perf_counter() - begin)
"""
GO = """
package main
import ("fmt"; "os"; "strconv"; "time")
func main() {
  f, _ := os.OpenFile(os.Args[2], os.O_RDWR|os.O_CREATE, 0600)
  n, _ := strconv.Atoi(os.Args[3])
  for i := 0; i < n; i++ {
    begin := time.Now()
    f.WriteAt(make([]byte, 4096), 0)
    if f.Sync() != nil { os.Exit(1) }
    fmt.Println(time.Since(begin).Seconds())
  }
}
"""

JAVA = """
import java.nio.ByteBuffer; import java.nio.channels.FileChannel; import java.nio.file.*;
class Sync {
  public static void main(String[] words) throws Exception {
    FileChannel file = FileChannel.open(Path.of(words[1]), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    for (int i = 0; i < Integer.parseInt(words[2]); ++i) {
      long begin = System.nanoTime();
      file.write(ByteBuffer.allocate(4096), 0);
      file.force(false);
      System.out.println((System.nanoTime() - begin) * 1e-9);
    }
  }
}
"""


def programs(folder: Path) -> dict[str, list[str]]:
    """Compiles the programs into a folder. Returns: the command of each language."""
    (folder / "sync.c").write_text(C)
    subprocess.run(["cc", "-O2", "-static", "-o", folder / "sync-c", folder / "sync.c"], check=True)
    (folder / "sync.py").write_text(PYTHON)
    commands = {"C": [str(folder / "sync-c")], "Python": [sys.executable, str(folder / "sync.py")]}
    if shutil.which("go"):
        (folder / "sync.go").write_text(GO)
        subprocess.run(["go", "build", "-o", folder / "sync-go", folder / "sync.go"], check=True, cwd=folder)
        commands["Go"] = [str(folder / "sync-go")]
    if shutil.which("javac"):
        (folder / "Sync.java").write_text(JAVA)
        subprocess.run(["javac", "Sync.java"], check=True, cwd=folder)
        commands["Java"] = ["java", "-cp", str(folder), "Sync"]
    return commands


@contextmanager
def medium(binary: str, folder: Path, rate: float, flush_s: float, limit_bytes: int) -> Iterator[list[str]]:
    """Runs `medium-sim serve`; yields the words before a command that uses it. Prints its messages at the end."""
    socket = str(folder / "socket")
    words = [binary, "serve", "--socket", socket, "--state", str(folder), "--write-bytes-per-s", str(rate)]
    words += ["--read-bytes-per-s", "1e9", "--flush-s", str(flush_s), "--dirty-limit-bytes", str(limit_bytes)]
    words += ["--dirty-background-bytes", str(limit_bytes // 2)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serve:
        assert serve.stdin is not None and serve.stdout is not None
        first = json.loads(serve.stdout.readline())
        if not first["slows"]:
            print("this kernel does not slow sync calls:", first["why"])
        yield [binary, "run", "--socket", socket, "--"]
        serve.stdin.close()
        said = [json.loads(line) for line in serve.stdout]
    for fault in [entry["fault"] for entry in said if "fault" in entry]:
        print("   ", fault)
    for disk in [entry["disk"] for entry in said if "disk" in entry][-1:]:
        print(f"    this computer's disk was slower in {disk['slower']} of {disk['syncs']} syncs")


def seconds(words: list[str]) -> list[float]:
    """The first number of each line that a command prints."""
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return [float(line.split()[0]) for line in text.splitlines()]


def latencies(binary: str, folder: Path, commands: dict[str, list[str]]) -> None:
    """Prints the latency of synced writes on each medium, by language."""
    for name, (rate, flush_s) in MEDIA.items():
        model_us = (BYTES / rate + flush_s) * 1e6
        with medium(binary, folder, rate, flush_s, 10**9) as on_medium:
            for language, command in commands.items():
                for what in ("fsync", "dsync") if language == "C" else ("fsync",):
                    words = [*on_medium, *command, what, str(folder / "data"), str(SYNCS)]
                    times_us = [t * 1e6 for t in seconds(words)]
                    median = statistics.median(times_us)
                    high = statistics.quantiles(times_us, n=10)[-1]
                    off = f"({median / model_us - 1:+.1%}), p90 {high:7.0f} us"
                    print(f"{name:5} {language:6} {what}: model {model_us:7.0f} us, median {median:7.0f} us {off}")


def streams(binary: str, folder: Path, command: list[str]) -> None:
    """Prints the rate of a stream after it has reached the dirty limit, which is the bytes of one second."""
    for name, (rate, flush_s) in MEDIA.items():
        limit = int(rate)
        data = folder / "data"
        data.unlink(missing_ok=True)
        with medium(binary, folder, rate, flush_s, limit) as on_medium:
            out = subprocess.run(
                [*on_medium, *command, "stream", str(data), str(STREAM_S)],
                check=True,
                capture_output=True,
                text=True,
            )
            lasted_s, wrote = (float(word) for word in out.stdout.split())
            bound = (wrote - limit) / lasted_s
            off = f"beyond the limit {bound / 1e6:6.1f} MB/s ({bound / rate - 1:+.1%})"
            print(f"{name:5} stream: model {rate / 1e6:6.1f} MB/s, {off}")


def costs(binary: str, folder: Path, command: list[str]) -> None:
    """Prints the microseconds of a call, without and with a medium."""
    (folder / "data").write_bytes(bytes(BYTES))
    with medium(binary, folder, 1e9, 0.0, 10**10) as on_medium:
        for what, count in (("trapped", 3000), ("pread", 20000), ("pwrite", 20000)):
            words = [*command, what, str(folder / "data"), str(count)]
            alone, slowed = (statistics.median(seconds([*before, *words])) * 1e6 for before in ([], on_medium))
            print(f"{what:8} alone {alone:6.2f} us, on the medium {slowed:6.2f} us")


def main() -> int:
    """Prints every comparison, a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=os.path.abspath, help="path of medium-sim: build/loader/medium-sim")
    parser.add_argument(
        "--folder", type=Path, help="folder for the files, on the disk to use (default: the temporary folder)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        commands = programs(folder)
        latencies(options.binary, folder, commands)
        streams(options.binary, folder, commands["C"])
        costs(options.binary, folder, commands["C"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
