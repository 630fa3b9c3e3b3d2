// Code and Modules: the graph as rows in the order of the program, as a tree that opens and closes without the kernel, with rails at
// the left that fork where a tensor is used by several rows below.

import { SUPPRESS, html, seeWithin, svg } from "../kit/dom.js";
import { said, scaleOf, shareText } from "./data.js";
import { LANES, flowsOf } from "./lanes.js";

/** @import { Data, Row } from "./data.js" */
/** @import { Flow, Seen } from "./lanes.js" */

/**
 * What is chosen, and who is told.
 * @typedef {object} Choosing
 * @property {(node: number, members: number[] | null) => void} choose
 * @property {() => void} enter the panel is wished for
 */

const HIGH = 27; // px of a row
const LANE = 12; // px between rails
const INDENT = 14; // px
const MOST = 200; // nodes that a row opens to at once
const SCREEN = 16; // rows that one sees at once
const ROOM = 800; // rows at once
const CAME = 3,
  CHIPS = 3; // that are named
const PROFILE = 62; // px

/**
 * @param {Data} data
 * @param {Choosing} choosing
 */
function rowsView(data, choosing) {
  /** @type {Row[]} */
  let tree = [];
  let modules = false;
  /** @type {Set<string>} */
  let open = new Set();
  /** @type {Map<string, number>} of nodes that a row shows */
  const more = new Map();
  /** @type {Seen[]} */
  let seen = [];
  /** @type {Flow[]} */
  let flows = [];
  /** @type {Int32Array} */
  let owner = new Int32Array();
  let chosen = "";
  /** @type {Set<number>} */
  let marked = new Set();
  /** @type {(i: number) => string} */
  let tint = () => "";

  const rails = svg("svg", { class: "gl-rails", "aria-hidden": "true" }),
    list = html("div", { role: "tree", class: "gl-tree", tabindex: "0", "aria-label": "rows", [SUPPRESS]: "true" }),
    heads = html("div", { class: "gl-row gl-heads", "aria-hidden": "true" }),
    body = html("div", { class: "gl-rows-body" }, heads, rails, list),
    root = html("div", { class: "gl-rows" }, body);

  // ------------------------------------------------------------------------------------------------------- the rows
  /** @returns {Seen[]} */
  function visible() {
    /** @type {Seen[]} */
    const found = [],
      used = new Set();
    /** @param {Row[]} rows @param {string} prefix @param {number} depth */
    const walk = (rows, prefix, depth) => {
      rows.forEach((row, k) => {
        const key = `${prefix}${k}`,
          ranges = row[5];
        if (row[0] === "node") {
          found.push(single(ranges[0], key, depth));
          return;
        }
        const nodes = [...data.members(ranges)].filter((i) => !data.isLeaf(i)),
          opens = row[6].length > 0 || nodes.length > 1,
          isOpen = opens && open.has(key);
        found.push({ row, node: -1, key, depth, ranges, opens, open: isOpen });
        if (!isOpen) return;
        if (row[6].length) walk(row[6], `${key}.`, depth + 1);
        else {
          const shown = nodes.slice(0, Math.min(more.get(key) ?? MOST, Math.max(0, ROOM - found.length)));
          for (const i of shown) found.push(single(i, `${key}.n${i}`, depth + 1));
          if (shown.length < nodes.length) {
            const rest = nodes.slice(shown.length),
              ranges = rest.flatMap((i) => [i, 1]);
            found.push({
              row: ["more", `${rest.length.toLocaleString("en")} more`, "", "", "more", ranges, []],
              node: -1,
              key: `${key}.more`,
              depth: depth + 1,
              ranges,
              opens: true,
              open: false,
            });
          }
        }
      });
    };
    walk(tree, "", 0);
    for (const one of found) if (!one.open) for (const i of data.members(one.ranges)) used.add(i);
    const owners = new Map();
    found.forEach((one, at) => {
      if (!one.open) for (const i of data.members(one.ranges)) owners.set(i, at);
    });
    const shared = [],
      outputs = [];
    for (let i = 0; i < data.count; i++) {
      if (data.isOutput(i)) outputs.push(single(i, `n${i}`, 0));
      else if (data.isLeaf(i) && !used.has(i) && new Set(data.uses[i].map((use) => owners.get(use))).size > 1)
        shared.push(single(i, `n${i}`, 0));
    }
    return [...(shared.length <= 4 ? shared : []), ...found, ...outputs.slice(0, 2)];
  }

  /** @param {number} i @param {string} key @param {number} depth @returns {Seen} */
  function single(i, key, depth) {
    return { row: null, node: i, key, depth, ranges: [i, 1], opens: false, open: false };
  }

  function draw() {
    seen = visible();
    const found = flowsOf(data, seen);
    ({ flows, owner } = found);
    const scale = scaleOf(seen.flatMap((row, at) => (row.open ? [] : [norm(at)]))),
      wide = 8 + LANE * Math.max(1, found.many);
    const focus = list.contains(document.activeElement) || list === document.activeElement;
    root.style.setProperty("--gl-rail", `${wide}px`);
    heads.replaceChildren(
      html("span", { class: "gl-head-gradient" }, scale ? `‖g‖, log ${scale.text}` : ""),
      html("span", { class: "gl-head-came" }, seen.some((_, at) => cameText(at)) ? "came from" : ""),
      html("span", { class: "gl-head-beside" }, modules ? "parameters, ‖∇W‖" : "parameters"),
    );
    const bands = seen.map((row, at) => band(row, at, scale)),
      widest = (/** @type {string} */ kind, /** @type {number} */ letter, /** @type {number} */ most) =>
        `${Math.min(most, 8 + letter * Math.max(0, ...bands.map((row) => row.querySelector(kind)?.textContent?.length ?? 0)))}px`;
    root.style.setProperty("--gl-gradient-wide", `calc(76px + ${widest(".gl-gradient b", 6.8, 130)})`);
    root.style.setProperty("--gl-made-wide", widest(".gl-made", 6.8, 84));
    root.style.setProperty("--gl-came-wide", widest(".gl-came", 6.2, 130));
    root.style.setProperty("--gl-beside-wide", widest(".gl-beside-row", 6.6, 168));
    list.replaceChildren(...bands);
    drawRails(found.many);
    if (focus) list.focus();
  }

  /** @param {number} at */
  function norm(at) {
    const { end } = flows[at];
    return end < 0 ? null : data.norms[end];
  }

  /**
   * @param {Seen} one
   * @param {number} at
   * @param {ReturnType<typeof scaleOf>} scale
   */
  function band(one, at, scale) {
    const { row, node } = one,
      flow = flows[at],
      leaf = node >= 0 && data.isLeaf(node),
      output = node >= 0 && data.isOutput(node),
      kind = row ? row[0] : leaf ? "leaf" : output ? "output" : "operation";
    const label = row
        ? row[1]
        : output || leaf
          ? data.label(node)
          : [data.name(node) && `${data.name(node)} =`, data.label(node)].filter(Boolean).join(" "),
      small = row ? row[2] : leaf || output ? "" : data.operation(node),
      span = node >= 0 && !leaf && !output ? data.about.spans[data.span(node)] : null,
      line = row ? row[3] : span ? String(span[1]) : "",
      number = one.open ? "" : said(norm(at)),
      came = one.open ? "" : cameText(at);
    const cells = [
      html("span", { class: "gl-number" }, line),
      html(
        "span",
        { class: "gl-title", style: `padding-left:${INDENT * one.depth}px` },
        html("span", { class: "gl-twist", "aria-hidden": "true" }, one.opens ? (one.open ? "▾" : "▸") : ""),
        kind === "line" ? html("code", {}, label) : html("b", {}, label),
        small ? html("small", {}, small) : "",
      ),
      html("span", { class: "gl-made" }, flow.end >= 0 && !one.open ? data.made(flow.end) : ""),
      html("span", { class: "gl-gradient" }, ...gradientCell(one, at, number, scale)),
      html("span", { class: "gl-came" }, came),
      html("span", { class: "gl-beside-row" }, ...(one.open ? [] : chips(flow.leaves))),
    ];
    const spoken = [label, small, line && `line ${line}`, number && `norm of the gradient ${number}`, came && `came from ${came}`]
      .filter(Boolean)
      .join(", ");
    const made = html(
      "div",
      {
        class: `gl-row gl-row-${kind}${one.open ? " gl-opened" : ""}`,
        role: "treeitem",
        id: `${token}-${one.key}`,
        "aria-level": one.depth + 1,
        "aria-selected": String(one.key === chosen),
        "aria-expanded": one.opens ? String(one.open) : undefined,
        "aria-label": spoken,
        "data-key": one.key,
        title: small ? `${label} · ${small}` : label,
      },
      ...cells,
    );
    const background = flow.end >= 0 && !one.open ? tint(flow.end) : "";
    if (background) made.style.background = background;
    made.classList.toggle("gl-marked", [...data.members(one.ranges)].some((i) => marked.has(i)) && !one.open);
    return made;
  }

  const token = `gl${Math.random().toString(36).slice(2)}`;

  /**
   * A bar and the number; of a row of several that are alike a small bar for each.
   * @param {Seen} one
   * @param {number} at
   * @param {string} number
   * @param {ReturnType<typeof scaleOf>} scale
   */
  function gradientCell(one, at, number, scale) {
    if (one.open || !scale) return [number];
    if (one.node >= 0 && data.none.has(one.node)) return [html("span", { class: "gl-none" }, "no gradient")];
    if (one.row?.[0] === "stack") {
      const norms = one.row[6].map((copy) => data.norms[data.handing(copy[5])] ?? null),
        known = /** @type {number[]} */ (norms.filter((n) => n !== null)),
        width = Math.max(1, Math.min(8, PROFILE / norms.length - 1));
      const bars = norms.map((n) => html("i", { style: `width:${width}px;height:${Math.max(1, 17 * scale.part(n))}px` }));
      const [low, high] = [Math.min(...known), Math.max(...known)];
      return [
        html("span", { class: "gl-profile" }, ...bars),
        known.length ? html("b", {}, low === high ? said(low) : `${said(low)} … ${said(high)}`) : "",
      ];
    }
    if (!number) return [""];
    return [
      html("span", { class: "gl-track" }, html("i", { style: `width:${100 * scale.part(norm(at))}%` })),
      html("b", {}, number),
    ];
  }

  /** @param {number} at */
  function cameText(at) {
    const { came } = flows[at];
    if (came.length < 2 && came.every(([target]) => target > at)) return "";
    const parts = [...came]
      .sort((a, b) => Math.abs(b[1] ?? 0) - Math.abs(a[1] ?? 0))
      .slice(0, CAME)
      .map(([target, share]) => {
        const where = called(target) + (target < at ? " of the next round" : "");
        return share !== null && came.length > 1 ? `${shareText(share)} ${where}` : where;
      });
    return parts.join(" · ") + (came.length > CAME ? ` and ${came.length - CAME} more` : "");
  }

  /** @param {number} at */
  function called(at) {
    const { row, node } = seen[at];
    return row ? row[4] || row[1] : data.name(node) || data.label(node);
  }

  /** @param {number[]} leaves */
  function chips(leaves) {
    if (leaves.length > CHIPS) {
      const known = leaves.map((i) => data.norms[i]).filter((n) => n !== null),
        without = leaves.filter((i) => data.none.has(i)).length,
        sum = known.length ? said(Math.hypot(.../** @type {number[]} */ (known))) : "";
      return [
        html("span", { class: "gl-pill" }, `${leaves.length} parameters`, sum ? html("em", {}, ` ${sum}`) : ""),
        without ? html("span", { class: "gl-none" }, `${without} without gradient`) : "",
      ];
    }
    return leaves.map((i) => {
      const label = data.label(i),
        short = modules ? label.split(".").slice(-2).join(".") : label;
      const norm = data.none.has(i)
        ? html("span", { class: "gl-none" }, " no gradient")
        : html("em", {}, ` ${said(data.norms[i])}`);
      return html("span", { class: "gl-pill", title: label, "data-leaf": i }, html("b", {}, short), norm);
    });
  }

  /** Open the largest modules first, as long as the rows fit a screen; lines stay closed. */
  function openWhatFits() {
    for (;;) {
      const rows = visible(),
        closed = rows.filter(({ row, open }) => row && row[6].length > 1 && !open && row[0] !== "line"),
        alone = rows.filter(({ row, open }) => row && row[6].length === 1 && !open && row[0] !== "line");
      const next = [...alone, ...closed.filter(({ row }) => rows.length + (row?.[6].length ?? 0) <= SCREEN)].sort(
        (a, b) => size(b) - size(a),
      )[0];
      if (!next) return;
      open.add(next.key);
    }
  }

  /** @param {Seen} one */
  function size({ ranges }) {
    return ranges.reduce((sum, many, k) => sum + (k % 2 ? many : 0), 0);
  }

  // ------------------------------------------------------------------------------------------------------- the rails
  /** @param {number} many lanes */
  function drawRails(many) {
    const high = HIGH * seen.length,
      x = (/** @type {number} */ at) => 8 + LANE * Math.min(flows[at].lane, LANES - 1),
      y = (/** @type {number} */ at) => HIGH * at + HIGH / 2;
    rails.setAttribute("width", String(8 + LANE * Math.max(1, many)));
    rails.setAttribute("height", String(high));
    /** @type {SVGElement[]} */
    const parts = [];
    seen.forEach((one, at) => {
      if (one.open) return;
      const ends = flows[at].came.filter(([target]) => target > at),
        flow = norm(at) !== null;
      for (const [target, share] of ends) {
        const thick = !flow ? 1.3 : flows[at].came.length === 1 || share === null ? 3 : 1 + 2.4 * Math.min(Math.abs(share), 1),
          near = y(Math.max(at, target - 1)),
          half = (near + y(target)) / 2;
        const path =
          x(at) === x(target) ? `V${y(target)}` : `V${near}C${x(at)} ${half} ${x(target)} ${half} ${x(target)} ${y(target)}`;
        const aside =
          x(at) !== x(target) && x(target) > x(at) ? `C${x(at)} ${(y(at) + near) / 2} ${x(at)} ${near} ${x(at)} ${near}` : "";
        parts.push(
          svg("path", {
            d: `M${x(at)} ${y(at)}${aside && near > y(at) ? `V${near}` : ""}${path}`,
            "stroke-width": thick,
            class: flow ? "gl-flow" : "gl-still",
          }),
        );
      }
    });
    seen.forEach((one, at) => {
      if (!one.open)
        parts.push(svg("circle", { cx: x(at), cy: y(at), r: one.node >= 0 && !data.isOutput(one.node) ? 2.6 : 3.6 }));
    });
    rails.replaceChildren(...parts);
  }

  // ---------------------------------------------------------------------------------------------------- hand and keys
  /** @param {string} key @param {boolean} [on] */
  function toggle(key, on = !open.has(key)) {
    if (key.endsWith(".more")) {
      const outer = key.slice(0, -5);
      more.set(outer, (more.get(outer) ?? MOST) + MOST);
    } else if (on) open.add(key);
    else open.delete(key);
    draw();
  }

  /** @param {number} at @param {boolean} [tell] */
  function choose(at, tell = true) {
    const one = seen[at];
    if (!one) return;
    chosen = one.key;
    for (const row of list.children)
      row.setAttribute("aria-selected", String(row instanceof HTMLElement && row.dataset.key === chosen));
    list.setAttribute("aria-activedescendant", `${token}-${chosen}`);
    if (list.children[at]) seeWithin(body, list.children[at]);
    const node = one.open ? data.handing(one.ranges) : flows[at].end;
    if (tell && node >= 0) choosing.choose(node, one.row ? one.ranges : null);
  }

  const place = () =>
    Math.max(
      0,
      seen.findIndex((one) => one.key === chosen),
    );
  list.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    const leaf = event.target.closest("[data-leaf]"),
      row = event.target.closest(".gl-row");
    if (leaf instanceof HTMLElement) {
      choosing.choose(Number(leaf.dataset.leaf), null);
      return;
    }
    if (!(row instanceof HTMLElement)) return;
    const at = [...list.children].indexOf(row);
    choose(at);
    if (event.target.closest(".gl-twist") && seen[at].opens) toggle(seen[at].key);
  });
  list.addEventListener("dblclick", () => {
    const one = seen[place()];
    if (one?.opens) toggle(one.key);
  });
  list.addEventListener("keydown", (event) => {
    const at = place(),
      one = seen[at];
    if (event.key === "ArrowDown") choose(Math.min(seen.length - 1, chosen ? at + 1 : 0));
    else if (event.key === "ArrowUp") choose(Math.max(0, at - 1));
    else if (event.key === "Home") choose(0);
    else if (event.key === "End") choose(seen.length - 1);
    else if (event.key === "ArrowRight" && one?.opens && !one.open) toggle(one.key, true);
    else if (event.key === "ArrowRight") choose(Math.min(seen.length - 1, at + 1));
    else if (event.key === "ArrowLeft" && one?.open) toggle(one.key, false);
    else if (event.key === "ArrowLeft" && one) {
      const outer = seen.findIndex((other) => other.key === one.key.slice(0, Math.max(0, one.key.lastIndexOf("."))));
      if (outer >= 0) choose(outer);
    } else if (event.key === "Enter") choosing.enter();
    else return;
    event.preventDefault();
  });

  return {
    root,
    list,
    draw,

    /** @param {Row[]} rows @param {boolean} areModules */
    show(rows, areModules) {
      tree = rows;
      modules = areModules;
      open = new Set();
      chosen = "";
      if (areModules) openWhatFits();
      draw();
    },

    /**
     * Mark nodes that were found, and those of a line; with `reveal` the first of them is seen.
     * @param {number[]} nodes
     */
    mark(nodes) {
      marked = new Set(nodes);
      draw();
    },

    /**
     * Choose the row that a node is in, as if from elsewhere; with `unfold` the rows around it are opened first.
     * @param {number} node
     * @param {boolean} unfold
     */
    follow(node, unfold) {
      if (unfold) {
        /** @param {Row[]} rows @param {string} prefix */
        const walk = (rows, prefix) => {
          rows.forEach((row, k) => {
            if (row[0] === "node" || ![...data.members(row[5])].includes(node)) return;
            open.add(`${prefix}${k}`);
            walk(row[6], `${prefix}${k}.`);
          });
        };
        if (!data.isLeaf(node)) walk(tree, "");
        draw();
      }
      const at = seen.findIndex((one) => one.node === node);
      choose(at >= 0 ? at : owner[node], false);
    },

    /** All rows down to a depth. @param {number} depth */
    unfoldTo(depth) {
      open = new Set();
      /** @param {Row[]} rows @param {string} prefix @param {number} left */
      const walk = (rows, prefix, left) => {
        if (left <= 0) return;
        rows.forEach((row, k) => {
          if (row[0] === "node") return;
          open.add(`${prefix}${k}`);
          walk(row[6], `${prefix}${k}.`, left - 1);
        });
      };
      walk(tree, "", depth);
      draw();
    },

    /** @param {(i: number) => string} colour of a node; "" for none */
    tint(colour) {
      tint = colour;
      draw();
    },
  };
}

export { rowsView };
