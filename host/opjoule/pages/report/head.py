"""Head of every output: the work, the settings and the rig in a few lines."""

from opjoule.results.rounding import percent, rounded
from opjoule.runs.evaluation.wording import wording_of
from opjoule.runs.record.run import Run

_NAMED = {"recordcount", "operationcount", "requestdistribution", "fieldcount", "fieldlength"}
"""Properties that the description of the work already contains."""


def head_lines(run: Run) -> list[str]:
    """Lines of the head: work, changed settings, engine and durability, board, shunt, supply, program and commit."""
    changed = [given for given in run.asked.properties if given.partition("=")[0].strip() not in _NAMED]
    settings = f"changed from the workload: {' '.join(changed)}" if changed else ""
    program = f"OpJoule {run.found.opjoule}" if run.found.opjoule else ""
    commit = f", commit {run.found.commit}" if program and run.found.commit else ""
    parts = [_engine(run), _board(run), _shunt(run), _supply(run), program + commit]
    return [line for line in (wording_of(run).work(run), settings, *parts) if line]


def _engine(run: Run) -> str:
    parts = [run.database] if run.database else []
    durability = run.summary.settings.get("durability")
    parts += [f"durability {durability}"] if durability else []
    parts += ["DISTURBED on purpose"] if run.found.device.disturbance else []
    return ", ".join(parts)


def _board(run: Run) -> str:
    device = run.found.device
    model = device.model if device.model != "unknown" else None
    parts = [part for part in (model, device.cpu, device.system, device.kernel) if part]
    where = "ran on" if device.connection == "simulated" else "board"
    return f"{where}: {', '.join(parts)}" if parts else ""


def _shunt(run: Run) -> str:
    """The shunt and the source of its value; empty for a meter with a built-in shunt."""
    shunt = run.sensor.shunt if run.sensor else None
    if shunt is None or not shunt.origin:
        return ""
    return f"shunt: {shunt.ohm:g} ohm \N{PLUS-MINUS SIGN}{percent(shunt.tolerance)}, {shunt.origin}"


def _supply(run: Run) -> str:
    """The least voltage of the whole trace, or the reason why it is unknown."""
    least = run.least_voltage
    if least.value is None:
        return f"supply: {least.unchecked}" if least.unchecked else ""
    against = f"limit {least.limit_v:g} V" if least.limit_v is not None else least.unchecked
    return f"supply: least voltage {rounded(least.value, least.u, 'V')} (k = 2) {least.where}, {against}"
