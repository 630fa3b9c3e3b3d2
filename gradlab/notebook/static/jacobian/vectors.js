// The vectors of a sweep: the weights v (or u) as boxes, the lines of J that they weight, the result vᵀJ (or Ju) as numbers with
// their names, its description, and equivalent code. Space for the numbers is reserved before there are any.

import { SUPPRESS, html } from "../kit/dom.js";
import { withCommas, number, short, weight } from "../kit/format.js";
import { clamp } from "../kit/ranges.js";
import { NUMBERS, meaning, weighting } from "./words.js";

/** @import { Shown } from "./shown.js" */

const BOXES = 12; // weights shown, if there are no more
const SOME = 9; // weights shown of more

/** @param {Shown} shown */
function vectors(shown) {
  const boxes = html("span", { class: "gl-vector", role: "img" }),
    numbers = html("div", { class: "gl-numbers", role: "list" }),
    description = html("div", { class: "gl-dim gl-meaning" }),
    applied = html("code"),
    weighted = html("span"),
    arrives = html("div", { class: "gl-dim gl-weighting" }, applied, " ", weighted);
  const weightsName = html("span", { class: "gl-accent" }, "v"),
    productName = html("span", { class: "gl-accent" }, "vᵀJ");
  const root = html(
    "div",
    { class: "gl-vectors" },
    weightsName,
    html("div", {}, boxes, arrives),
    productName,
    html("div", {}, numbers, description),
  );
  const code = html("pre", { tabindex: "0", "aria-label": "equivalent code", [SUPPRESS]: "true" });

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
    if (to < many) boxes.append(` … (${withCommas(many)})`);
    boxes.setAttribute("aria-label", `${shown.letter} ${weighting(shown)}`);
  }

  /**
   * @param {number} i an element of the result
   * @param {number} [value] undefined: not computed yet
   */
  function numberBox(i, value) {
    const name = shown.elementName(i),
      text = value === undefined ? "·" : number(value);
    return html(
      "span",
      { role: "listitem", title: `${name}: ${value ?? "not computed yet"}` },
      html("small", {}, short(name, 11)),
      text,
    );
  }

  function fillNumbers() {
    const { result = new Float64Array(), places = new Int32Array() } = shown.frame,
      room = Math.min(NUMBERS, shown.length),
      list = Array.from({ length: room }, (_, k) =>
        !result.length
          ? numberBox(k)
          : k < result.length
            ? numberBox(places[k], result[k])
            : html("span", { class: "gl-room" }, html("small", {}, "·"), "·"),
      );
    numbers.replaceChildren(...list);
  }

  return {
    root,
    code,

    update() {
      weightsName.textContent = shown.letter;
      productName.textContent = shown.product;
      fillBoxes();
      fillNumbers();
      applied.textContent = shown.across ? "" : shown.about.backward;
      weighted.textContent = shown.across ? `u ${weighting(shown)}` : weighting(shown);
      description.textContent = meaning(shown);
      code.textContent = shown.frame.code;
    },
  };
}

export { vectors };
