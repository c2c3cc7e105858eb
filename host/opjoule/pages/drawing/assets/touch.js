// The chart under fingers: one reads values or moves a marker, two pinch and move; up and down scrolls the page (touch-action in page.css).
function listenToTouch(chart, stack) {
  let fingers = null, held = null;
  const place = (touch) => touch.clientX - chart.plot.over.getBoundingClientRect().left;
  const begin = ({ touches }) => {
    fingers = held = null;
    if (touches.length === 1) {
      held = chart.otherMarker(place(touches[0]), FINGER_REACH);
      chart.placeCursor(place(touches[0]));
    }
    if (touches.length === 2) fingers = Array.from(touches, (touch) => chart.timeAt(touch.clientX));
  };
  const move = (event) => {
    if (event.touches.length === 1 && !fingers) {
      chart.placeCursor(place(event.touches[0]));
      if (held === null) return;
      event.preventDefault();
      chart.mark(...[held, chart.timeAt(event.touches[0].clientX)].sort((a, b) => a - b));
    }
    if (event.touches.length !== 2 || !fingers) return;
    event.preventDefault();
    chart.show(...viewBetween(fingers, Array.from(event.touches, place), chart.width));
  };
  stack.addEventListener("touchstart", begin, { passive: true });
  stack.addEventListener("touchmove", move, { passive: false });
  const end = () => {
    if (held !== null && chart.chosen) chart.select(...chart.chosen);
    fingers = held = null;
  };
  stack.addEventListener("touchend", end);
  stack.addEventListener("touchcancel", end);
}

// The view that keeps two times [s] under two places [pixels] of a chart `width` pixels wide.
function viewBetween(times, places, width) {
  const apart = Math.max(Math.abs(places[1] - places[0]), 8);
  const scale = Math.abs(times[1] - times[0]) / apart;
  const start = (times[0] + times[1]) / 2 - ((places[0] + places[1]) / 2) * scale;
  return [start, start + width * scale];
}
