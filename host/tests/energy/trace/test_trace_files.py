"""Files of many programs: each is read right, or refused in one line that says what to do; none is silently wrong.

All files are made up, in the layouts that the programs write. 3 W for 1 s is in each, unless it says otherwise.
"""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from opjoule.base.errors import BadInput
from opjoule.energy.trace.power_trace import Gap
from trace_files import File, clock, rows


def ppk2(metadata: object, current_ua: np.ndarray) -> bytes:
    """A session of a Power Profiler Kit II."""
    frames = np.zeros(current_ua.size, [("current", "<f4"), ("bits", "<u2")])
    frames["current"] = current_ua
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as session:
        session.writestr("session.raw", frames.tobytes())
        session.writestr("metadata.json", json.dumps(metadata))
        session.writestr("minimap.raw", b"[]")
    return content.getvalue()


SMARTPOWER3 = (
    "{n:010d},15120,0230,03478,1,"
    "05000,{ch0:04d},{p0:05d},{on0},{status},05100,{ch1:04d},{p1:05d},{on1},00,{sums}{extra}\r\n"
)


def smartpower3(*, on0: int = 1, on1: int = 0, status: str = "00", sums: str = "a7,3f", extra: str = "") -> str:
    """Lines of a SmartPower3, one each 5 ms."""
    more = {"status": status, "sums": sums, "extra": extra}
    channels = {
        "on0": on0,
        "ch0": 600 * on0,
        "p0": 3000 * on0,
        "on1": on1,
        "ch1": 400 * on1,
        "p1": 2040 * on1,
    }
    return "".join(SMARTPOWER3.format(n=1000 + 5 * number, **more, **channels) for number in range(201))


PS3 = "marker time dt_micro device_timestamp current0 voltage0 power0{more} power_total\n"

