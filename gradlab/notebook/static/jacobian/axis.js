// Rows or columns: what each costs, which is stepped through, and a field to go to one by its number.

import { SUPPRESS, focused, html } from "../kit/dom.js";
import { plural } from "../kit/format.js";

/** @import { Ask } from "./controls.js" */
/** @import { By, Shown } from "./shown.js" */

/**
 * @param {Shown} shown
 * @param {string} id of the view
 * @param {Ask} wish
 */
function axis(shown, id, wish) {
  const { rows, columns, groups } = shown.about;
  /** @type {(by: By, cost: string) => HTMLInputElement} */
  const choice = (by, cost) => {
    const properties = { type: "radio", name: `${id}-axis`, value: by, [SUPPRESS]: "true" };
    const input = html("input", { ...properties, onchange: () => wish("axis", { by }) });
    root.append(html("label", {}, input, html("span", {}, html("b", {}, by), " ", html("small", {}, cost))));
    return input;
  };
  const root = html("div", { class: "gl-axis", role: "radiogroup", "aria-label": "by rows or by columns" });
  const axes = {
    rows: choice("rows", plural(rows, "backward sweep")),
    columns: choice("columns", plural(columns, "forward sweep")),
  };
  if (groups) root.append(html("span", { class: "gl-dim gl-groups" }, `by colours: ${plural(groups, "sweep")}`));
  const goto = html("input", { type: "number", min: "0", [SUPPRESS]: "true", class: "gl-goto", onchange: () => go() });
  const gotoName = html("span", {}, "row"),
    gotoLabel = html("label", { class: "gl-dim" }, gotoName, goto);
  root.append(gotoLabel);

  function go() {
    const at = Math.round(Number(goto.value));
    if (goto.value !== "" && at >= 0 && at < shown.many) wish("go", { at });
  }

  return {
    root,

    update() {
      const { by, at } = shown.frame,
        text = `${shown.line} index`;
      axes[by].checked = true;
      axes.columns.disabled = shown.trial;
      gotoName.textContent = text;
      goto.max = String(shown.many - 1);
      goto.setAttribute("aria-label", `go to ${text}`);
      if (!focused(goto)) goto.value = at < 0 ? "" : String(at);
      gotoLabel.hidden = shown.many < 2;
    },
  };
}

export { axis };
