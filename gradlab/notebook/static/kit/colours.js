// Colours: the diverging scale for signed numbers, symmetrical about zero, whose three anchors Python sends, so that a live view
// and a static picture agree; and ten colours that tell classes apart, also for the colour-blind (Tol's muted scheme).

/** @typedef {[number, number, number]} RGB from 0 to 255 */
/** @typedef {[RGB, RGB, RGB]} Anchors of −1, 0 and 1 */

const CLASSES = ["#44aa99", "#332288", "#ddcc77", "#aa4499", "#88ccee", "#117733", "#cc6677", "#999933", "#882255", "#bbbbbb"];
const MANY = "#7f8a99"; // of what is in several classes
/** @type {RGB} */
const UNDEFINED = [150, 156, 164]; // of NaN
/** @type {RGB[]} */
const INKS = [
  [40, 44, 52],
  [255, 255, 255],
  [0, 0, 0],
]; // of a number in a cell: the first that can be read there
const CONTRAST = 4.5; // of a number on its cell at least

/**
 * The colour of t, from −1 to 1; beyond, that of the ends.
 * @param {Anchors} anchors
 * @returns {(t: number) => RGB}
 */
function diverging([negative, zero, positive]) {
  return (t) => {
    const end = t < 0 ? negative : positive,
      a = Math.min(1, Math.abs(t));
    return /** @type {RGB} */ (zero.map((c, k) => Math.round(c + a * (end[k] - c))));
  };
}

/**
 * "rgb(1,2,3)"
 * @param {RGB} rgb
 */
function css(rgb) {
  return `rgb(${rgb.join(",")})`;
}

/**
 * The ink for a number on a cell of this colour. As in the static pictures (explore/heat.ink_on).
 * @param {RGB} ground
 */
function inkOn(ground) {
  return INKS.find((ink) => contrast(ink, ground) >= CONTRAST) ?? INKS[0];
}

/**
 * The contrast ratio of two colours, from 1 to 21 (WCAG 2.2).
 * @param {RGB} one
 * @param {RGB} other
 */
function contrast(one, other) {
  const [dark, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

/** @param {RGB} rgb */
function luminance(rgb) {
  const [red, green, blue] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * The same scale as a CSS background, from left to right.
 * @param {Anchors} anchors
 */
function gradient(anchors) {
  return `linear-gradient(90deg, ${anchors.map(css).join(", ")})`;
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
  const digits = parseInt(classColour(k).slice(1), 16);
  return css(inkOn([digits >> 16, (digits >> 8) & 255, digits & 255]));
}

export { MANY, UNDEFINED, css, inkOn, diverging, gradient, classColour, classInk };
