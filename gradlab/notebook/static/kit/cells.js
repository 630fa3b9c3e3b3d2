// What is known of a cell that stands for many entries: the least and the greatest finite one, and which others are among them.
// The Python half is explore/heat_cells.py.

const KNOWN = 1, // the bits of the flags of a cell
  NAN = 2,
  PLUS = 4,
  MINUS = 8;

/**
 * The number that a cell is coloured by: what is not finite first, else the larger in size.
 * @param {number} low
 * @param {number} high
 * @param {number} flags
 */
function worth(low, high, flags) {
  return flags & NAN ? NaN : flags & PLUS ? Infinity : flags & MINUS ? -Infinity : high >= -low ? high : low;
}

/**
 * What else than finite numbers is in a cell: "NaN, +inf"; empty if nothing.
 * @param {number} flags
 */
function oddities(flags) {
  return [flags & NAN ? "NaN" : "", flags & PLUS ? "+inf" : "", flags & MINUS ? "−inf" : ""].filter(Boolean).join(", ");
}

export { KNOWN, worth, oddities };
