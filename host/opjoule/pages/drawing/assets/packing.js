// Unpacks the columns that packing.py packed (its docstring gives the form).
const UNKNOWN = 65535;

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Integers whose bytes are sorted by significance, all lowest bytes first.
function integers(bytes, n) {
  const values = new Float64Array(n);
  for (let plane = 0, weight = 1; plane * n < bytes.length; plane++, weight *= 256) {
    for (let i = 0; i < n; i++) values[i] += weight * bytes[plane * n + i];
  }
  return values;
}

async function unpackedValues({ offset, step, n, data }) {
  const codes = integers(await inflated(data), n);
  return codes.map((code) => (code === UNKNOWN ? NaN : offset + step * code));
}

async function unpackedTimes({ offset, n, data }) {
  const steps = integers(await inflated(data), n);
  let microseconds = 0;
  return steps.map((step) => offset + (microseconds += step) * 1e-6);
}

async function unpackedColumns(columns) {
  const entries = Object.entries(columns).map(async ([name, column]) => [name, await unpackedValues(column)]);
  return Object.fromEntries(await Promise.all(entries));
}

async function unpackedTrack(track) {
  const [bounds, mean, lowest, highest] = await Promise.all([
    unpackedTimes(track.bounds_s),
    unpackedColumns(track.mean),
    unpackedColumns(track.lowest),
    unpackedColumns(track.highest),
  ]);
  return { bounds, mean, lowest, highest, samplesPerCell: track.samples_per_cell };
}
