"""rig.toml: what is wrong is said in one line that names the file and the key."""

import pytest
from opjoule.base.errors import BadInput
from opjoule.boards.rig import read_rig

GOOD = """
[meter]
port = "serial:/dev/ttyACM0"
[device.rpi4]
connection = "local"
sync = "none"
[device.rpi4.storage]
sd = "/mnt/sd"
"""


def test_a_whole_file_is_read(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text(GOOD)
    rig = read_rig(path)
    assert rig.meter == "serial:/dev/ttyACM0"
    assert rig.device("rpi4").media["sd"].path == "/mnt/sd"
    assert rig.medium_meter is None


def test_a_second_meter_in_the_mediums_supply_has_a_key_of_its_own(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text(GOOD.replace("[device.rpi4]", 'storage = "fnirsi"\n[device.rpi4]', 1))
    assert read_rig(path).medium_meter == "fnirsi"


def test_without_a_file_both_ways_on_are_named(tmp_path):
    with pytest.raises(BadInput, match=r"init.*--simulate"):
        read_rig(tmp_path / "rig.toml")


MISTAKES = [
    ("[meter", "TOML"),
    ("[device.rpi4]\n", "[meter] port is missing"),
    (
        GOOD.replace("[device.rpi4]", "storage = 3\n[device.rpi4]", 1),
        "[meter] storage must be",
    ),
    (GOOD.replace("sync =", "synk ="), "did you mean 'sync'?"),
    (GOOD.replace('sync = "none"', "sync = 3"), "sync must be"),
    (GOOD.replace('"none"', '""'), "'' "),
    (GOOD.replace('"/mnt/sd"', "17"), "storage] needs lines like"),
    (GOOD + "[supply]\nvoltage = 5.1\n", "did you mean 'voltage_v'?"),
    (GOOD + "[supply]\nvoltage_v = 510\n", "voltage_v must be a number from 1 to 60, "),
    (GOOD + '[supply]\ncable_ohm = "0.1"\n', "cable_ohm must be"),
    (GOOD + "[supply]\ncable_ohm = nan\n", "cable_ohm must be"),
    ("supply = 5.1\n" + GOOD, "[supply] must be"),
    ("meter = 5\n[device.rpi4]\n", "[meter] must be"),
    (GOOD + "[suppl]\nvoltage_v = 5.1\n", "'suppl': did you mean 'supply'?"),
    (GOOD + "[rom]\ntemperature_c = 22\n", "'rom': did you mean 'room'?"),
    ('sync = "none"\n' + GOOD, "'sync': known are meter, room, supply, device"),
    (
        GOOD.replace("[device.rpi4]", 'storrage = "fnirsi"\n[device.rpi4]', 1),
        "'storrage': did you mean 'storage'?",
    ),
]
"""Text of a rig.toml -> part of its refusal that names the mistake."""


@pytest.mark.parametrize(("text", "says"), MISTAKES)
def test_a_mistake_is_named(tmp_path, text, says):
    path = tmp_path / "rig.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_rig(path)
    assert says in str(caught.value)


def test_a_rig_file_is_refused_in_the_words_of_the_golden_screen(tmp_path, golden):
    path, said = tmp_path / "rig.toml", []
    for text, _ in MISTAKES[1:]:  # the first has words of Python's parser
        path.write_text(text)
        with pytest.raises(BadInput) as caught:
            read_rig(path)
        said.append(str(caught.value))
    golden("refused-rig-file", "\n".join(said), {tmp_path: "DIR"})


def test_a_board_that_is_not_described_is_named_with_those_that_are(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text(GOOD)
    with pytest.raises(BadInput, match=r"unknown device 'rpi3': .*rpi4"):
        read_rig(path).device("rpi3")


REMOTE = GOOD.replace('connection = "local"', 'connection = "ssh:pi@board"\nssh_options = ["-p", "22"]') + (
    'emmc = { path = "/mnt/e/", device = "/dev/disk/by-id/e", expendable = true }\n'
    "[device.rpi4.state]\nmemory_mb = 1024\n"
)


def test_a_board_behind_ssh_is_read_with_its_media_and_state(tmp_path):
    path = tmp_path / "rig.toml"
    path.write_text(REMOTE)
    board = read_rig(path).device("rpi4")
    assert (board.ssh_target, board.ssh_options) == ("pi@board", ("-p", "22"))
    assert board.media["emmc"].path == "/mnt/e"
    assert board.media["emmc"].expendable
    assert not board.media["sd"].expendable
    assert board.state.memory_mb == 1024


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            '"ssh:pi@board"',
            '"telnet:board"',
            'connection must be "local" or "ssh:user@host", not \'telnet:board\'',
        ),
        ('["-p", "22"]', '"-p 22"', "ssh_options must be"),
        ("memory_mb = 1024", "memory = 1024", "did you mean 'memory_mb'"),
        ("memory_mb = 1024", 'memory_mb = "1 GB"', "memory_mb must be"),
        ('"/mnt/e/"', '"mnt/e"', "absolute directory"),
        ('"/dev/disk/by-id/e"', '"sda"', "a name under /dev"),
        ("expendable = true", 'expendable = "yes"', "expendable must be"),
        ('device = "/dev/disk/by-id/e", ', "", "needs the device"),
        ("expendable", "expendible", "did you mean 'expendable'"),
    ],
)
def test_a_mistake_about_a_board_behind_ssh_is_named(tmp_path, old, new, says):
    path = tmp_path / "rig.toml"
    assert old in REMOTE
    path.write_text(REMOTE.replace(old, new))
    with pytest.raises(BadInput) as caught:
        read_rig(path)
    assert says in str(caught.value)
