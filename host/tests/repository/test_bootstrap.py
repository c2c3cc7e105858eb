"""Set-up: what is installed, and that what it remembers follows from what has changed since."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
import venv
from pathlib import Path

import bootstrap
import environment
import loader_build
import logged_commands
import pytest
import system_packages
import toolchain
from opjoule.cli.commands import parse

ROOT = Path(__file__).resolve().parents[3]
FAKE_COMPILER = '#!/bin/sh\nexec /usr/bin/g++ "$@"\n'
LATER_PACKAGE = """
cmake_minimum_required(VERSION 3.20)
project(later NONE)
option(OPJOULE_TESTS "" ON)
find_path(OPTIONAL_INCLUDE later.h PATHS ${CMAKE_SOURCE_DIR}/include NO_DEFAULT_PATH)
if(OPJOULE_TESTS)
  find_path(LATER_INCLUDE later.h PATHS ${CMAKE_SOURCE_DIR}/include NO_DEFAULT_PATH REQUIRED)
endif()
file(WRITE ${CMAKE_BINARY_DIR}/found "${OPTIONAL_INCLUDE}")
"""


def platformio_run():
    """firmware/platformio/run.py as a module."""
    spec = importlib.util.spec_from_file_location("platformio_run", ROOT / "firmware/platformio/run.py")
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    return run


def step_named(name, needs):
    return next(step for step in bootstrap._steps(needs) if step.name == name)


@pytest.fixture
def venv_here(tmp_path, monkeypatch):
    """A .venv of its own with what make_environment() stores."""
    monkeypatch.setattr(environment, "VENV", tmp_path / "venv")
    monkeypatch.setattr(environment, "VENV_PYTHON", tmp_path / "venv/bin/python")
    venv.create(tmp_path / "venv", with_pip=False)
    state = environment._state()
    (tmp_path / "venv" / toolchain.MADE_WITH).write_text(json.dumps(state))
    return tmp_path / "venv"


def test_the_environments_python_finds_opjoule_from_anywhere(venv_here):
    environment.find_package()
    say = "import granted_clock, opjoule; print(opjoule.__file__)"
    python = environment.VENV_PYTHON
    ended = subprocess.run([python, "-c", say], cwd="/", env={}, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == str(ROOT / "host/opjoule/__init__.py")


def test_an_environment_works_as_it_was_made(venv_here):
    assert environment.environment_works()


def test_an_interrupted_environment_is_made_again(venv_here):
    (venv_here / toolchain.MADE_WITH).unlink()
    assert not environment.environment_works()


def test_an_environment_of_another_folder_is_made_again(venv_here, monkeypatch):
    """Its programs would start the other clone's Python."""
    monkeypatch.setattr(environment, "ROOT", ROOT / "copy")
    assert not environment.environment_works()


def test_an_environment_of_another_python_is_made_again(venv_here):
    other = venv_here.parent / "python3.99"
    other.symlink_to("/bin/true")
    python = venv_here / "bin" / "python"
    python.unlink()
    python.symlink_to(other)
    assert not environment.environment_works()


def test_an_environment_survives_a_security_update_of_its_python(venv_here):
    """The file is another, its version the same."""
    state = json.loads((venv_here / toolchain.MADE_WITH).read_text())
    (venv_here / toolchain.MADE_WITH).write_text(json.dumps({**state, "file": [1, 1]}))
    assert environment.environment_works()
    (venv_here / toolchain.MADE_WITH).write_text(json.dumps({**state, "file": [1, 1], "version": "3.10"}))
    assert not environment.environment_works()


def test_a_package_installed_into_the_environment_by_hand_has_the_pins_checked_again(venv_here):
    step = step_named("measure-environment", bootstrap.Needs())
    before = step.state()
    (environment.packages_folder() / "numpy-1.0.dist-info").mkdir()
    assert step.state() != before


