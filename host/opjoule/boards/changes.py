"""Changes of a board before a measurement, as a list of steps that can be printed, executed and undone."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from opjoule.base.errors import BadInput, DeviceFault
from opjoule.boards.board_state import BoardFacts, BoardState, StateSettings
from opjoule.boards.medium import Medium, plan_medium
from opjoule.boards.steps import Change

_WAKING_BY_PACKAGE = (
    ("apt", ("apt-daily.timer", "apt-daily-upgrade.timer")),
    ("unattended-upgrades", ("unattended-upgrades.service",)),
    ("packagekit", ("packagekit.service",)),
    ("fwupd", ("fwupd-refresh.timer", "fwupd.service")),
    ("snapd", ("snapd.socket", "snapd.service", "snapd.snap-repair.timer", "snapd.refresh.timer")),
    ("ubuntu-pro-client", ("ua-timer.timer", "apt-news.service", "esm-cache.service")),
    ("update-notifier-common", ("update-notifier-download.timer", "update-notifier-motd.timer")),
    ("base-files of Ubuntu", ("motd-news.timer",)),
    ("whoopsie, apport", ("whoopsie.service", "apport-autoreport.timer")),
    ("man-db", ("man-db.timer",)),
    ("mlocate, plocate", ("updatedb.timer", "mlocate.timer", "plocate-updatedb.timer")),
    ("logrotate", ("logrotate.timer",)),
    ("dpkg", ("dpkg-db-backup.timer",)),
    ("e2fsprogs", ("e2scrub_all.timer",)),
    ("util-linux", ("fstrim.timer",)),
    ("mdadm", ("mdcheck_start.timer", "mdcheck_continue.timer", "mdmonitor-oneshot.timer")),
    ("systemd", ("systemd-tmpfiles-clean.timer",)),
    ("cron, anacron, at", ("cron.service", "anacron.timer", "anacron.service", "atd.service")),
    ("sysstat", ("sysstat-collect.timer", "sysstat-summary.timer")),
    ("exim4-base", ("exim4-base.timer", "exim4.service")),
    ("phpsessionclean of php-common", ("phpsessionclean.timer",)),
    ("popularity-contest", ("popularity-contest.timer",)),
    ("smartmontools", ("smartmontools.service", "smartd.service")),
    ("udisks2", ("udisks2.service",)),
    ("modemmanager", ("ModemManager.service",)),
    ("cups", ("cups.path", "cups.socket", "cups.service", "cups-browsed.service")),
    ("triggerhappy", ("triggerhappy.socket", "triggerhappy.service")),
    ("bluez, pi-bluetooth", ("bluetooth.service", "hciuart.service")),
    ("wolfram-engine", ("wolfram-hwdb.timer",)),
    ("rpi-swap", ("rpi-zram-writeback.timer", "rpi-zram-writeback.service")),
    ("log2ram", ("log2ram-daily.timer",)),
    ("armbian-bsp-cli", ("armbian-hardware-monitor.service",)),
)
"""Units that wake up a Debian, Ubuntu, Raspberry Pi OS or Armbian system periodically, by package.

Not rpi-eeprom-update.service: it stays active after its work at boot, and a start would update the bootloader.
"""
_UPGRADES = ("apt-daily.service", "apt-daily-upgrade.service")
"""Services that may be replacing packages, and are never stopped: that could leave packages half installed."""
MDNS_UNITS = ("avahi-daemon.socket", "avahi-daemon.service")
"""avahi-daemon, which answers for a .local name."""
WAKING_UNITS = tuple(unit for _, units in _WAKING_BY_PACKAGE for unit in units)
"""Units in the order of stopping: a unit that would start another one comes before it."""
TIME_UNITS = (
    *("systemd-timesyncd.service", "chrony.service", "chronyd.service", "ntp.service", "ntpd.service"),
    *("ntpsec.service", "openntpd.service", "ntpsec-rotate-stats.timer"),
)
"""Daemons that slew CLOCK_MONOTONIC, the clock of the board's time stamps (adjtimex(2); packages systemd-timesyncd,
chrony, ntp, ntpsec, openntpd of Debian and Ubuntu, and their names elsewhere)."""
_MEMORY_FOLDER = "/run/opjoule-memory"
_RADIO_SAVER = ("systemd-rfkill.socket", "systemd-rfkill.service")
STOPPED_UNITS = (*WAKING_UNITS, *MDNS_UNITS, *TIME_UNITS, *_RADIO_SAVER)
"""All units that a preparation may stop."""


@dataclass
class PreparePlan:
    """Steps in order, and the settings left unchanged, each with its reason."""

    steps: list[Change] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The changes in words, as printed by --dry-run and kept in run.json."""
        return [step.about for step in self.steps] + [f"left alone: {line}" for line in self.kept]


