// The colours of a sparse Jacobian: rows, or columns, of one colour share a sweep. The map shows each cell's colour instead of
// its number, and the list shows the members of each colour; selecting one runs its sweep.

import { SUPPRESS, button, html } from "../kit/dom.js";
import { withCommas, plural } from "../kit/format.js";
import { membersText } from "./words.js";

/** @import { Answer } from "../kit/kernel.js" */
/** @import { Ask } from "./controls.js" */
/** @import { By, Shown } from "./shown.js" */

/** @typedef {{ size: number, members: string[], colours: [string, string] }} Group with its colour and its text colour */

/**
 * The kernel's answer to "colours", with the array `groupCells` (explore/jacobian/view_model.JacobianViewModel.colours).
 * @typedef {{ by: By, sweeps: number, entries: number, groups: Group[] }} Groups
 */

/**
 * @param {Shown} shown
 * @param {Ask} ask
 * @param {() => void} changed draw the view
 */
function colouring(shown, ask, changed) {
  const root = html("div", { class: "gl-grouplist", hidden: "" });
  const toggle = button("colours", "which rows or columns share a sweep", () => {
    if (!shown.classes) {
      ask("colours");
      return;
    }
    shown.classes = null;
    changed();
  });
  toggle.setAttribute("aria-pressed", "false");
  toggle.hidden = !shown.about.groups;

  /**
   * @param {Group} group
   * @param {number} k
   * @param {By} by
   */
  function item({ size, members, colours: [ground, ink] }, k, by) {
    const swatch = html("i", {}, String(k));
    swatch.style.cssText = `background:${ground};color:${ink}`;
    return html(
      "button",
      { type: "button", [SUPPRESS]: "true", title: "compute this colour", onclick: () => ask("group", { colour: k }) },
      swatch,
      ` ${plural(size, by.slice(0, -1))}: `,
      membersText(members, size),
    );
  }

  return {
    root,
    toggle,

    /**
     * Show the colours that the kernel has sent.
     * @param {Answer & Groups} answer
     */
    show({ by, entries, sweeps, groups, groupCells }) {
      const other = by === "rows" ? "column" : "row";
      shown.classes = groupCells;
      const summary =
        `${withCommas(entries)} entries can be nonzero; ${by} of one colour share no ${other}, ` +
        `so all take ${plural(sweeps, "sweep")}`;
      root.replaceChildren(html("div", { class: "gl-dim" }, summary), ...groups.map((group, k) => item(group, k, by)));
      const more = sweeps - groups.length;
      if (more > 0) root.append(html("div", { class: "gl-dim" }, `and ${more} more colours`));
    },

    /**
     * Request the colours again if a frame shows other cells.
     * @param {Answer} answer
     */
    follow(answer) {
      if (!answer.moved || !shown.classes) return;
      shown.classes = null;
      ask("colours");
    },

    update() {
      root.hidden = shown.classes === null;
      toggle.setAttribute("aria-pressed", String(shown.classes !== null));
    },
  };
}

export { colouring };
