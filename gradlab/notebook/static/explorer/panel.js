// The panel: all that is known of the chosen node. Source, value and gradient stand open; the rest opens on demand and stays so.

import { html, svgFrom } from "../kit/dom.js";
import { math } from "../kit/math.js";

/** @import { Data } from "./data.js" */

/**
 * What it says of a value or a gradient: one number, or a map and a histogram as SVG.
 * @typedef {object} Numbers
 * @property {string} [norm]
 * @property {string} [odd] how many are not finite
 * @property {string} [text]
 * @property {string} [map]
 * @property {string} [bars]
 * @property {string} [range]
 */

/**
 * What the kernel says of a node; see explore/explorer/panel.py.
 * @typedef {object} Panel
 * @property {number} node
 * @property {string} title
 * @property {[string, string][]} about
 * @property {Numbers | null} value
 * @property {Numbers | null} gradient
 * @property {string} [none]
 * @property {{ rows: [number, string, string, string][], sum: string }} came
 * @property {[number, string, string, string][]} handed
 * @property {string} trouble
 * @property {{ tensors: [string, string, string, string][], bytes: string }} [saved]
 * @property {import("../kit/math.js").Formula[] | null} [rule]
 * @property {{ to: string, node: number, shape: number[] | null, map?: string, words: string }[]} [local]
 * @property {{ code?: string, says?: string }} code
 */

/**
 * @param {Data} data
 * @param {(node: number) => void} go to another node
 */
function panelView(data, go) {
  const body = html("div", { class: "gl-panel-body" }),
    root = html("div", { class: "gl-panel", tabindex: "-1", role: "region", "aria-label": "the chosen node" }, body);
  /** @type {Set<string>} the parts that are open, by title */
  const opened = new Set(["Where the gradient came from"]);

  /**
   * @param {string} title
   * @param {...(Node | string)} content
   */
  function part(title, ...content) {
    const made = html("details", opened.has(title) ? { open: "" } : {}, html("summary", {}, title), ...content);
    made.addEventListener("toggle", () => {
      if (made.open) opened.add(title);
      else opened.delete(title);
    });
    return made;
  }

  /**
   * A table of nodes: what each is called, which leads to it, a norm, a share.
   * @param {[number, string, string, string][]} rows
   */
  function table(rows) {
    return html(
      "table",
      {},
      ...rows.map(([node, label, norm, share]) =>
        html(
          "tr",
          {},
          html("td", {}, html("button", { type: "button", class: "gl-link", onclick: () => go(node) }, label)),
          html("td", { class: "gl-figure-cell" }, norm && `‖·‖ = ${norm}`),
          html("td", { class: "gl-figure-cell" }, share),
        ),
      ),
    );
  }

  /** @param {string} text */
  function copied(text) {
    return html("pre", { tabindex: "0" }, text);
  }

  return {
    root,

    /** What is known without the kernel, until its answer comes. @param {number} node */
    wait(node) {
      const place = data.span(node),
        words = [data.operation(node), data.made(node), data.about.wheres[place] ?? "", data.module(node)]
          .filter(Boolean)
          .join(" · ");
      body.replaceChildren(html("h4", {}, title(data, node)), html("div", { class: "gl-dim" }, words));
    },

    nothing() {
      body.replaceChildren(
        html(
          "p",
          { class: "gl-dim" },
          "Choose a node or a line: its value and gradient, where the gradient came from, the rule that ran and what it saved stand here.",
        ),
      );
    },

    /** @param {Panel} panel @param {number[] | null} members of a fold */
    show(panel, members) {
      const head = html("h4", {}, title(data, panel.node)),
        facts = html("div", { class: "gl-facts" });
      for (const [word, text] of panel.about)
        if (word !== "name") facts.append(html("span", { title: word }, word === "line" ? html("code", {}, text) : text));
      /** @type {HTMLElement[]} */
      const parts = [head, facts];
      if (members) {
        const many = [...data.members(members)].filter((i) => !data.isLeaf(i)).length;
        parts.push(
          html("div", { class: "gl-dim" }, `one of ${many.toLocaleString("en")} operations in this fold: what it hands on`),
        );
      }
      if (panel.trouble) parts.push(html("div", { class: "gl-error" }, panel.trouble));
      const leaf = data.isLeaf(panel.node);
      parts.push(
        html(
          "div",
          { class: "gl-tensors" },
          tensor(panel.value, "value", "not kept"),
          tensor(panel.gradient, "gradient", panel.none ?? (data.about.sweep ? "no gradient arrived here" : "no sweep was seen")),
        ),
      );
      if (panel.came.rows.length)
        parts.push(
          part(
            "Where the gradient came from",
            table(panel.came.rows),
            panel.came.sum ? html("div", { class: "gl-sum" }, panel.came.sum) : "",
          ),
        );
      if (panel.handed.length) parts.push(part("What it handed on", table(panel.handed)));
      const alike = likes(data, panel.node, go);
      if (alike) parts.push(part("The same in all that are alike", alike));
      if (panel.rule)
        parts.push(
          part("The rule that ran", ...panel.rule.map((line) => html("div", { class: "gl-rule gl-formula" }, math(line)))),
        );
      if (panel.local?.length)
        parts.push(
          part(
            "Local Jacobian",
            ...panel.local.map(({ to, shape, map, words }) =>
              html(
                "div",
                { class: "gl-by-input" },
                html(
                  "div",
                  {},
                  "by ",
                  html("b", {}, to),
                  shape ? html("span", { class: "gl-dim" }, ` ${shape[0]} × ${shape[1]}${words ? `: ${words}` : ""}`) : "",
                ),
                map ? svgFrom(map) : "",
              ),
            ),
          ),
        );
      if (panel.saved)
        parts.push(
          part(
            `Saved for backward, ${panel.saved.bytes}`,
            panel.saved.tensors.length
              ? html(
                  "table",
                  {},
                  ...panel.saved.tensors.map((row) =>
                    html("tr", {}, ...row.map((cell, k) => html("td", {}, k ? cell : html("code", {}, cell)))),
                  ),
                )
              : html("div", { class: "gl-dim" }, "nothing"),
          ),
        );
      parts.push(
        part(
          "Equivalent code",
          panel.code.code ? copied(panel.code.code) : html("div", { class: "gl-dim" }, panel.code.says ?? ""),
        ),
      );
      if (leaf) root.dataset.leaf = "";
      else delete root.dataset.leaf;
      body.replaceChildren(...parts);
    },

    focus() {
      root.focus();
    },
  };
}