def plan_preparation(
    state: BoardState,
    wanted: StateSettings,
    medium: Medium,
    board: BoardFacts,
    *,
    remote: bool,
    found_by_mdns: bool = False,
    sync: bool = False,
) -> PreparePlan:
    """The steps that bring the board from `state` to the wanted state.

    Without rights on the board, the plan only states what would be needed.

    Args:
        remote: False if this computer is the board.
        found_by_mdns: the connection needs the board to answer for its .local name.
        sync: the board's user must be able to open the GPIO chips, for the sync line.
    Raises: BadInput: the medium may not be written to as requested. DeviceFault: packages are being upgraded.
    """
    plan, user = PreparePlan(), board.values.get("user", "")
    medium_steps = list(plan_medium(state, wanted, medium, user))
    if board.rights == "none":
        plan.kept.append(
            "all board settings: the user has no root rights there (sudo without a password, or measure.py sudoers)"
        )
        if medium_steps:
            raise BadInput(
                f"{medium.device}: a medium is mounted or changed by root only: allow sudo without a password, or "
                "opjoule-root alone (measure.py sudoers)"
            )
        return plan
    plan.steps += _frequency(state, wanted, plan)
    plan.steps += _processors(state, wanted)
    plan.steps += _radios(state, wanted, plan, board.connection_interface, remote)
    plan.steps += _lights(state, wanted)
    plan.steps += _fan(state, wanted, plan)
    plan.steps += _sleepers(state, wanted, plan, found_by_mdns)
    plan.steps += _memory(state, wanted)
    if sync and board.values.get("gpio") == "denied" and board.rights != "root":
        plan.steps += [
            Change(f"{chip} given to {user}", ("chown", user, chip), ("chown", owner, chip))
            for chip, owner in state.of("gpio")
        ]
    plan.steps += medium_steps
    if wanted.page_cache == "drop":
        plan.steps.append(Change("page cache dropped, here and before each run", ("drop_page_cache",)))
    return plan


def _put(path: str, value: str, old: str, about: str) -> Change:
    return Change(about, ("put", path, value), ("put", path, old))


def _frequency(state: BoardState, wanted: StateSettings, plan: PreparePlan) -> Iterator[Change]:
    policies = state.of("policy")
    if not policies:
        plan.kept.append("CPU frequency: this kernel has no cpufreq")
    for policy, governor, low, high, governors, lowest, highest in policies:
        if wanted.governor not in ("keep", governor):
            if wanted.governor not in governors.split():
                raise BadInput(f"governor '{wanted.governor}' is unknown to the board: it has {governors or 'none'}")
            about = f"governor {wanted.governor} (was {governor})"
            yield _put(f"{policy}/scaling_governor", wanted.governor, governor, about)
        if khz := wanted.frequency_khz:
            if not int(lowest) <= khz <= int(highest):
                raise BadInput(f"frequency_khz = {khz} is outside the board's {lowest} to {highest} kHz")
            # The minimum must never exceed the maximum (cpufreq refuses that), so the order depends on the direction.
            bounds = [("scaling_max_freq", high), ("scaling_min_freq", low)]
            for name, old in bounds if khz >= int(low) else reversed(bounds):
                yield _put(f"{policy}/{name}", str(khz), old, f"{name} {khz} kHz (was {old})")


def _processors(state: BoardState, wanted: StateSettings) -> Iterator[Change]:
    switchable = [cpu for cpu, online in state.of("cpu") if online == "1"]
    running = [cpu for cpu, online in state.of("cpu") if online != "0"]
    if not wanted.cpus or wanted.cpus >= len(running):
        return
    surplus = len(running) - wanted.cpus
    if surplus > len(switchable):
        raise BadInput(
            f"cpus = {wanted.cpus}: {len(running)} processors of the board are on, and its kernel can switch "
            f"{len(switchable)} of them off: boot it with maxcpus={wanted.cpus} (Raspberry Pi: cmdline.txt)"
        )
    by_number = sorted(switchable, key=lambda cpu: int(cpu.rpartition("cpu")[2]), reverse=True)
    for cpu in by_number[:surplus]:
        yield _put(f"{cpu}/online", "0", "1", f"processor {cpu.rpartition('/')[2]} off")


