// The vectors of a sweep: the weights v (or u) as boxes, the result vᵀJ (or Ju) as numbers with their names, what it is in
// words, and the code that computes the same by hand.

import { SUPPRESS, html } from "../kit/dom.js";
import { grouped, number, short, weight } from "../kit/format.js";
import { clamp } from "../kit/ranges.js";
import { NUMBERS, meaning, weightsText } from "./words.js";

/** @import { Shown } from "./shown.js" */

const BOXES = 12; // weights written out, where there are no more
const SOME = 9; // of more

/** @param {Shown} shown */
function vectors(shown) {
  const boxes = html("span", { class: "gl-vector", role: "img" }),
    numbers = html("div", { class: "gl-numbers", role: "list" }),
    said = html("span", { class: "gl-dim" });
  const weightsName = html("span", { class: "gl-accent" }, "v"),
    productName = html("span", { class: "gl-accent" }, "vᵀJ");
  const root = html("div", { class: "gl-vectors" }, weightsName, boxes, productName, html("div", {}, numbers, said));
  const code = html("pre", { tabindex: "0", "aria-label": "code that does the same by hand", [SUPPRESS]: "true" });

  function fillBoxes() {
    const { weights, many, frame } = shown,
      at = frame.at < 0 && weights.size ? Math.min(...weights.keys()) : frame.at,
      from = many <= BOXES ? 0 : clamp(at - 4, 0, many - SOME),
      to = many <= BOXES ? many : from + SOME;
    boxes.replaceChildren();
    if (from > 0) boxes.append("… ");
    for (let i = from; i < to; i++) {
      const value = weights.get(i) ?? 0;
      boxes.append(html("i", { class: value ? "gl-on" : "", title: `weight of ${shown.name(i)}` }, weight(value)));
    }
    if (to < many) boxes.append(` … (${grouped(many)})`);
    boxes.setAttribute("aria-label", weightsText(shown));
  }

  /**
   * @param {number} value
   * @param {number} k its place in the result
   */
  function numberBox(value, k) {
    const name = shown.elementName(shown.frame.start + k);
    return html("span", { role: "listitem", title: `${name}: ${value}` }, html("small", {}, short(name, 11)), number(value));
  }

  return {
    root,
    code,

    update() {
      weightsName.textContent = shown.letter;
      productName.textContent = shown.product;
      fillBoxes();
      numbers.replaceChildren(...Array.from((shown.frame.result ?? []).slice(0, NUMBERS), numberBox));
      said.textContent = meaning(shown);
      code.textContent = shown.frame.code;
    },
  };
}

export { vectors };
