// Elements, made in one expression: html("p", { class: "gl-dim", onclick: … }, "text", child).
//
// Strings become text nodes and attributes are set by setAttribute, so names that users choose cannot inject markup. No file here
// writes markup from a string. A disabled control stays focusable (aria-disabled), so that the focus is not lost when the last
// step disables the button that was pressed.

const SVG = "http://www.w3.org/2000/svg";
const SUPPRESS = "data-lm-suppress-shortcuts"; // JupyterLab leaves keys alone if the focused element has this

/** @typedef {Record<string, string | number | undefined | ((event: any) => void)>} Properties */

/**
 * An HTML element. Properties are attributes, `class`, and listeners ("onclick"); undefined ones are skipped.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} properties
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
function html(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") node.addEventListener(key.slice(2), value);
    else if (value !== undefined) node.setAttribute(key, String(value));
  }
  node.append(...children);
  return node;
}

/**
 * An SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

/**
 * A picture that Python drew, as an element of this page. It is parsed as XML, which runs no script.
 * @param {string} text a complete `<svg>`
 */
function svgFrom(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return /** @type {SVGSVGElement} */ (/** @type {unknown} */ (document.importNode(root, true)));
}

/**
 * A button that does nothing while it is disabled by `disable`.
 * @param {string} text
 * @param {string} title
 * @param {() => void} action
 * @param {string} kind its class
 */
function button(text, title, action, kind = "") {
  const node = html("button", { type: "button", title, class: kind, [SUPPRESS]: "true" }, text);
  node.addEventListener("click", () => {
    if (node.getAttribute("aria-disabled") !== "true") action();
  });
  return node;
}

/**
 * @param {Element} node
 * @param {boolean} on
 */
function disable(node, on) {
  node.setAttribute("aria-disabled", String(on));
}

/**
 * Let screen readers read the title of buttons whose text is a symbol.
 * @param {Element} group
 */
function readByTitle(group) {
  for (const node of group.querySelectorAll("button")) node.setAttribute("aria-label", node.title);
}

/**
 * Whether the focus is on this element, in a page or in a shadow tree.
 * @param {Element} node
 */
function hasFocus(node) {
  const root = node.getRootNode();
  return (root instanceof Document || root instanceof ShadowRoot) && root.activeElement === node;
}

/**
 * Scroll a box, but nothing around it, as little as possible to show an element inside.
 * @param {Element} box
 * @param {Element} inner
 */
function scrollWithin(box, inner) {
  const outside = box.getBoundingClientRect(),
    inside = inner.getBoundingClientRect();
  if (inside.top < outside.top) box.scrollTop -= outside.top - inside.top;
  else if (inside.bottom > outside.bottom) box.scrollTop += inside.bottom - outside.bottom;
}

export { SUPPRESS, html, svg, svgFrom, button, disable, readByTitle, hasFocus, scrollWithin };
