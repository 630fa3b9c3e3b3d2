// Round numbers on an axis, and how they are written. The Python half is explore/axes.py.

const SIGNIFICANT = 12; // digits that a tick may have before it is a rounding error

/** @typedef {{ at: number, text: string }} Tick */

/**
 * Round numbers from `low` to `high`: steps of 1, 2 or 5 times a power of ten, about `many` of them and never more than twice that.
 * On a logarithmic axis powers of ten, and 2 and 5 times them where there are few.
 * @param {number} low
 * @param {number} high
 * @param {number} many
 * @returns {Tick[]}
 */
function ticks(low, high, many, log = false) {
  if (!(high > low) || many < 1) return [];
  if (log) return logarithmic(low, high, many);
  const step = roundStep((high - low) / many);
  if (!Number.isFinite(step) || step === 0) return [];
  const first = Math.ceil(low / step - 1e-9),
    last = Math.floor(high / step + 1e-9),
    found = [];
  if (!(last - first < 2 * many + 2)) return []; // a range that the numbers cannot resolve
  for (let k = first; k <= last; k++) found.push(Number((k * step).toPrecision(SIGNIFICANT)) || 0);
  const large = Math.max(...found.map(Math.abs), 0);
  return found.map((at) => ({ at, text: tickText(at, step, large) }));
}

/**
 * The least of 1, 2, 5, 10 times a power of ten that is not below `size`.
 * @param {number} size
 */
function roundStep(size) {
  const power = 10 ** Math.floor(Math.log10(size)),
    factor = [1, 2, 5, 10].find((one) => one * power >= size * (1 - 1e-9)) ?? 10;
  return Number((factor * power).toPrecision(3));
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} many
 */
function logarithmic(low, high, many) {
  if (!(low > 0) || !Number.isFinite(high)) return [];
  const first = Math.ceil(Math.log10(low) - 1e-9),
    last = Math.floor(Math.log10(high) + 1e-9),
    decades = last - first + 1;
  if (decades < 2) {
    const among = [];
    for (let power = first - 1; power <= last; power++)
      for (const factor of [1, 2, 5]) {
        const at = Number((factor * 10 ** power).toPrecision(3));
        if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)) among.push({ at, text: powerText(at) });
      }
    return among.length > 1 ? among : ticks(low, high, many);
  }
  const every = Math.ceil(decades / Math.max(2, many)),
    found = [];
  for (let power = first; power <= last; power++) {
    const at = Number(`1e${power}`);
    if (power % every === 0) found.push({ at, text: powerText(at) });
  }
  return found;
}

/**
 * "0.01", "1", "1e−5"
 * @param {number} at
 */
function powerText(at) {
  return (at >= 0.0099 && at < 9999 ? String(at) : at.toExponential().replace("+", "")).replaceAll("-", "−");
}

/**
 * A tick with as many decimals as its step has; of large and of tiny ones the power of ten.
 * @param {number} at
 * @param {number} step
 * @param {number} large the largest on the axis
 */
function tickText(at, step, large) {
  if (at === 0) return "0";
  if (large >= 1e5 || large < 1e-3) {
    const digits = Math.max(0, Math.min(8, Math.floor(Math.log10(Math.abs(at)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9)));
    const [mantissa, power] = at.toExponential(digits).split("e");
    return `${mantissa}e${Number(power)}`.replaceAll("-", "−");
  }
  return at.toFixed(Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)))).replace("-", "−");
}

export { ticks };
