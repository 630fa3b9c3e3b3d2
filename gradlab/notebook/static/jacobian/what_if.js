// "What if I forget to …": the loop over rows without one of its lines, run on the user's graph.

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
    hint = html("div", { class: "gl-dim" }, "This runs on your graph with a separate .grad; yours does not change."),
    { unforgettable } = shown.about;
  const root = html(
    "fieldset",
    { class: "gl-forget" },
    html("legend", {}, "what if I forget to …"),
    html("label", { title: unforgettable.zero || "the next rows are added to .grad" }, zero, " ", "zero the gradient"),
    html(
      "label",
      { title: unforgettable.retain || "the first backward frees the saved tensors" },
      retain,
      " ",
      "retain the graph",
    ),
    hint,
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
      happened.textContent = frame.happened ? `The result is an error:\n${frame.happened}` : "";
      happened.hidden = !frame.happened;
    },
  };
}

/** @param {() => void} onchange */
function checkbox(onchange) {
  return html("input", { type: "checkbox", [SUPPRESS]: "true", onchange });
}

export { whatIf };