def _radios(
    state: BoardState, wanted: StateSettings, plan: PreparePlan, interface: str, remote: bool
) -> Iterator[Change]:
    carrier = state.interface_kind(interface)
    changes = []
    for switch, kind, soft, name in state.of("radio"):
        if soft != "0":
            continue
        if kind == "wlan" and wanted.wifi == "off":
            if remote and carrier != "wired":
                reason = "the connection runs over it" if carrier == "wifi" else "it may carry the connection"
                plan.kept.append(f"Wi-Fi: {reason}; use a cable for a quieter board")
            else:
                changes.append(_radio_off(switch, kind, name, "Wi-Fi off"))
        if kind == "bluetooth" and wanted.bluetooth == "off":
            changes.append(_radio_off(switch, kind, name, "Bluetooth off"))
    saver = state.units("active").intersection(_RADIO_SAVER)
    if changes and saver:
        about = "systemd-rfkill stopped, so that a power cut brings the radios back"
        yield Change(about, ("systemctl", "stop", *_RADIO_SAVER), ("systemctl", "start", _RADIO_SAVER[0]))
    yield from changes


def _radio_off(switch: str, kind: str, name: str, about: str) -> Change:
    """Change that switches a radio off. It is lasting: systemd-rfkill saves each change and loads it at boot (systemd,
    src/rfkill/rfkill.c). The kernel may renumber the switches by then, so the undo finds it by name and type."""
    return Change(about, ("put", f"{switch}/soft", "1"), ("radio_on", switch, kind, name), lasting=True)


def _fan(state: BoardState, wanted: StateSettings, plan: PreparePlan) -> Iterator[Change]:
    """The fan at a fixed step; its thermal zone is set not to change it, which it would do within seconds.

    Source: Linux, Documentation/driver-api/thermal/sysfs-api.rst; critical trips still count with user_space.
    """
    fans = state.of("fan")
    if wanted.fan == "keep":
        return
    if not fans:
        plan.kept.append("fan: this kernel drives none")
    for zone, policy, policies, mode in state.of("fan_zone") if fans else ():
        name = zone.rpartition("/")[2]
        if "user_space" in policies.split():
            yield _put(f"{zone}/policy", "user_space", policy, f"{name} leaves the fan alone (was {policy})")
        else:
            yield _put(f"{zone}/mode", "disabled", mode, f"{name} off, so that it leaves the fan alone")
    for device, highest, now in fans:
        if int(wanted.fan) > int(highest):
            raise BadInput(f"fan = {wanted.fan}: the board's fan has the steps 0 to {highest}")
        yield _put(f"{device}/cur_state", wanted.fan, now, f"fan at step {wanted.fan} of {highest} (was {now})")


def _lights(state: BoardState, wanted: StateSettings) -> Iterator[Change]:
    if wanted.hdmi == "off":
        for connector, _ in state.of("hdmi"):
            yield _put(f"{connector}/status", "off", "detect", f"{connector.rpartition('/')[2]} off")
    if wanted.leds == "off":
        for led, trigger, brightness in state.of("led"):
            name = led.rpartition("/")[2]
            # Undone in reverse order: the trigger is restored last and then controls the brightness itself.
            yield _put(f"{led}/trigger", "none", trigger or "none", f"LED {name} off")
            yield _put(f"{led}/brightness", "0", brightness, f"LED {name} dark")


def _sleepers(state: BoardState, wanted: StateSettings, plan: PreparePlan, found_by_mdns: bool) -> Iterator[Change]:
    for unit in _UPGRADES if wanted.services == "stop" else ():
        if unit in state.units("activating"):
            raise DeviceFault(f"{unit} is at work: wait until it has ended")
    if wanted.swap == "off":
        for name, _, priority in state.of("swap"):
            back = ("swap_on", name, priority if int(priority) >= 0 else "")
            yield Change(f"swap {name} off", ("swapoff", name), back)
    active = state.units("active")
    units = WAKING_UNITS if wanted.services == "stop" else ()
    if wanted.services == "stop" and found_by_mdns and active.intersection(MDNS_UNITS):
        plan.kept.append("avahi-daemon: the board is found by its .local name; use its address for a quieter board")
    elif wanted.services == "stop":
        units += MDNS_UNITS
    if wanted.time_daemons == "stop":
        units += TIME_UNITS
    for unit in units:
        if unit in active:
            yield Change(f"{unit} stopped", ("systemctl", "stop", unit), ("systemctl", "start", unit))


def _memory(state: BoardState, wanted: StateSettings) -> Iterator[Change]:
    taken_kb = state.memory_kb - wanted.memory_mb * 1024
    if not wanted.memory_mb or taken_kb <= 0:
        return
    if wanted.memory_mb < 128:
        raise BadInput(f"memory_mb = {wanted.memory_mb} is too little for the board: at least 128")
    yield Change(
        f"memory limited to {wanted.memory_mb} MiB ({taken_kb // 1024} MiB taken away)",
        ("take_memory", _MEMORY_FOLDER, str(taken_kb)),
        ("unmount", _MEMORY_FOLDER, "opjoule-memory"),
    )
