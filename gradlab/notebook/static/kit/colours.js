// Colours: the diverging scale for signed numbers, symmetrical about zero, whose three anchors Python sends, so that a live view
// and a static picture agree; and ten colours that tell classes apart, also for the colour-blind (Tol's muted scheme).

/** @typedef {[number, number, number]} RGB from 0 to 255 */
/** @typedef {[RGB, RGB, RGB]} Anchors of −1, 0 and 1 */

const CLASSES = ["#44aa99", "#332288", "#ddcc77", "#aa4499", "#88ccee", "#117733", "#cc6677", "#999933", "#882255", "#bbbbbb"];
const DARK = [1, 3, 5, 8]; // of them; text on these is white
const MANY = "#7f8a99"; // of what is in several classes
const UNDEFINED = "rgb(150,156,164)"; // of NaN

/**
 * The colour of t, from −1 to 1; beyond, that of the ends.
 * @param {Anchors} anchors
 * @returns {(t: number) => string}
 */
function diverging([negative, zero, positive]) {
  return (t) => {
    const end = t < 0 ? negative : positive,
      a = Math.min(1, Math.abs(t));
    return `rgb(${zero.map((c, k) => Math.round(c + a * (end[k] - c))).join(",")})`;
  };
}

/**
 * The same scale as a CSS background, from left to right.
 * @param {Anchors} anchors
 */
function gradient(anchors) {
  return `linear-gradient(90deg, ${anchors.map((rgb) => `rgb(${rgb.join(",")})`).join(", ")})`;
}

/**
 * The colour of class k.
 * @param {number} k
 */
function classColour(k) {
  return CLASSES[k % CLASSES.length];
}

/**
 * The colour of a text on it.
 * @param {number} k
 */
function classInk(k) {
  return DARK.includes(k % CLASSES.length) ? "#fff" : "#1c2430";
}

export { MANY, UNDEFINED, diverging, gradient, classColour, classInk };