FILES = {
    # programs
    "powertool": File(
        "Time (s),Main Avg Current (mA),Main Avg Power (mW),Main Avg Voltage (V)\n" + rows("{t},600,3000,5")
    ),
    "powertool with its other channels": File(
        "Time (s),USB Avg Current (mA),USB Avg Voltage (V),Main Avg Current (mA),Main Avg Power (mW),"
        "Main Avg Voltage (V)\n" + rows("{t},20,5.1,600,3000,5")
    ),
    "pymonsoon": File("Time(ms),Main(mA),Main Voltage(V),\n" + rows("{t},600,5,")),
    "ppk2 csv": File("Timestamp(ms),Current(uA),D0-D7\n" + rows("{ms},600000.000,00000000"), voltage=5.0),
    "ppk2 csv with channels": File(
        "Timestamp(ms),Current(uA),D0,D1,D2,D3,D4,D5,D6,D7\n" + rows("{ms},600000.000,0,0,0,0,0,0,0,-"),
        voltage=5.0,
    ),
    "ppk2 session": File(
        ppk2({"metadata": {"samplesPerSecond": 100_000}, "formatVersion": 2}, np.full(100_020, 6e5)),
        voltage=5.0,
    ),
    "ppk2 session at a low rate": File(
        ppk2({"metadata": {"samplesPerSecond": 100}, "formatVersion": 2}, np.full(101, 6e5)), voltage=5.0
    ),
    "joulescope statistics": File("#time,current,voltage,power,charge,energy\n" + rows("{t},0.6,5,3,0,0")),
    "joulescope statistics in UTC": File("#time,current,voltage,power,charge,energy\n" + clock("{iso}Z,0.6,5,3,0,0")),
    "joulescope statistics in UTC as its program writes it": File(
        "#time,current,voltage,power,charge,energy\n"
        + clock("{basic}000Z,0.6,5,3,0,0", start="2026-12-31T23:59:59.500")
    ),
    "joulescope statistics in UTC, whole seconds": File(
        "#time,current,voltage,power,charge,energy\n20260101T000010Z,0.6,5,3,0,0\n20260101T000011Z,0.6,5,3,0,0\n"
    ),
    "joulescope waveform": File(
        "# time,JS220-001122.i,JS220-001122.v,JS220-001122.p\n"
        + rows("{t}00000000e+00,6.000000e-01,5.000000e+00,3.000000e+00")
    ),
    "pyjls csv": File(
        "timestamp,JS220-001122.current,JS220-001122.voltage\n" + rows("{t},+6.000000e-01,+5.000000e+00")
    ),
    "fnirsi logger": File(
        "\ntimestamp sample_in_packet voltage_V current_A dp_V dn_V temp_C_ema energy_Ws capacity_As\n"
        + clock("{unix} 0 5.00000 0.60000 0.601 2.702 31.200 0.030000 0.006000")
    ),
    "smartpower3": File(smartpower3()),
    "smartpower3, channel 1": File(smartpower3(on0=0, on1=1), energy_j=2.04),
    "smartpower3 whose first sum looks like amperes": File(smartpower3(sums="1a,3f")),
    "smartpower3 whose second sum looks like amperes": File(smartpower3(sums="a7,5a")),
    "smartpower3 whose first status looks like amperes": File(smartpower3(status="0a")),
    "smartpower3 whose first sum is 0, of older firmware": File(smartpower3(sums="100,3f")),
    "smartpower3 with a time of its logger": File(smartpower3(extra=',"2026-11-03T21:10:00.123456"')),
    "powersensor3": File(PS3.format(more="") + rows("S {t} 100000 {us} 0.6 5 3 3")),
    "powersensor3 with a marker": File(
        PS3.format(more="")
        + rows("S {t} 100000 {us} 0.6 5 3 3", 6)
        + "M 0.55\n"
        + rows("S {t} 100000 {us} 0.6 5 3 3", first=6)
    ),
    "rd-usb (UM24C, UM25C, TC66C)": File(
        "Time,Voltage (V),Current (A),Power (W),Temperature (°C),Data+ (V),Data- (V),Resistance (Ω),"
        "Accumulated current (mAh),Accumulated power (mWh),Accumulated time (seconds),Run time,Run time (seconds),"
        "Unix time\n" + clock("{date} {time},5.00,0.600,3.000,28,0.60,2.70,8.3,12,60,0,,,{unix}")
    ),
    "pyummeter": File(
        "Date;Voltage (V);Intensity (A);Power (W);Resistance (Ohm);USB D+ (V);USB D- (V);Record duration (sec)\n"
        + clock("{date} {time};5.0;0.6;3.0;8.3;0.6;2.7;0")
    ),
    "AVHzY CT-3 by a reader of its files": File(
        "Time (s),Voltage (V),Current (A),D+ (V),D- (V),Power (W)\n" + rows("{t},5.0,0.6,0.61,2.7,3.0")
    ),
    "arm-probe": File(
        "# configuration: ./config\n# config_name: board\n# trigger: 0.4V (hyst 0.2V) 0.0W (hyst 0.2W) 400us\n#\n"
        "time board(V) board(A) board(W)\n" + rows("{t} 5.00 0.600 3.000")
    ),
    "devlib": File("timestamp_time,board_power\n" + rows("{t},3.0"), voltage=5.0),
    "otii": File('"Timestamp (s)","Arc - Main Current (A)","Arc - Main Voltage (V)"\n' + rows("{t},0.6,5")),
    # layouts
    "shunt beside the supply": File("time_ms,shunt_mV,bus_V,current_mA,power_mW\n" + rows("{ms},60,5,600,3000")),
    "minimum, mean, maximum": File(
        "time_s,current_min_A,current_avg_A,current_max_A,voltage_V\n" + rows("{t},0.2,0.6,4.4,5")
    ),
    "mean after the extremes": File(
        "time_s,currentMax_A,currentMin_A,currentMean_A,voltage_V\n" + rows("{t},4,0.1,0.6,5")
    ),
    "blanks": File("  time_s   current_mA  voltage_V\n" + rows("  {t}    600   5.0")),
    "no header": File(rows("{ms} 5.0 600"), {"time": "1:ms", "voltage": "2:V", "current": "3:mA"}),
    "decimal comma": File("Zeit (s);Strom (mA);Spannung (V)\n" + rows("{t};600,0;5,0").replace(".", ",")),
    "decimal comma in quotes": File(
        '"Time (s)","Current (mA)","Voltage (V)"\n' + rows('"{t}","600,00","5,0"').replace(".", ",")
    ),
    "date and time": File("time,current (mA),voltage (V)\n" + clock("{iso},600,5")),
    "date and time in two columns": File("Date,Time,I (mA),U (V)\n" + clock("{date},{time},600,5")),
    "date and time with a blank, in a table of blanks": File(
        "stamp voltage_V current_A\n" + clock("{date} {time} 5 0.6")
    ),
    "a day before the month": File("Zeit;Strom (mA);Spannung (V)\n" + clock("{german};600,0;5,0")),
    "midnight": File("time,mA,V\n" + clock("{time},600,5", "2026-11-03T23:59:59.5")),
    "twelve hours": File("time,current mA,voltage V\n" + clock("{am},600,5", "2026-11-03T11:59:59.5")),
    "UTC in milliseconds": File("utc,I/mA,U/V\n" + rows("1772000000{ms:03d},600,5", 10), energy_j=2.7),
    "comments before the header": File(
        "# my logger 1.2\n# shunt: 0.1 ohm\n\nBoard: rpi4\ntime (s),current (A),voltage (V)\n" + rows("{t},0.6,5")
    ),
    "comments among the rows": File(
        "time (s),current (A),voltage (V)\n" + rows("{t},0.6,5", 5) + "# run 2\n" + rows("{t},0.6,5", first=5)
    ),
    "units in a line of their own": File("Time,Current,Voltage\ns,mA,V\n" + rows("{t},600,5")),
    "units in the cells": File("Time,Current,Voltage\n" + rows("{ms} ms,600 mA,5 V")),
    "units that change in the cells": File(
        "Time,Current,Voltage\n" + rows("{ms} ms,600 mA,5 V", 6) + rows("{ms} ms,0.6 A,5000 mV", first=6)
    ),
    "byte order mark and CRLF": File("\ufefftime (s),current (A),voltage (V)\r\n" + rows("{t},0.6,5\r")),
    "UTF-16": File(("time (s)\tcurrent (A)\tvoltage (V)\n" + rows("{t}\t0.6\t5")).encode("utf-16")),
    "Latin-1": File(("time (s),current (µA),voltage (V)\n" + rows("{t},600000,5")).encode("latin-1")),
    "names of units": File("Time (seconds),Current (Amps),Voltage (Volts)\n" + rows("{t},0.6,5")),
    "no time, with a rate": File("current_mA,voltage_V\n" + rows("600,5"), rate=10.0),
    "time that repeats, with a rate": File("time,current_mA,voltage_V\n" + rows("21:10:00,600,5"), rate=10.0),
    "time that falls back, with a rate": File(
        "time_s,current_mA,voltage_V\n" + rows("{t},600,5", 6) + rows("{t},600,5", 5), rate=10.0
    ),
    "two columns named": File(
        "time_s,in_V,in_A,ch0_V,ch0_A\n" + rows("{t},15,0.4,5,0.6"), {"current": "ch0_A", "voltage": "ch0_V"}
    ),
    "a garbled field": File(
        "time (s),current (A),voltage (V)\n" + rows("{t},0.6,5").replace("0.5000,0.6", "0.5000,0.6#")
    ),
    "a garbled time": File("time (s),current (A),voltage (V)\n" + rows("{t},0.6,5").replace("0.5000", "950.5000")),
    "a broken line": File(
        "time (s),current (A),voltage (V)\n" + rows("{t},0.6,5").replace("0.5000,0.6,5", "0.5000,0.6")
    ),
    # refusals
    "two channels": File(
        "time_s,in_V,in_A,ch0_V,ch0_A\n" + rows("{t},15,0.4,5,0.6"),
        refusal=r"current: in_A, ch0_A; voltage: in_V, ch0_V\): say which, for example --columns current=in_A",
    ),
    "two channels, one column named": File(
        "time_s,in_V,in_A,ch0_V,ch0_A\n" + rows("{t},15,0.4,5,0.6"),
        {"current": "ch0_A"},
        refusal=r"voltage: in_V, ch0_V\): say which",
    ),
    "extremes alone": File(
        "time_s,current_min_A,current_max_A,voltage_V\n" + rows("{t},0.2,4.4,5"),
        refusal="current: current_min_A",
    ),
    "a maximum alone": File("time_s,current_max_A,voltage_V\n" + rows("{t},4.4,5"), refusal="current: current_max_A"),
    "the shunt's voltage alone": File(
        "time_ms,shunt_mV,current_mA\n" + rows("{ms},60,600"), refusal="no voltage: state"
    ),
    "power of another rail": File(
        "time_s,current_A,voltage_V,power_W\n" + rows("{t},0.6,5,9"), refusal="power_W is 9 W on average"
    ),
    "current in another unit than named": File(
        "time_s,current_A,voltage_V,power_W\n" + rows("{t},600,5,3"), refusal="power_W is 3 W on average"
    ),
    "smartpower3 with both channels": File(smartpower3(on1=1), refusal="current: ch0_mA, ch1_mA; voltage: ch0_mV"),
    "powersensor3 with two pairs": File(
        PS3.format(more=" current1 voltage1 power1") + rows("S {t} 100000 {us} 0.6 5 3 0.1 12 1.2 4.2"),
        refusal="current: current0, current1",
    ),
    "time that stands still": File(
        "time,current_mA,voltage_V\n" + rows("21:10:00.123456,600,5"),
        refusal="21:10:00.123456, then 21:10:00.123456",
    ),
    "time that falls back by less than a millisecond": File(
        "unix_time_s,current_mA,voltage_V\n1772000000.123456,600,5\n1772000000.123455,600,5\n1772000000.2,600,5\n",
        refusal="1772000000.123456, then 1772000000.123455",
    ),
    "no unit": File("time,current,voltage\n" + rows("{t},600,5"), refusal="no column with a unit of time"),
    "no time": File("current_mA,voltage_V\n" + rows("600,5"), refusal="N evenly spaced rows a second, --rate N"),
    "thousands or decimals": File(
        '"ms","mA","V"\n' + "".join(f'"{number}","1,234","5"\n' for number in range(5)),
        refusal="or one between thousands",
    ),
    "months or days": File(
        "time,mA,V\n02/01/2026 23:59:59,600,5\n03/01/2026 00:00:00,600,5\n03/01/2026 00:00:01,600,5\n",
        refusal="order of day and month",
    ),
    "a sketch's lines": File(
        "Bus Voltage:   5.00 V\nCurrent:       600.20 mA\n\n" * 5,
        refusal="no header line followed by a line of numbers",
    ),
    "a ZIP of something": File(b"", refusal="no header line"),
    "a session with columns": File(
        ppk2({"metadata": {"samplesPerSecond": 100}}, np.full(99, 6e5)),
        {"current": "1:A"},
        refusal="leave out --columns",
    ),
    "a session without a rate": File(ppk2({"metadata": {}}, np.full(9, 6e5)), refusal="states no samplesPerSecond"),
    "a session that is cut off": File(
        ppk2({"metadata": {"samplesPerSecond": 100}}, np.full(99, 6e5)).replace(b"session.raw", b"session.rav", 1),
        refusal="damaged: .*save the session again",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_right_or_refused_with_what_to_do(name, tmp_path):
    FILES[name].check(tmp_path)


def powersensor3(seconds: float, from_s: float, lost: range = range(0), late: range = range(0)) -> str:
    """A dump of 20,000 rows a second, with six digits as the host's library writes them.

    `lost`: rows that are missing; `late`: rows that arrived when the last one of them did.
    """
    text = [PS3.format(more="")]
    for number in range(round(seconds * 20_000)):
        arrived = late[-1] if number in late else number
        if number not in lost:
            text.append(f"S {from_s + arrived * 5e-5:.6g} 50 {number * 50 % 1024} 0.6 5 3 3\n")
    return "".join(text)


@pytest.mark.parametrize("from_s", [0.5, 9.99, 12.3, 150.0, 1500.0])
def test_a_powersensor3s_rows_have_the_time_of_their_stamps(from_s, tmp_path):
    trace = File(powersensor3(2.5, from_s, late=range(30_000, 32_000))).read(tmp_path)
    assert set(np.diff(trace.meter_ns)) == {50_000} and trace.meter_ns.size == 50_000
    assert trace.columns["time"] == "device_timestamp"


@pytest.mark.parametrize("from_s", [12.3, 150.0, 1500.0])
def test_whole_turns_that_a_powersensor3_lost_are_found_by_the_time_of_arrival(from_s, tmp_path):
    lost = range(25_000, 25_512)
    trace = File(powersensor3(4.0, from_s, lost)).read(tmp_path)
    assert lost[-1] * 50 % 1024 == (lost[0] - 1) * 50 % 1024
    (gap,) = [part for part in trace.parts() if isinstance(part, Gap)]
    assert gap.lost_samples == 512 and trace.meter_ns[-1] == (80_000 - 1) * 50_000
    assert gap.start_meter_ns * 1e-9 == pytest.approx(1.25, abs=0.02)


def test_a_powersensor3s_rows_that_were_thinned_out_keep_the_hosts_time(tmp_path):
    header, *texts = powersensor3(2.0, 5.0).splitlines(keepends=True)
    trace = File(header + "".join(texts[::40])).read(tmp_path)
    assert trace.meter_ns[-1] == pytest.approx(1.998e9) and trace.columns["time"] == "time"


def gaps_of(time_s: np.ndarray, folder: Path) -> list[Gap]:
    """The gaps of a file with these times."""
    text = "time_s,current_A,voltage_V\n" + "".join(f"{one:.6f},0.6,5\n" for one in time_s)
    return [part for part in File(text).read(folder).parts() if isinstance(part, Gap)]


def test_uneven_stamps_are_no_gaps_and_a_hole_among_them_is_one(tmp_path):
    steps_s = np.random.default_rng(1).uniform(2e-3, 16.5e-3, 3000)
    assert gaps_of(np.cumsum(steps_s), tmp_path) == []
    steps_s[1500] = 0.5
    (gap,) = gaps_of(np.cumsum(steps_s), tmp_path)
    assert gap.duration_ns == pytest.approx(5e8, rel=0.05)


def test_gaps_are_found_against_the_pace_of_their_part_of_the_trace(tmp_path):
    """A logger at 100 a second, then at 2: of the slow part no row is missing, of the fast one three are."""
    fast = np.delete(np.arange(500) * 0.01, [200, 201, 202])
    slow = 5.0 + np.arange(200) * 0.5
    (gap,) = gaps_of(np.concatenate([fast, slow]), tmp_path)
    assert gap.lost_samples == 3


def test_rows_that_are_left_out_are_counted_and_the_first_is_named(tmp_path):
    trace = FILES["a garbled field"].read(tmp_path)
    [note] = trace.notes
    assert note.startswith("1 row ") and note.endswith(": line 7: current (A) is '0.6#'")
    assert sum(part.lost_samples for part in trace.parts() if isinstance(part, Gap)) == 1


def test_times_without_a_date_and_a_number_that_falls_back_are_told_with_all_their_digits(tmp_path):
    with pytest.raises(BadInput, match=r"Time is 1772000000\.1234567, then 1772000000\.1234561"):
        File("Time,I (A),U (V)\n1772000000.1234567,0.6,5\n1772000000.1234561,0.6,5\n1772000000.2,0.6,5\n").read(
            tmp_path
        )


def test_a_decimal_comma_counts_wherever_it_first_appears(tmp_path):
    text = "t_s;i_mA;v_V\n" + rows("{n};600;5", 301) + "301;600,5;5,5\n"
    trace = File(text).read(tmp_path)
    assert (trace.current_a[-1], trace.voltage_v[-1]) == pytest.approx((0.6005, 5.5))
    assert trace.current_a[0] == pytest.approx(0.6)


def test_a_cell_without_a_unit_among_cells_with_units_is_left_out(tmp_path):
    text = "t_s,i,v_V\n" + rows("{t},600 mA,5") + "1.1,600,5\n1.2,600 mA,5\n"
    trace = File(text).read(tmp_path)
    [note] = trace.notes
    assert note.startswith("1 row ") and note.endswith(": line 13: i is '600'")
    assert trace.current_a == pytest.approx(np.full(12, 0.6))


def test_a_comma_that_is_neither_decimal_nor_between_thousands_is_no_number(tmp_path):
    text = "t_s;i_mA;v_V\n" + rows("{t};600.0;5") + "1.1;60,0;5\n"
    [note] = File(text).read(tmp_path).notes
    assert note.startswith("1 row ") and note.endswith(": line 13: i_mA is '60,0'")


def test_a_current_that_no_board_draws_is_in_another_unit(tmp_path):
    with pytest.raises(BadInput, match="line 2: current of 600 A, expected -200 to 200: check the unit"):
        File("time_s,current_A,voltage_V\n" + rows("{t},600,5")).read(tmp_path)