def test_set_up_runs_on_the_system_python_alone():
    """It makes the environment, so it cannot need anything of it."""
    ended = subprocess.run(
        [sys.executable, "-S", "-c", "import bootstrap"], cwd=ROOT / "host", check=False, capture_output=True
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("fails", [None, bootstrap.SetupError("odd"), logged_commands.Lasting("no network")])
def test_uv_installs_by_hash_and_pip_takes_its_place_where_it_fails(tmp_path, venv_here, monkeypatch, fails):
    """uv has no wheel for every computer, and does not know an index that only pip's configuration names."""
    commands = []

    def logged(command, log):
        commands.append(command)
        if fails and command[0].endswith("/uv"):
            raise fails

    monkeypatch.setattr(environment, "logged", logged)
    lock = tmp_path / "lock.txt"
    environment.fill_environment(lock, tmp_path / "log")
    installs = [command for command in commands if "install" in command]
    assert all("--require-hashes" in command for command in installs)
    assert [Path(command[0]).name for command in installs if str(lock) in command] == ["uv", "python"][
        : 2 if fails else 1
    ]


def test_where_pip_reaches_no_network_nothing_else_is_tried(tmp_path, venv_here, monkeypatch):
    commands = []

    def logged(command, log):
        commands.append(command)
        if "install" in command:
            raise logged_commands.Lasting("no network")

    monkeypatch.setattr(environment, "logged", logged)
    with pytest.raises(logged_commands.Lasting):
        environment.fill_environment(tmp_path / "lock.txt", tmp_path / "log")
    assert len([command for command in commands if "install" in command]) == 1


def test_a_lane_that_fails_ends_the_builds_of_the_others(tmp_path, monkeypatch):
    """They may take minutes, after which the user would read that there is no network."""
    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path)
    monkeypatch.setattr(logged_commands, "_ENDED", threading.Event())
    builds = threading.Event()

    def build(log):
        builds.set()
        logged_commands.logged(["sleep", "600"], log)

    def fetch(log):
        assert builds.wait(60)
        raise logged_commands.Lasting("no network")

    steps = [
        bootstrap.Step("build", "a build", (), bootstrap.without_wants(build), lane="loader"),
        bootstrap.Step("fetch", "packages", (), bootstrap.without_wants(fetch), lane="ycsb"),
    ]
    with pytest.raises(logged_commands.Lasting, match="no network"):
        bootstrap._run(steps)


@pytest.mark.parametrize("has_venv", [True, False])
def test_the_python_environment_waits_for_packages_only_if_it_needs_them(tmp_path, monkeypatch, has_venv):
    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path)
    monkeypatch.setattr(bootstrap, "are_installed", lambda wanted: has_venv)
    made, said = threading.Event(), []

    def packages(log):
        assert not has_venv or made.wait(60)
        said.append("packages")

    def environment_made(log):
        said.append("environment")
        made.set()

    runs = {"packages": packages, "wheels": environment_made, "python": lambda log: said.append("firmware")}
    steps = [
        bootstrap.Step(lane, lane, (), bootstrap.without_wants(run), lane=lane, folder=tmp_path)
        for lane, run in runs.items()
    ]
    bootstrap._run(steps)
    first = ["environment", "packages"] if has_venv else ["packages", "environment"]
    assert said == [*first, "firmware"]


def test_the_environment_of_the_tests_waits_for_a_compiler():
    """It has Berkeley DB's reader, which is compiled with python3-dev."""
    assert bootstrap._environment_step("measure").lane == "wheels"
    assert bootstrap._environment_step("test").lane == "python"


def test_a_build_folder_is_emptied_when_what_it_was_made_with_has_changed(tmp_path):
    build, state = tmp_path / "build", {"packages": {"librocksdb-dev": "7.8"}}
    toolchain.begin_anew_if_changed(build, state)
    (build / "object.o").touch()
    toolchain.begin_anew_if_changed(build, state)
    assert (build / "object.o").exists()
    toolchain.begin_anew_if_changed(build, {"packages": {"librocksdb-dev": "9.10"}})
    assert not (build / "object.o").exists() and toolchain.is_made_with(build, {"packages": {"librocksdb-dev": "9.10"}})


def test_a_build_folder_of_an_earlier_version_of_this_program_is_emptied(tmp_path):
    (tmp_path / "CMakeCache.txt").write_text("DOCTEST_INCLUDE:PATH=DOCTEST_INCLUDE-NOTFOUND\n")
    toolchain.begin_anew_if_changed(tmp_path, {})
    assert not (tmp_path / "CMakeCache.txt").exists()


