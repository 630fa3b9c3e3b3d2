// "What if I forget to …": the loop over rows with one of its lines left out, on the rows of the user's own graph.

import { SUPPRESS, html } from "../kit/dom.js";

/** @import { Ask } from "./controls.js" */
/** @import { Shown } from "./shown.js" */

/**
 * @param {Shown} shown
 * @param {Ask} wish
 */
function whatIf(shown, wish) {
  const zero = checkbox(() => forget()),
    retain = checkbox(() => forget()),
    said = html("div", { class: "gl-dim" }, "Run on your graph's own rows, in a .grad of its own: yours stays as it is."),
    { unforgettable } = shown.about;
  const root = html(
    "fieldset",
    { class: "gl-forget" },
    html("legend", {}, "what if I forget to …"),
    html("label", { title: unforgettable.zero || "the next rows are added to what is in .grad" }, zero, " ", "zero the gradient"),
    html("label", { title: unforgettable.retain || "the first backward frees what it needs" }, retain, " ", "retain the graph"),
    said,
  );
  zero.disabled = unforgettable.zero !== "";
  retain.disabled = unforgettable.retain !== "";
  const happened = html("p", { class: "gl-error", role: "alert", hidden: "" });

  function forget() {
    wish("forget", { zero: zero.checked, retain: retain.checked });
  }

  return {
    root,
    happened,

    update() {
      const { frame } = shown;
      zero.checked = frame.zero;
      retain.checked = frame.retain;
      root.hidden = shown.across;
      happened.textContent = frame.happened ? `This is what then happens:\n${frame.happened}` : "";
      happened.hidden = !frame.happened;
    },
  };
}

/** @param {() => void} onchange */
function checkbox(onchange) {
  return html("input", { type: "checkbox", [SUPPRESS]: "true", onchange });
}

export { whatIf };
