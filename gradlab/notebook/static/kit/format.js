// Numbers and names as short text. Signs are typographic (−), as in the pictures that Python draws.

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
 * A finite number for a cell of a map: as many of three digits as six characters hold, "−0.017", "1.23e5", "12345". As Python's
 * static pictures have them (explore/heat.brief).
 * @param {number} value
 */
function brief(value) {
  const size = Math.abs(value),
    sign = value < 0 ? "−" : "",
    texts = size >= 999.5 && size < 99999.5 ? [size.toFixed(0)] : [3, 2, 1].map((digits) => significant(size, digits));
  return sign + (texts.find((text) => text.length + sign.length <= 6) ?? texts[texts.length - 1]);
}

/**
 * So many digits without zeros at the end: "0.5", "1.2e−5".
 * @param {number} size not negative
 * @param {number} digits
 */
function significant(size, digits) {
  const [mantissa, power] = size.toExponential(digits - 1).split("e"),
    bare = (/** @type {string} */ text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text),
    exponent = Number(power);
  if (size && (exponent < -3 || exponent >= digits)) return `${bare(mantissa)}e${String(exponent).replace("-", "−")}`;
  return bare(size.toFixed(Math.max(0, digits - 1 - exponent)));
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
function grouped(count) {
  return count.toLocaleString("en");
}

/**
 * "1 row", "10,000 rows"
 * @param {number} count
 * @param {string} noun
 */
function plural(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A text of at most `length` characters; of a long one the end is kept, where indices stand.
 * @param {string} text
 */
function short(text, length = 16) {
  if (text.length <= length) return text;
  return length < 10 ? `${text.slice(0, length - 1)}…` : `${text.slice(0, length - 7)}…${text.slice(-6)}`;
}

export { number, brief, exact, weight, grouped, plural, short };