def test_another_compiler_another_folder_and_other_flags_are_other_states(tmp_path, monkeypatch):
    states = [toolchain.made_with(["g++"], [])]
    (tmp_path / "g++").write_text(FAKE_COMPILER)
    (tmp_path / "g++").chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        states.append(toolchain.made_with(["g++"], []))
        (tmp_path / "g++").write_text(FAKE_COMPILER + "\n")
        states.append(toolchain.made_with(["g++"], []))
    with monkeypatch.context() as patched:
        patched.setenv("CXXFLAGS", "-O0")
        states.append(toolchain.made_with(["g++"], []))
    with monkeypatch.context() as patched:
        patched.setattr(toolchain, "ROOT", ROOT / "copy")
        states.append(toolchain.made_with(["g++"], []))
    assert len({json.dumps(state) for state in states}) == 5
    assert toolchain.made_with(["g++"], []) == states[0]


def test_an_upgraded_package_is_another_state_as_soon_as_dpkg_knows_it(tmp_path, monkeypatch):
    status, version = tmp_path / "status", {"cmake": "3.25"}
    status.touch()
    monkeypatch.setattr(toolchain, "DPKG_STATUS", status)
    monkeypatch.setattr(toolchain, "KEPT_VERSIONS", tmp_path / "kept/versions.json")
    asked = []

    def versions(names):
        asked.append(names)
        return {name: version.get(name, "") for name in names}

    monkeypatch.setattr(toolchain, "installed_versions", versions)
    assert [toolchain.package_versions(["cmake"]) for _ in range(2)] == [{"cmake": "3.25"}] * 2
    assert len(asked) == 1
    version["cmake"] = "4.0"
    status.write_text("changed")
    assert toolchain.package_versions(["cmake"]) == {"cmake": "4.0"} and len(asked) == 2
    (tmp_path / "kept/versions.json").write_text("cut sho")
    assert toolchain.package_versions(["cmake"]) == {"cmake": "4.0"} and len(asked) == 3


def test_dpkg_names_the_versions_of_installed_packages():
    versions = toolchain.installed_versions(["dpkg", "no-such-package"])
    assert versions["dpkg"] and versions["no-such-package"] == ""


def test_a_removed_package_is_installed_again(monkeypatch):
    there = {"g++": "12"}
    monkeypatch.setattr(bootstrap, "package_versions", lambda names: {name: there.get(name, "") for name in names})
    assert bootstrap.are_installed(["g++"])
    there.clear()
    assert not bootstrap.are_installed(["g++"])
    monkeypatch.setenv("OPJOULE_SKIP_PACKAGES", "1")
    assert bootstrap.are_installed(["g++"])


def test_a_package_that_came_later_is_found_by_a_build_that_was_configured_without_it(tmp_path):
    """The first command needs no doctest; ./test after it does."""
    source, build, log = tmp_path / "source", tmp_path / "build", tmp_path / "log"
    (source / "include").mkdir(parents=True)
    (source / "CMakeLists.txt").write_text(LATER_PACKAGE)
    loader_build.configure(source, build, log, ["-DOPJOULE_TESTS=OFF"], [])
    assert (build / "found").read_text().endswith("NOTFOUND")
    with pytest.raises(bootstrap.SetupError, match=r"later\.h"):
        loader_build.configure(source, build, log, ["-DOPJOULE_TESTS=ON"], [])
    (source / "include" / "later.h").touch()
    loader_build.configure(source, build, log, ["-DOPJOULE_TESTS=ON"], [])
    assert (build / "found").read_text() == str(source / "include")


@pytest.mark.parametrize("source", ["loader-cpp", "firmware/sim"])
def test_the_tests_of_cpp_are_a_part_that_set_up_can_ask_for_later(source):
    text = (ROOT / source / "CMakeLists.txt").read_text()
    assert "if(OPJOULE_TESTS)" in text and "find_path(DOCTEST_INCLUDE doctest/doctest.h REQUIRED)" in text


def test_a_plain_measurement_builds_its_own_engine_alone():
    needs = parse(["--db", "leveldb", "--device", "rpi4", "--simulate"]).needs
    assert needs.engines == {"leveldb"}
    step = step_named("loader", needs)
    assert step.wanted == {"leveldb"} and set(step.wants()) > {"leveldb", "rocksdb", loader_build.TESTS}


