// A formula as Python tells it (explore/explorer/rule.py): nested lists named after MathML's elements.

const MATH = "http://www.w3.org/1998/Math/MathML";
const KNOWN = new Set(["mrow", "mi", "mo", "mn", "mfrac", "msqrt", "msup", "msub", "msubsup", "mover", "mspace"]);

/** @typedef {[string, ...any[]]} Formula */

/** @param {Formula} formula */
function math(formula) {
  const root = document.createElementNS(MATH, "math");
  root.setAttribute("displaystyle", "true");
  root.append(element(formula));
  return root;
}

/**
 * @param {Formula} formula
 * @returns {Element}
 */
function element([name, ...parts]) {
  const node = document.createElementNS(MATH, KNOWN.has(name) ? name : "mrow");
  if (name === "mspace") node.setAttribute("width", `${parts[0]}em`);
  else for (const part of parts) node.append(Array.isArray(part) ? element(/** @type {Formula} */ (part)) : String(part));
  if (name === "mover") node.setAttribute("accent", "true");
  return node;
}

export { math };