/**
 * @param {Numbers | null} numbers
 * @param {string} title
 * @param {string} none what is said where there are no numbers
 */
function tensor(numbers, title, none) {
  const head = html("div", { class: "gl-tensor-head" }, html("b", { class: `gl-${title}` }, title)),
    root = html("div", { class: "gl-tensor" }, head);
  if (!numbers) {
    head.append(" ", html("span", { class: "gl-dim" }, none));
    return root;
  }
  const { text, norm, odd, map, bars, range } = numbers;
  if (text === undefined && norm) head.append(html("span", { class: "gl-dim" }, ` ‖·‖ = ${norm}`));
  if (odd) head.append(" ", html("b", {}, odd));
  if (text !== undefined) root.append(html("div", { class: `gl-one gl-${title}` }, text));
  for (const drawing of [map, bars]) if (drawing) root.append(svgFrom(drawing));
  if (range) root.append(html("div", { class: "gl-dim" }, range));
  return root;
}

/** @param {Data} data @param {number} node */
function title(data, node) {
  const name = data.name(node);
  return name && !data.isLeaf(node) && !data.isOutput(node) ? `${name} = ${data.label(node)}` : data.label(node);
}

/**
 * ‖gradient‖ of the same operation in every module that is alike: one bar each; null where there are none.
 * @param {Data} data
 * @param {number} node
 * @param {(node: number) => void} go
 */
function likes(data, node, go) {
  const path = data.module(node),
    general = path.replace(/\.\d+(?=\.|$)/, ".#");
  if (general === path) return null;
  const label = data.label(node),
    place = data.nodes.place[node];
  const found = [];
  for (let i = 0; i < data.count; i++)
    if (data.label(i) === label && data.nodes.place[i] === place && data.module(i).replace(/\.\d+(?=\.|$)/, ".#") === general)
      found.push(i);
  if (found.length < 2 || found.length > 200) return null;
  const norms = found.map((i) => data.norms[i] ?? 0),
    most = Math.max(...norms.filter(Number.isFinite), Number.MIN_VALUE);
  return html(
    "div",
    { class: "gl-alike" },
    ...found.map((i, k) =>
      html("button", {
        type: "button",
        class: i === node ? "gl-here" : "",
        style: `height:${Math.max(2, (34 * norms[k]) / most)}px`,
        title: `${data.module(i)}: ‖gradient‖ ${norms[k].toPrecision(3)}`,
        "aria-label": `${data.module(i)}, norm of the gradient ${norms[k].toPrecision(3)}`,
        onclick: () => go(i),
      }),
    ),
  );
}

export { panelView };