def test_an_engine_that_was_built_earlier_stays_and_a_later_one_comes_beside_it(tmp_path, monkeypatch):
    ran = []

    def step(*wanted):
        return bootstrap.Step(
            "loader",
            "loader",
            (),
            lambda log, wants: ran.append(wants) or {},
            wants=lambda: {"leveldb": "1.23", "rocksdb": "7.8", "lmdb": "0.9"},
            wanted=frozenset(wanted),
            folder=tmp_path / "made",
        )

    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path)
    bootstrap._run_lane([step("leveldb")])
    assert bootstrap._up_to_date(step("leveldb")) and not bootstrap._up_to_date(step("rocksdb"))
    bootstrap._run_lane([step("rocksdb")])
    assert ran == [{"leveldb"}, {"leveldb", "rocksdb"}]
    assert bootstrap._up_to_date(step("leveldb", "rocksdb")) and not bootstrap._up_to_date(step("lmdb"))


def test_a_step_runs_again_when_its_product_is_gone_or_was_cut_short(tmp_path, monkeypatch):
    product = tmp_path / "product"
    step = bootstrap.Step("step", "a step", (), lambda *_: product.write_text("whole") and {}, product)
    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path)
    step = bootstrap.Step("step", "a step", (), step.run, product, folder=tmp_path)
    bootstrap._run_lane([step])
    assert bootstrap._up_to_date(step)
    product.write_text("cut")
    assert not bootstrap._up_to_date(step)
    product.unlink()
    assert not bootstrap._up_to_date(step)


def failing(engines):
    """logged(), but for which these engines do not compile."""

    def logged(command, log):
        with log.open("a") as sink:
            configured = [word for word in command if word.startswith("-DOPJOULE_ENGINES=")]
            logged.engines = configured[0].partition("=")[2].split(";") if configured else logged.engines
            targets = command[command.index("--target") + 1 :] if "--target" in command else []
            bad = [
                name
                for name in engines
                if name in logged.engines and ("loader" in targets or f"engine_{name}" in targets)
            ]
            if bad:
                sink.write(f"databases/{bad[0]}.cc:194: error: invalid use of Cache\n")
                raise bootstrap.SetupError("failed")

    logged.engines = []
    return logged


def test_an_engine_that_does_not_compile_keeps_no_other_from_being_built(tmp_path, monkeypatch):
    monkeypatch.setattr(loader_build, "LOADER", tmp_path / "loader")
    logged = failing({"rocksdb"})
    monkeypatch.setattr(loader_build, "logged", logged)
    failed = loader_build.build_loader(tmp_path / "log", {"leveldb", "rocksdb"})
    assert logged.engines == ["leveldb"]
    assert list(failed) == ["rocksdb"] and "rocksdb.cc:194: error: invalid use of Cache" in failed["rocksdb"]


def test_an_engine_whose_library_cmake_does_not_find_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(loader_build, "LOADER", tmp_path / "loader")
    monkeypatch.setattr(
        loader_build,
        "logged",
        lambda command, log: (tmp_path / "loader/missing-libraries.txt").write_text("lmdb lmdb\n"),
    )
    failed = loader_build.build_loader(tmp_path / "log", {"lmdb", "leveldb"})
    assert failed == {"lmdb": "liblmdb.a is missing"}


def test_what_all_engines_share_may_not_fail(tmp_path, monkeypatch):
    def logged(command, log):
        log.touch()
        if "loader" in command:
            raise bootstrap.SetupError("core failed")

    monkeypatch.setattr(loader_build, "LOADER", tmp_path / "loader")
    monkeypatch.setattr(loader_build, "logged", logged)
    with pytest.raises(bootstrap.SetupError, match="core failed"):
        loader_build.build_loader(tmp_path / "log", {"leveldb"})


@pytest.mark.parametrize(
    ("asked", "test", "raises"),
    [
        (set(), False, False),
        ({"leveldb"}, False, False),  # rocksdb is an earlier command's
        ({"leveldb", "rocksdb"}, False, False),
        ({"rocksdb"}, False, True),
        ({"leveldb", "rocksdb"}, True, True),
    ],
)
def test_set_up_ends_where_no_needed_engine_is_left(tmp_path, monkeypatch, asked, test, raises):
    said = []
    monkeypatch.setattr(bootstrap, "say", said.append)
    monkeypatch.setattr(loader_build, "BUILD", tmp_path)
    needs = bootstrap.Needs(engines=frozenset(asked), test=test)
    if raises:
        with pytest.raises(bootstrap.SetupError, match=r"rocksdb .*: no library"):
            bootstrap._check_engines({"rocksdb": "no library"}, needs)
    else:
        bootstrap._check_engines({"rocksdb": "no library"}, needs)
        [line] = said
        assert line.startswith("  NOTE: rocksdb ") and line.endswith(": no library")
    assert loader_build.failed_engines(tmp_path) == {"rocksdb": "no library"}
    bootstrap._check_engines({}, needs)
    assert loader_build.failed_engines(tmp_path) == ({} if "rocksdb" in asked else {"rocksdb": "no library"})


