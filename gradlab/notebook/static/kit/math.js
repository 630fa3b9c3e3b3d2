// Formulas as MathML, from the nested lists that Python makes from LaTeX (explore/rule_math): ["mfrac", [a], [b]], ["mi", "y"].

const MATHML = "http://www.w3.org/1998/Math/MathML";
const LEAVES = new Set(["mi", "mo", "mn", "mtext"]);
const GROUPS = new Set(["mrow", "mfrac", "msqrt", "msup", "msub", "msubsup", "mover"]);

/** @typedef {[string, ...any[]]} Formula the name of an element, and its children or its text */

/**
 * One formula.
 * @param {Formula} formula
 */
function math(formula) {
  const root = document.createElementNS(MATHML, "math");
  root.setAttribute("displaystyle", "true");
  root.append(element(formula));
  return root;
}

/**
 * @param {Formula} formula
 * @returns {Element}
 */
function element([name, ...parts]) {
  if (LEAVES.has(name)) {
    const node = document.createElementNS(MATHML, name);
    node.textContent = String(parts[0]);
    return node;
  }
  if (name === "mspace") {
    const node = document.createElementNS(MATHML, name);
    node.setAttribute("width", `${Number(parts[0])}em`);
    return node;
  }
  if (name === "mover" && parts[0][0] === "mi" && parts[1][1] === "¯") {
    const node = document.createElementNS(MATHML, "mi"); // a combining bar: in some fonts an accent would overlap the letter
    node.textContent = `${parts[0][1]}\u0304`.normalize();
    node.setAttribute("class", "gl-over");
    return node;
  }
  const node = document.createElementNS(MATHML, GROUPS.has(name) ? name : "mrow");
  node.append(...parts.map(element));
  if (name === "mover") node.setAttribute("accent", "true");
  return node;
}

export { math };
