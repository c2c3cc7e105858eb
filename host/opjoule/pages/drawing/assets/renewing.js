"use strict";
// The page of a campaign that goes on says how old it is, and is loaded again.
const RELOAD_MS = 30000;
const written = document.querySelector("#written");

function tellAge() {
  const age_s = Math.max(0, Math.round((Date.now() - Date.parse(written.dateTime)) / 1000));
  written.textContent = age_s < 120 ? `${age_s} s ago` : `${Math.round(age_s / 60)} min ago`;
}

tellAge();
setInterval(tellAge, 1000);
setTimeout(() => location.reload(), RELOAD_MS);
