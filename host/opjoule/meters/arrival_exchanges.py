"""Clock evidence from a meter that cannot be asked for its time: a sample was measured before it arrived."""

from opjoule.clocks.exchanges import Exchange
from opjoule.meters.interface import MeterEvent

PERIOD_NS = 200_000_000


class ArrivalExchanges:
    """One exchange each 0.2 s, from the data that came soonest after their last sample.

    That sample ended before its data arrived, and not longer before than they take at most to be gathered and
    fetched: the same as a question sent then and answered on arrival.
    """

    def __init__(self, delivery_ns: int) -> None:
        """`delivery_ns`: longest time from a sample's end to its arrival when nothing is in the way."""
        self._delivery_ns = delivery_ns
        self._soonest: tuple[int, int, int] | None = None
        """delay, end of the last sample, arrival of the best data since the last exchange"""
        self._due_ns = 0

    def exchanges(self, end_ns: int, arrival_ns: int) -> list[MeterEvent]:
        """Takes data whose last sample ended at `end_ns` of the meter; gives the exchange that is due."""
        delay_ns = arrival_ns - end_ns
        if self._soonest is None or delay_ns < self._soonest[0]:
            self._soonest = delay_ns, end_ns, arrival_ns
        if arrival_ns < self._due_ns:
            return []
        self._due_ns = arrival_ns + PERIOD_NS
        _, ended_ns, arrived_ns = self._soonest
        self._soonest = None
        return [Exchange(arrived_ns - self._delivery_ns, ended_ns, ended_ns, arrived_ns)]
