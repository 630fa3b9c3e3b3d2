// Numbers and names as short text. Minus signs are typographic (−), as in the pictures that Python draws.

/**
 * Three digits with a sign: "+1.25", "−3.1e−7"; "0", "NaN", "+inf".
 * @param {number} value
 */
function number(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+inf" : "−inf";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const digits = size >= 1e4 || size < 1e-3 ? size.toExponential(1) : size.toPrecision(3);
  return (value < 0 ? "−" : "+") + digits.replace("e-", "e−").replace("e+", "e");
}

/**
 * All digits: "0.1", "−2".
 * @param {number} value
 */
function exact(value) {
  return Number.isFinite(value) ? String(value).replaceAll("-", "−") : number(value);
}

/**
 * At most three digits, without a sign unless it is negative: "0.5", "−1".
 * @param {number} value
 */
function weight(value) {
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/**
 * "10,000"
 * @param {number} count
 */
function withCommas(count) {
  return count.toLocaleString("en");
}

/**
 * "1 row", "10,000 rows"
 * @param {number} count
 * @param {string} noun
 */
function plural(count, noun) {
  return `${withCommas(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Shorten a text to `length` characters. A long text keeps its end, where indices are.
 * @param {string} text
 */
function short(text, length = 16) {
  if (text.length <= length) return text;
  return length < 10 ? `${text.slice(0, length - 1)}…` : `${text.slice(0, length - 7)}…${text.slice(-6)}`;
}

/**
 * A number as a short text: "−0.2749", "1.5e−7", "∞".
 * @param {number} x
 */
function shortNumber(x, digits = 4) {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x),
    sign = x < 0 ? "−" : "";
  if (Number.isInteger(x) && size < 1e6) return sign + String(size);
  if (size >= 10 ** digits && size < 1e6) return sign + size.toFixed(0);
  const [mantissa, exponent] = size.toExponential(digits - 1).split("e"),
    power = Number(exponent);
  if (power < -4 || power >= digits) return `${sign}${bare(mantissa)}e${String(power).replace("-", "−")}`;
  return sign + bare(size.toFixed(Math.max(0, digits - 1 - power)));
}

/** @param {string} text */
function bare(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export { number, shortNumber, exact, weight, withCommas, plural, short };
