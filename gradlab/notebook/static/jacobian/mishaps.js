// "What if I forget to …": the loop over rows with one of its lines left out, really run, on tensors of its own.

import { SUPPRESS, html } from "../kit/dom.js";

/** @import { Ask } from "./controls.js" */
/** @import { Shown } from "./shown.js" */

/**
 * @param {Shown} shown
 * @param {Ask} wish
 */
function mishaps(shown, wish) {
  const zero = checkbox(() => forget()),
    retain = checkbox(() => forget()),
    said = html("span", { class: "gl-dim" });
  const root = html(
    "fieldset",
    { class: "gl-forget" },
    html("legend", {}, "what if I forget to …"),
    html("label", { title: "the next rows are added to what is in .grad" }, zero, " ", "zero the gradient"),
    html("label", { title: "the first backward frees what it needs" }, retain, " ", "retain the graph"),
    said,
  );
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
      said.textContent = shown.trial ? "Really run, on tensors of its own: yours stay as they are." : "";
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

export { mishaps };
