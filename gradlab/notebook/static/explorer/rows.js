// Code and Modules: the rows that Python drew (explore/explorer/row_folds.py). They are selected, marked and tinted here; when
// one is opened or closed, the kernel draws them again.

import { SUPPRESS, html, scrollWithin, svgFrom } from "../kit/dom.js";

/** @import { Data } from "./data.js" */

/**
 * Callbacks of a selection.
 * @typedef {object} Choosing
 * @property {(node: number, fold: Fold | null) => void} choose
 * @property {() => void} enter go to the panel
 */
/** @typedef {{ label: string, members: number[] }} Fold several nodes that are selected together */
/** @typedef {{ key: string, label: string, at: number, members: number[], depth: number, open: boolean | null, spoken: string }} Row */
/**
 * A picture of rows, as explore/explorer/row_folds.py describes it.
 * @typedef {object} Picture
 * @property {string} [level] "code" or "modules"
 * @property {string} svg
 * @property {number} width
 * @property {number} height
 * @property {boolean} cut
 * @property {string[]} open
 * @property {Record<string, number>} more
 * @property {Row[]} rows
 */

/**
 * @param {Data} data
 * @param {Choosing & { fold: (wish: object, own?: boolean) => void }} choosing `own`: the view asks, not the user
 */
function rowsView(data, choosing) {
  const token = `gl${Math.random().toString(36).slice(2)}`;
  let level = "";
  /** @type {Picture} */
  let picture;
  /** @type {SVGSVGElement} */
  let drawing;
  /** @type {SVGGElement[]} */
  let bands = [];
  /** @type {SVGRectElement[]} the first of each */
  let grounds = [];
  let chosen = ""; // the key of a row
  let room = 0, // px
    asked = 0; // the last width that was requested
  /** @type {number} the node whose row to select when the picture arrives */
  let wished = -1;
  /** @type {Set<number>} */
  let marked = new Set();
  /** @type {(i: number) => string} */
  let colour = () => "";

  const list = html("div", { role: "tree", class: "gl-tree", tabindex: "0", "aria-label": "rows", [SUPPRESS]: "true" }),
    root = html("div", { class: "gl-rows" }, list);

  /** @param {Picture} shown */
  function show(shown) {
    picture = shown;
    drawing = /** @type {SVGSVGElement} */ (svgFrom(picture.svg));
    bands = /** @type {SVGGElement[]} */ ([...drawing.querySelectorAll("[data-row]")]);
    grounds = bands.map((band) => /** @type {SVGRectElement} */ (band.firstElementChild));
    bands.forEach((band, k) => {
      const { key, depth, open, spoken } = picture.rows[k];
      band.setAttribute("role", "treeitem");
      band.setAttribute("id", `${token}-${key}`);
      band.setAttribute("aria-level", String(depth + 1));
      band.setAttribute("aria-label", spoken);
      if (open !== null) band.setAttribute("aria-expanded", String(open));
    });
    stretch();
    mark();
    tint();
    list.replaceChildren(drawing);
    if (wished >= 0) follow(wished);
    else choose(chosen, false);
  }

  /** @param {object} wish @param {boolean} [own] */
  function ask(wish, own) {
    choosing.fold({ level, open: picture.open, more: picture.more, width: room, ...wish }, own);
  }

  /** Make the rows as wide as the view, and request a new picture if they do not fit. */
  function stretch() {
    if (!room || !picture) return;
    const wide = Math.max(room, picture.width);
    drawing.setAttribute("width", String(wide));
    drawing.setAttribute("viewBox", `0 0 ${wide} ${picture.height}`);
    for (const ground of grounds) ground.setAttribute("width", String(wide - ground.x.baseVal.value - 2));
    if (asked !== room && (picture.width > room + 1 || (picture.cut && room > picture.width + 1))) {
      asked = room;
      ask({}, true);
    }
  }

  // ------------------------------------------------------------------------------------------------------ the choice
  /** @param {string} key @param {boolean} [notify] */
  function choose(key, notify = true) {
    const at = picture.rows.findIndex((row) => row.key === key);
    bands.forEach((band, k) => band.setAttribute("aria-selected", String(k === at)));
    if (at < 0) return list.removeAttribute("aria-activedescendant");
    chosen = key;
    wished = -1;
    list.setAttribute("aria-activedescendant", `${token}-${key}`);
    scrollWithin(list, bands[at]);
    const { at: node, members, label } = picture.rows[at];
    if (notify && node >= 0) choosing.choose(node, members.length === 2 && members[1] === 1 ? null : { label, members });
  }

  /** The closed row of each node; for a leaf without a row, the first row that uses it; −1 if there is none. */
  function owners() {
    const owner = new Int32Array(data.count).fill(-1);
    picture.rows.forEach(({ open, members }, k) => {
      if (!open) for (const i of data.members(members)) owner[i] = k;
    });
    for (let i = 0; i < data.count; i++) {
      if (owner[i] >= 0 || !data.isLeaf(i)) continue;
      const users = data.uses[i].map((use) => owner[use]).filter((k) => k >= 0);
      if (users.length) owner[i] = Math.min(...users);
    }
    return owner;
  }

  /** Choose the row that a node is in. @param {number} node */
  function follow(node) {
    choose(picture.rows[owners()[node]]?.key ?? "", false);
  }

  /** @param {string} key */
  function toggle(key) {
    const row = picture.rows.find((one) => one.key === key);
    if (!row || row.open === null) return;
    if (key.endsWith(".more")) ask({ extend: key.slice(0, -".more".length) });
    else ask({ open: row.open ? picture.open.filter((other) => other !== key) : [...picture.open, key] });
  }

  // ------------------------------------------------------------------------------------------------------ mouse and keys
  list.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    const leaf = event.target.closest("[data-leaf]"),
      band = event.target.closest("[data-row]");
    if (leaf instanceof SVGElement) choosing.choose(Number(leaf.dataset.leaf), null);
    else if (band instanceof SVGElement) {
      const { key } = picture.rows[Number(band.dataset.row)];
      choose(key);
      if (event.target.closest(".gl-twist")) toggle(key);
    }
  });
  list.addEventListener("dblclick", (event) => {
    if (event.target instanceof Element && !event.target.closest(".gl-twist, [data-leaf]")) toggle(chosen);
  });
  list.addEventListener("keydown", (event) => {
    const { rows } = picture,
      at = rows.findIndex((row) => row.key === chosen),
      go = (/** @type {number} */ to) => choose(rows[Math.max(0, Math.min(rows.length - 1, to))].key);
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(rows.length - 1);
    else if (event.key === "ArrowRight" && rows[at]?.open === false) toggle(chosen);
    else if (event.key === "ArrowRight") go(at + 1);
    else if (event.key === "ArrowLeft" && rows[at]?.open) toggle(chosen);
    else if (event.key === "ArrowLeft") {
      const outer = rows.findIndex((row) => row.key === chosen.slice(0, Math.max(0, chosen.lastIndexOf("."))));
      if (outer >= 0) go(outer);
    } else if (event.key === "Enter") choosing.enter();
    else return;
    event.preventDefault();
  });

  function mark() {
    const owner = marked.size && picture ? owners() : [],
      found = new Set([...marked].map((i) => owner[i]));
    grounds.forEach((ground, k) => ground.classList.toggle("gl-marked", found.has(k)));
  }
  function tint() {
    grounds.forEach((ground, k) => {
      const { open, at } = picture.rows[k],
        fill = open || at < 0 || data.isOutput(at) ? "" : colour(at);
      ground.style.fill = fill;
      bands[k].classList.toggle("gl-shaded", fill !== "");
    });
  }

  const resized = new ResizeObserver(() => {
    room = Math.floor(list.clientWidth) || room; // 0 while another level is shown
    stretch();
  });
  resized.observe(list);
  return {
    root,
    list,
    follow,

    /**
     * Show the initial rows of a level.
     * @param {string} name
     * @param {Picture} first
     */
    turn(name, first) {
      level = name;
      chosen = "";
      asked = 0;
      show(first);
    },

    /** Show the kernel's answer. @param {Picture} shown */
    show(shown) {
      if (shown.level === level) show(shown);
    },

    /** Whether a node has a row of its own. @param {number} node */
    shows: (node) => picture.rows.some(({ open, members }) => open === null && [...data.members(members)].includes(node)),

    /** Open the rows around a node. @param {number} node */
    reveal(node) {
      wished = node;
      ask({ node });
    },

    /** Open all rows down to a depth. @param {number} depth */
    unfoldTo: (depth) => ask({ depth }),

    /** @param {number[]} nodes */
    mark(nodes) {
      marked = new Set(nodes);
      mark();
    },

    /** @param {(i: number) => string} by the colour of a node; "" for none */
    tint(by) {
      colour = by;
      tint();
    },

    end: () => resized.disconnect(),
  };
}

export { rowsView };
