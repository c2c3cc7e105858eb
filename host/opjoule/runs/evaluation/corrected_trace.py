"""A record's trace, corrected by the calibration in its run.json; the files stay as recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.power_trace import PowerTrace


@dataclass(frozen=True)
class CorrectedTrace:
    """The trace of one sensor, with the sensor's error bounds."""

    trace: PowerTrace
    sensor: ErrorBounds
    """Error bounds: with the calibration if it was applied, otherwise as delivered."""
    refusal: tuple[Notice, ...] = ()
    """Why the calibration was not applied; empty if it was, or if there is none."""

    @classmethod
    def of(cls, trace: PowerTrace, sensor: ErrorBounds, *, overwrite: bool = False) -> CorrectedTrace:
        """Applies the sensor's calibration if it is valid for this trace; `overwrite`: in the columns of that trace."""
        calibration = sensor.calibration
        if calibration is None:
            return cls(_at_board(trace, sensor, overwrite=overwrite), sensor)
        if why := calibration.refusal(trace):
            line = (
                f"calibration {calibration.identity} does not apply to this trace: {why}. It is not used, "
                "and the intervals are those of the data sheets"
            )
            refused = Notice(
                NoticeKind.NOT_CALIBRATED, line, "calibrate over the whole range (docs/how-to/calibrate.md)"
            )
            delivered = replace(sensor, calibration=None)
            return cls(_at_board(trace, sensor, overwrite=overwrite), delivered, (refused,))
        made = calibration.apply(trace, overwrite=overwrite)
        return cls(_at_board(made, sensor, overwrite=True), sensor)


def _at_board(trace: PowerTrace, sensor: ErrorBounds, *, overwrite: bool) -> PowerTrace:
    return trace.behind(sensor.wire_ohm, overwrite=overwrite) if sensor.wire_ohm else trace