@pytest.fixture
def apt(monkeypatch):
    """An apt-get whose archive lacks the packages in .lacking; .commands are those that ran."""

    class Apt:
        commands, installed, lacking, interrupted, failure = [], set(), set(), False, None

        def logged(self, command, log):
            self.commands.append(command)
            if "--configure" in command:
                self.interrupted = False
            if "install" not in command:
                return
            wanted = set(command[command.index("--no-install-recommends") + 1 :])
            if self.failure:
                raise self.failure
            if self.interrupted or wanted & self.lacking:
                raise bootstrap.SetupError("E:")
            self.installed |= wanted

    apt = Apt()
    apt.commands, apt.installed = [], set()
    monkeypatch.setattr(system_packages, "logged", apt.logged)
    monkeypatch.setattr(system_packages, "say", lambda line: None)
    monkeypatch.setattr(system_packages, "not_installed", lambda names: [n for n in names if n not in apt.installed])
    monkeypatch.setattr(system_packages.os, "geteuid", lambda: 0)
    monkeypatch.delenv("OPJOULE_SKIP_PACKAGES", raising=False)
    return apt


def test_an_engine_whose_package_cannot_be_had_keeps_no_other_from_being_installed(apt, tmp_path):
    apt.lacking = {"librocksdb-dev"}
    failed = system_packages.install_sections(["loader"], ["leveldb", "rocksdb"], tmp_path / "log")
    assert list(failed) == ["rocksdb"] and "librocksdb-dev" in failed["rocksdb"]
    assert {"g++", "libleveldb-dev"} <= apt.installed


def test_what_every_command_needs_may_not_be_missing(apt, tmp_path):
    apt.lacking = {"g++"}
    with pytest.raises(bootstrap.SetupError):
        system_packages.install_sections(["loader"], ["leveldb"], tmp_path / "log")


def test_an_interrupted_installation_is_completed_and_another_apt_is_waited_for(apt, tmp_path):
    apt.interrupted = True
    system_packages.install_sections(["host"], [], tmp_path / "log")
    assert "python3-venv" in apt.installed
    installs = [command for command in apt.commands if "install" in command]
    assert all(any("DPkg::Lock::Timeout" in word for word in command) for command in installs)


