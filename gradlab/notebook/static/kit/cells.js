// A cell that pools many entries: their least and greatest finite value, and flags of the values that are not finite. The Python
// half is explore/heat_cells.py.

const KNOWN = 1, // the bits of the flags of a cell
  NAN = 2,
  PLUS = 4,
  MINUS = 8;

/**
 * The number that gives a cell its colour: a value that is not finite, else the larger in size.
 * @param {number} low
 * @param {number} high
 * @param {number} flags
 */
function worth(low, high, flags) {
  return flags & NAN ? NaN : flags & PLUS ? Infinity : flags & MINUS ? -Infinity : high >= -low ? high : low;
}

/**
 * The values in a cell that are not finite: "NaN, +inf"; empty if there are none.
 * @param {number} flags
 */
function oddities(flags) {
  return [flags & NAN ? "NaN" : "", flags & PLUS ? "+inf" : "", flags & MINUS ? "−inf" : ""].filter(Boolean).join(", ");
}

export { KNOWN, worth, oddities };
