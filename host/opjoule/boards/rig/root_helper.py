"""opjoule-root: the only program that sudo must allow on a board, and the script that installs it there.

It contains the root actions of a measurement (on_board/steps.sh, state.sh) and the lists of allowed changes, generated
from rig.toml. It takes orders, checks each against the lists, and never executes text that it receives.
"""

import hashlib
import re
import shlex
from typing import Final

from opjoule.base.errors import BadInput
from opjoule.boards.changes import STOPPED_UNITS
from opjoule.boards.connection.steps import HELPER, HELPER_PARTS, helper_version
from opjoule.boards.medium import Medium
from opjoule.boards.on_board import script
from opjoule.boards.rig.file import RigDevice

SUDOERS: Final = "/etc/sudoers.d/opjoule"
_USER: Final = re.compile(r"[a-z_][a-z0-9_.-]*\$?")
_WORD: Final = re.compile(r"[A-Za-z0-9_./:@,+=% -]+")


def helper_text(device: RigDevice, user: str) -> str:
    """The program for one board and user. Raises: BadInput: a medium's path or device that no order can contain."""
    lists = {
        "version": helper_version(),
        "user": user,
        "cpufreq": device.cpufreq,
        "media": "\n".join(_line(name, medium) for name, medium in device.media.items()),
        "units": "\n".join(STOPPED_UNITS),
    }
    steps, state, checks = map(script, HELPER_PARTS)
    return "\n".join(
        [
            "#!/bin/sh",
            "# opjoule-root: all that OpJoule does as root on this board. Written by host/measure.py sudoers.",
            *(f"{name}={shlex.quote(value)}" for name, value in lists.items()),
            steps,
            f"state_of() (\n{state})",
            checks,
        ]
    )


def install_script(device: RigDevice, user: str) -> str:
    """Shell script, run once as root on the board: installs opjoule-root and its sudoers file.

    Raises: BadInput: not a valid user name; a medium that cannot be listed.
    """
    if not _USER.fullmatch(user):
        raise BadInput(f"user '{user}' cannot stand in a sudoers file: name one of lower-case letters and digits")
    text = helper_text(device, user)
    rule = f"{user} ALL=(root) NOPASSWD: sha256:{hashlib.sha256(text.encode()).hexdigest()} {HELPER}"
    plan = "\n".join(f"#   {line}" for line in root_plan(device, user))
    return f"""#!/bin/sh
# Run this once on the board, as root. User {user} may then run one program as root, and it does this alone:
{plan}
# To take it back: rm {HELPER} {SUDOERS}
set -eu
umask 022
[ "$(id -u)" = 0 ] || {{ echo 'run this as root' >&2; exit 1; }}
cat > {HELPER}.new <<'END_OF_OPJOULE_ROOT'
{text}END_OF_OPJOULE_ROOT
chown root:root {HELPER}.new
chmod 755 {HELPER}.new
cat > {SUDOERS}.new <<'END_OF_SUDOERS'
Defaults!{HELPER} env_reset, !setenv
{rule}
END_OF_SUDOERS
chmod 440 {SUDOERS}.new
visudo -c -q -f {SUDOERS}.new
mv {HELPER}.new {HELPER}
mv {SUDOERS}.new {SUDOERS}
echo 'opjoule-root is in place'
"""


def root_plan(device: RigDevice, user: str) -> list[str]:
    """Actions allowed as root on the board, one line each."""
    lines = [
        "read settings: CPU, radios, HDMI, LEDs, fan, swap, active units, block devices and mounts",
        f"write CPU governor and frequencies below {device.cpufreq}, and switch processors on and off",
        "switch Wi-Fi and Bluetooth (rfkill), HDMI and LEDs on and off; fix the fan's step",
        "switch off swap that is on, and on again",
        f"systemctl stop or start: {' '.join(STOPPED_UNITS)}",
        "take memory away by a ramfs on /run/opjoule-memory; drop the page cache",
        f"give /dev/gpiochip* to {user}, and back",
        "keep the journal of these changes in /var/lib/opjoule, and undo it",
    ]
    for medium in device.media.values():
        if medium.device:
            lines.append(f"make the folder {medium.path}, mount {medium.device} there, and undo both")
        if medium.expendable:
            lines.append(
                f"make, check or change the file system on {medium.device}, everything on it lost; fill and trim it; "
                f"give {medium.path} to {user}"
            )
    return lines


def _line(name: str, medium: Medium) -> str:
    for word in (medium.device, medium.path):
        if word and (not _WORD.fullmatch(word) or ".." in word):
            raise BadInput(f"medium {name}: {word!r}: opjoule-root takes letters, digits and _./:@,+=%- alone")
    return f"{medium.device}|{medium.path}|{'expendable' if medium.expendable else 'kept'}"
