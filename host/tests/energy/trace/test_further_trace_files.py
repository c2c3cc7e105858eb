"""Further files as people have them, made up without regard to how they are read: right, or one line that helps.

3 W for 1 s is in each that is read, unless it says otherwise.
"""

import pytest
from trace_files import File, clock, rows

FILES = {
    "POWER-Z KM003C": File(
        "Time,VBUS(V),IBUS(A),Power(W),CC1(V),CC2(V),D+(V),D-(V)\n"
        + clock("{time},5.0000,0.6000,3.0000,0.41,1.62,0.6,2.7", "2026-01-01T00:00:00")
    ),
    "POWER-Z, decimal comma": File("Elapsed(ms);VBUS[V];IBUS[A]\n" + rows("{ms};5,0000;0,6000")),
    "INA219 breakout, bus and load": File(
        "Millis,BusVoltage_V,ShuntVoltage_mV,LoadVoltage_V,Current_mA,Power_mW\n"
        + rows("{ms},5.00,60,5.06,600.0,3000"),
        refusal="voltage: BusVoltage_V, LoadVoltage_V",
    ),
    "INA219 breakout, one named": File(
        "Millis,BusVoltage_V,ShuntVoltage_mV,LoadVoltage_V,Current_mA,Power_mW\n"
        + rows("{ms},5.00,60,5.06,600.0,3000"),
        {"voltage": "BusVoltage_V", "time": "Millis:ms"},
    ),
    "INA3221, three channels": File(
        "time_s,ch1_V,ch1_mA,ch2_V,ch2_mA,ch3_V,ch3_mA\n" + rows("{t},5,600,3.3,10,1.8,0"),
        refusal="current: ch1_mA, ch2_mA, ch3_mA",
    ),
    "Home Assistant": File(
        "entity_id,state,last_changed\n" + clock("sensor.rpi_power,3.0,{iso}Z"),
        {"power": "state:W", "time": "last_changed"},
        voltage=5.0,
    ),
    "InfluxDB": File("_time,_value\n" + clock("{iso}Z,3.0"), {"power": "_value:W"}, voltage=5.0),
    "pandas with its index": File(",timestamp,voltage_v,current_a\n" + clock("0,{unix},5,0.6")),
    "pandas with a zone": File("time,voltage [V],current [mA]\n" + clock("{date} {time}000+00:00,5,600")),
    "a summary at the end": File("t_s,i_A,v_V\n" + rows("{t},0.6,5") + "\nTotal energy,3.0 J\n"),
    "a header that repeats": File(
        "t_s,i_A,v_V\n" + rows("{t},0.6,5", 6) + "t_s,i_A,v_V\n" + rows("{t},0.6,5", first=6)
    ),
    "overload": File("t_s,i_A,v_V\n" + rows("{t},0.6,5").replace("0.5000,0.6", "0.5000,OL")),
    "nothing measured": File("t_s,i_A,v_V\n" + rows("{t},0.6,5").replace("0.5000,0.6", "0.5000,--")),
    "thousands in the time": File(
        "Time (ms),Current (mA),Voltage (V)\n" + "".join(f'"{900 + 100 * n:,}","600.0","5.00"\n' for n in range(11))
    ),
    "names that are units": File("When,Volts,Amps\n" + clock("11/23/2026 {am},5,0.6", "2026-11-23T13:10:00")),
    "minutes": File("time_min,current_A,voltage_V\n" + rows("{t},0.6,5"), energy_j=180.0),
    "minimum, maximum and mean of both": File(
        "Time (s),Voltage min (V),Voltage max (V),Voltage avg (V),Current min (A),Current max (A),Current avg (A)\n"
        + rows("{t},4.8,5.2,5,0.1,2,0.6")
    ),
    "set and measured": File("time_s,V_set (V),V_out (V),I_set (A),I_out (A)\n" + rows("{t},5.1,5,3,0.6")),
    "in and out": File(
        "time_s,Vin (V),Vout (V),Iin (A),Iout (A)\n" + rows("{t},12,5,0.3,0.6"),
        refusal=r"voltage: Vin \(V\), Vout",
    ),
    "rails": File("time_ms,VDD_IN_mW,VDD_CPU_mW\n" + rows("{ms},3000,900"), voltage=5.0, refusal="power: VDD_IN_mW"),
    "a rail named": File("time_ms,VDD_IN_mW,VDD_CPU_mW\n" + rows("{ms},3000,900"), {"power": "VDD_IN_mW"}, voltage=5.0),
    "Linux' power supply": File("time,current_now_uA,voltage_now_uV\n" + clock("{unix},600000,5000000")),
    "two clocks": File("Sample Time (s),System Time,Current (A),Voltage (V)\n" + rows("{t},21:10:00,0.6,5")),
    "notes in a column": File("time_s,current_A,voltage_V,note\n" + rows('{t},0.6,5,"a, b"')),
    "milliwatts named watts": File(
        "time_s,current_mA,voltage_V,power_W\n" + rows("{t},600,5,3000"),
        refusal="power_W is 3000 W on average",
    ),
    "a channel that is no ampere": File(
        "time_s,channel_a,channel_b,voltage_v\n" + rows("{t},600,1,5"),
        refusal="no column with a unit of current",
    ),
    "a percentage": File("t_s,current_%,voltage_V\n" + rows("{t},60,5"), refusal="no column with a unit of current"),
    "an oscilloscope": File(
        "X,CH1,CH2,Start,Increment,\nSequence,Volt,Volt,-6.0e-02,5.0e-02,\n" + rows("{n},5.0,0.6,,,"),
        refusal="no column with a unit of time",
    ),
    "backwards": File(
        "time_s,current_A,voltage_V\n0.2,0.6,5\n0.1,0.6,5\n0.0,0.6,5\n",
        refusal="time does not increase at row 2",
    ),
    "a page of the web": File("<html><body>not found</body></html>\n", refusal="no header line followed by a line"),
    "JSON": File('{"t": 0, "mA": 600, "V": 5}\n' * 5, refusal="no header line followed by a line"),
    # a further set, written down with its values before it was tried
    "Keysight data log": File(
        "Sample interval: 0.1\nDate: 2026-01-01\nTime(s),Volt avg 1,Curr avg 1\n" + rows("{t},5.0,0.6"),
        refusal="unit",
    ),
    "Siglent, both channels": File(
        "Time(s),CH1 Voltage(V),CH1 Current(A),CH2 Voltage(V),CH2 Current(A)\n" + rows("{t},5,0.6,3.3,0.1"),
        refusal=r"current: CH1 Current\(A\), CH2 Current",
    ),
    "Rigol, one channel": File("Time(s),CH1_Volt(V),CH1_Curr(A),CH1_Power(W)\n" + rows("{t},5,0.6,3")),
    "Tasmota": File("time,ENERGY.Power\n" + clock("{iso}Z,3.0"), voltage=5.0, refusal="unit"),
    "Shelly": File("timestamp,apower (W),voltage (V),current (A),aenergy (Wh)\n" + clock("{unix},3.0,5.0,0.6,12.1")),
    "microamperes and microvolts": File("time_us,bus_uV,current_uA\n" + rows("{ms}000,5000000,600000")),
    "tegrastats": File("RAM 2000/3964MB VDD_IN 3000mW/3000mW\n" * 5, refusal="no header line"),
    "a logic analyser": File("Time [s],Channel 0,Channel 1\n" + rows("{t},5.0,0.6"), refusal="unit"),
    "Otii Arc": File("Timestamp (s),Arc - Main current (A),Arc - Main voltage (V)\n" + rows("{t},0.6,5")),
    "thousands with a point": File(
        "Zeit [ms];Strom [mA];Spannung [V]\n"
        + "".join(f"{f'{900 + 100 * n:,}'.replace(',', '.')};600,0;5,00\n" for n in range(11)),
        refusal="has a point and .* a comma: export it with one decimal sign",
    ),
    "thousands with a comma, in every cell": File(
        "Time (ms)\tCurrent (A)\tVoltage (V)\n" + "".join(f"{1000 + 100 * n:,}\t0.6\t5.0\n" for n in range(11))
    ),
    "kilowatts": File("time_s,power_kW,voltage_V\n" + rows("{t},0.003,5")),
    "a counter of energy": File("time_s,energy_J\n" + rows("{t},3.0"), refusal="no column with a unit of"),
    "a USB tester's counters": File("time_s,voltage_V,current_A,capacity_mAh,energy_mWh\n" + rows("{t},5,0.6,10,50")),
    "quotes, a mark and Windows' line ends": File(
        ("\ufeff" + '"Time (s)","Current (A)","Voltage (V)"\n' + rows('"{t}","0.6","5"')).replace("\n", "\r\n")
    ),
    "PowerShell's UTF-16": File(("time_s\tcurrent_A\tvoltage_V\n" + rows("{t}\t0.6\t5")).encode("utf-16")),
    "nanoseconds of 1970": File(
        "time_ns,current_mA,voltage_mV\n"
        + "".join(f"{1_770_000_000_000_000_000 + n * 100_000_000},600,5000\n" for n in range(11))
    ),
    "seconds with a decimal comma": File("Zeit;Strom [A];Spannung [V]\n" + clock("{iso};0,6;5,0").replace(".", ",")),
    "units below the names": File("time,current,voltage\ns,mA,V\n" + rows("{t},600,5")),
    "a name twice": File("time_s,current_A,current_A,voltage_V\n" + rows("{t},0.6,0.1,5"), refusal="current"),
    "a count and no time": File("sample,current_mA,voltage_V\n" + rows("{n},600,5"), refusal="--rate|unit of time"),
    "root mean square beside the mean": File("time_s,I_rms (A),I_mean (A),U (V)\n" + rows("{t},0.9,0.6,5")),
    "a power factor": File(
        "time_s,P_W,S_VA,U_V,I_A,PF\n" + rows("{t},3.00,4.00,5.00,0.800,0.75"), refusal="3 W on average"
    ),
    "a temperature": File("time_s,current_A,voltage_V,temp_C\n" + rows("{t},0.6,5,41")),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_right_or_refused_with_what_to_do(name, tmp_path):
    FILES[name].check(tmp_path)