def test_what_no_further_command_could_mend_ends_set_up_at_once(apt, tmp_path, monkeypatch):
    """Without a network, each attempt of apt takes its time."""
    apt.failure = logged_commands.Lasting("no network")
    with pytest.raises(logged_commands.Lasting, match="no network"):
        system_packages.install_sections(["loader"], ["leveldb"], tmp_path / "log")
    assert ["update" in command for command in apt.commands] == [True, False]
    monkeypatch.setattr(system_packages.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(system_packages.this_computer, "without_packages", lambda: "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(logged_commands.Lasting, match=r"no sudo: .* g\+\+ .* libleveldb-dev"):
        system_packages.install_sections(["loader"], ["leveldb"], tmp_path / "log")


def test_only_the_packages_of_what_is_needed_are_asked_for():
    def wanted(**needs):
        return set(system_packages.names(*bootstrap.Needs(**needs).sections))

    assert wanted() == {"python3-venv", "openssh-client"}
    assert "g++" in wanted(loader=True) and "gcc-avr" not in wanted(loader=True)
    assert {"g++", "gcc-avr"} < wanted(simulate=True)
    assert not any("rocksdb" in name for name in wanted(loader=True, simulate=True, test=True))


def test_a_second_set_up_waits_for_the_first_and_finds_its_steps_done(tmp_path, monkeypatch):
    ran, said, waits = [], [], threading.Event()

    def say(line):
        said.append(line)
        waits.set()

    step = bootstrap.Step("step", "a step", (), lambda *_: ran.append(1) or {}, folder=tmp_path)
    monkeypatch.setattr(bootstrap, "BUILD", tmp_path)
    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path / "setup")
    monkeypatch.setattr(bootstrap, "_steps", lambda needs: [step])
    monkeypatch.setattr(bootstrap, "say", say)
    monkeypatch.setattr(loader_build, "BUILD", tmp_path)
    (tmp_path / "setup").mkdir()
    second = threading.Thread(target=bootstrap.set_up, args=(bootstrap.Needs(),), daemon=True)
    with bootstrap._alone():
        second.start()
        assert waits.wait(60)
        bootstrap._store_stamp(step, bootstrap._fingerprint(step), ())
    second.join(60)
    assert not second.is_alive() and ran == []
    [line] = said
    assert line.startswith("Set-up: another ")
    step.stamp.unlink()
    bootstrap.set_up(bootstrap.Needs())
    assert len(ran) == 1


def test_a_long_step_says_how_much_of_it_is_built(tmp_path, monkeypatch):
    said, heard = [], threading.Event()

    def say(line):
        said.append(line)
        if "built" in line:
            heard.set()

    def build(log, wants):
        log.write_text("[1/49] Building A\n[18/49] Building B\nwarning: [19/49] is no count\n")
        assert heard.wait(60)
        return {}

    monkeypatch.setattr(bootstrap, "STAMPS", tmp_path)
    monkeypatch.setattr(bootstrap, "PROGRESS_S", 0.01)
    monkeypatch.setattr(bootstrap, "say", say)
    bootstrap._run_lane([bootstrap.Step("step", "a step", (), build, folder=tmp_path)])
    begins, counted, *_, ends = said
    assert begins == "  a step ..." and ends.startswith("  a step: done ")
    assert counted.startswith("  a step: 18 of 49 parts built after ")


def test_after_an_interruption_nothing_more_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(logged_commands, "_ENDED", threading.Event())
    logged_commands.end_running()
    with pytest.raises(bootstrap.SetupError, match="interrupted"):
        logged_commands.logged(["true"], tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_platformio_begins_anew_with_another_compiler_or_in_another_folder(tmp_path, monkeypatch):
    """SCons does not look into the headers of avr-libc, and PlatformIO's files name the folder."""
    run = platformio_run()
    for name, place in {"CORE": "core", "LIBRARIES": "core/libdeps", "BUILDS": "builds"}.items():
        monkeypatch.setattr(run, name, tmp_path / place)
    compiler = ["avr-gcc 7"]
    monkeypatch.setattr(run, "firmware_state", lambda: {"compiler": compiler[0]})
    run.prepare()
    for kept in ("builds/uno/firmware.elf", "core/packages/of-the-user"):
        (tmp_path / kept).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / kept).touch()
    run.prepare()
    assert (tmp_path / "builds/uno/firmware.elf").exists() and (tmp_path / "core/packages/of-the-user").exists()
    compiler[0] = "avr-gcc 14"
    run.prepare()
    assert not (tmp_path / "builds").exists() and not (tmp_path / "core/packages/of-the-user").exists()
    assert (tmp_path / "core/packages/tool-scons/scons.py").exists()


def test_a_package_of_one_firmware_environment_leaves_the_other_environments(tmp_path, monkeypatch):
    """./test installs Arduino's core after README's first command has built the firmware without it."""
    run = platformio_run()
    version = [""]
    monkeypatch.setattr(run, "BUILDS", tmp_path)
    monkeypatch.setattr(run, "made_with", lambda programs, packages: {"packages": [*packages, *version]})
    for name in ("uno", "uno-arduino", "native"):
        run.begin_environments(["run", "-e", name])
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "built").touch()
    version[0] = "1.8.6"
    run.begin_environments(["run", "-e", "uno", "-e", "uno-arduino"])
    assert sorted(path.parent.name for path in tmp_path.glob("*/built")) == ["native", "uno"]
    run.begin_environments(["test", "-e", "native"])
    assert [path.parent.name for path in tmp_path.glob("*/built")] == ["uno"]


def test_set_up_and_platformio_agree_on_what_the_firmware_was_made_with():
    step = step_named("firmware", bootstrap.Needs(simulate=True))
    assert step.state() == platformio_run().firmware_state()
