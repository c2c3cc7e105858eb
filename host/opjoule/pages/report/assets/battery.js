"use strict";
// How long a battery lasts at a rate of operations that the reader states, and the watt hours of a million operations.
const batteryForm = document.querySelector("#battery");
const PER_MILLION_WH = 1e6 / 3600;

// Mean power [W] at a rate [1/s] with its uncertainty: the board's idle power and what each operation takes above it. Both
// errors may come from one sensor, so they are added.
function powerAt(rate, { idleW, idleUW, operationJ, operationUJ }) {
  return { value: +idleW + rate * operationJ, u: +idleUW + rate * operationUJ };
}

function interval(low, high, unit) {
  const digits = 1 - Math.floor(Math.log10(Math.max(high - low, 1e-3 * high)));
  const shown = (value) => value.toFixed(Math.min(Math.max(digits, 0), 9));
  return `${shown(low)} to ${shown(high)}\u00a0${unit}`;
}

function tellBattery() {
  const [battery, rate] = ["battery_wh", "rate_per_s"].map((name) => Number(batteryForm.elements[name].value.trim().replace(",", ".") || NaN));
  const said = [];
  if (rate > 0) {
    const { value, u } = powerAt(rate, batteryForm.dataset);
    said.push(`A million operations take ${interval(((value - u) / rate) * PER_MILLION_WH, ((value + u) / rate) * PER_MILLION_WH, "Wh")} in all.`);
    if (battery > 0 && value > u) said.push(`The battery lasts ${interval(battery / (value + u), battery / (value - u), "h")}.`);
  }
  batteryForm.querySelector("output").textContent = said.join(" ");
}

batteryForm?.addEventListener("input", tellBattery);
batteryForm?.addEventListener("submit", (event) => event.preventDefault());
