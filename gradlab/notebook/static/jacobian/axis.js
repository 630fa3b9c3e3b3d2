// Rows or columns: the cost of each, the choice, and a box to go to one by its name, or its number from 0.

import { SUPPRESS, hasFocus, html } from "../kit/dom.js";
import { plural } from "../kit/format.js";
import { linesText, refusalText } from "./words.js";

/** @import { Ask } from "./controls.js" */
/** @import { By, Shown } from "./shown.js" */

/**
 * @param {Shown} shown
 * @param {string} id of the view
 * @param {Ask} wish
 */
function axis(shown, id, wish) {
  const { rows, columns, groups, axes: possible } = shown.about;
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
  for (const input of Object.values(axes)) input.parentElement?.toggleAttribute("hidden", possible.length < 2);
  if (groups) root.append(html("span", { class: "gl-dim gl-groups" }, `by colours: ${plural(groups, "sweep")}`));

  root.hidden = possible.length < 2 && !groups;

  let refused = ""; // why the text in the box is not a line
  const hint = html("span", { class: "gl-dim gl-hint", id: `${id}-lines`, role: "status" }),
    gotoName = html("span", {}, "row");
  const goto = html("input", {
    ...{ type: "text", class: "gl-goto", spellcheck: "false", autocomplete: "off", [SUPPRESS]: "true" },
    ...{ "aria-describedby": `${id}-lines`, onchange: () => go(), oninput: () => refuse("") },
  });
  const box = html("div", { class: "gl-box" }, html("label", { class: "gl-dim" }, gotoName, goto), hint);

  function go() {
    const text = goto.value.trim();
    if (!text) return;
    const at = shown.lineOf(text);
    if (at < 0) {
      refuse(refusalText(shown, text));
      return;
    }
    goto.value = shown.name(at);
    wish("go", { at });
  }

  /** @param {string} why */
  function refuse(why) {
    refused = why;
    hint.textContent = why || linesText(shown);
    hint.classList.toggle("gl-refused", why !== "");
    goto.setAttribute("aria-invalid", String(why !== ""));
  }

  return {
    nodes: [root, box],

    update() {
      const { by, at } = shown.frame;
      axes[by].checked = true;
      axes.columns.disabled = shown.trial;
      gotoName.textContent = shown.line;
      goto.setAttribute("aria-label", `go to ${shown.line}`);
      box.hidden = shown.many < 2;
      if (hasFocus(goto) || box.hidden) return;
      if (refused && shown.lineOf(goto.value) < 0 && at < 0) return; // the text is still the user's
      goto.value = at < 0 ? "" : shown.name(at);
      refuse("");
    },
  };
}

export { axis };
