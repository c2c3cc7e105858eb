"""Units that wake a Debian, Ubuntu, Raspberry Pi OS or Armbian system up on their own, by package."""

from __future__ import annotations

_BY_PACKAGE = (
    ("apt", ("apt-daily.timer", "apt-daily-upgrade.timer", "apt-daily.service", "apt-daily-upgrade.service")),
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
    ("rpi-eeprom", ("rpi-eeprom-update.service",)),
    ("rpi-swap", ("rpi-zram-writeback.timer", "rpi-zram-writeback.service")),
    ("log2ram", ("log2ram-daily.timer",)),
    ("armbian-bsp-cli", ("armbian-hardware-monitor.service",)),
)
MDNS_UNITS = ("avahi-daemon.socket", "avahi-daemon.service")
"""avahi-daemon; what answers for a .local name."""
WAKING_UNITS = tuple(unit for _, units in _BY_PACKAGE for unit in units)
"""In the order of stopping: what would start another comes before it."""
