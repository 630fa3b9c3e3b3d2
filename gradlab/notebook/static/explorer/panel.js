// The panel: everything known about the selected node. Parts below its value and gradient open on demand, and stay open.

import { html, svgFrom } from "../kit/dom.js";
import { math } from "../kit/math.js";
import { term } from "../kit/terms.js";

/** @import { Data } from "./data.js" */
/** @import { Fold } from "./rows.js" */

/**
 * A value or a gradient: one number, or a map and a histogram as SVG.
 * @typedef {object} Numbers
 * @property {string} [norm]
 * @property {string} [odd] how many are not finite
 * @property {string} [text]
 * @property {string} [map]
 * @property {string} [bars]
 * @property {string} [range]
 */

/**
 * The kernel's answer about a node; see explore/explorer/panel.py.
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
 * @property {Together} [fold]
 */
/**
 * The part of it that is about several nodes; see explore/explorer/fold_panel.py.
 * @typedef {object} Together
 * @property {[string, string][]} about
 * @property {[number, string, string, string][]} inputs node, name, shape, gradient
 * @property {string} of the module of the parameters
 * @property {[number, string, string, string, string, string][]} parameters node, name, shape, norms, ratio
 */

/**
 * @param {Data} data
 * @param {(node: number) => void} go to another node
 */
function panelView(data, go) {
  const body = html("div", { class: "gl-panel-body" }),
    root = html("div", { class: "gl-panel", tabindex: "-1", role: "region", "aria-label": "the selected node" }, body);
  /** @type {Set<string>} the parts that are open, by title */
  const opened = new Set(["Where the gradient came from", "Inputs", "Parameters"]);

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
   * A table of nodes: a name that links to the node, a norm, a share.
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
          html("td", {}, link(node, label)),
          html("td", { class: "gl-figure-cell" }, norm && `‖·‖ = ${norm}`),
          html("td", { class: "gl-figure-cell" }, share),
        ),
      ),
    );
  }

  /** @param {[string, string][]} about */
  function facts(about) {
    return html(
      "div",
      { class: "gl-facts" },
      ...about.map(([word, text]) => html("span", { title: word }, word === "line" ? html("code", {}, text) : text)),
    );
  }

  /** @param {number} node −1 of none @param {string} label */
  function link(node, label) {
    return node < 0 ? label : html("button", { type: "button", class: "gl-link", onclick: () => go(node) }, label);
  }

  /**
   * The inputs of several nodes, and their parameters.
   * @param {Together} fold
   */
  function together({ inputs, of, parameters }) {
    const { terms } = data.about,
      cell = (/** @type {string} */ text, /** @type {string} */ kind) => html("td", { class: kind }, text);
    const heads = [
      of && html("span", {}, "of ", html("code", {}, of)),
      "",
      term(terms, "norm", "‖gradient‖"),
      "‖weights‖",
      term(terms, "ratio", "÷"),
    ];
    return [
      inputs.length
        ? part(
            "Inputs",
            html(
              "table",
              {},
              ...inputs.map(([node, label, shape, handed]) =>
                html("tr", {}, html("td", {}, link(node, label)), cell(shape, "gl-dim"), cell(handed, "gl-figure-cell")),
              ),
            ),
          )
        : "",
      parameters.length
        ? part(
            "Parameters",
            html(
              "table",
              { class: "gl-parameters" },
              html("tr", {}, ...heads.map((head) => html("th", { scope: "col" }, head))),
              ...parameters.map(([node, label, shape, gradient, weights, ratio]) =>
                html(
                  "tr",
                  {},
                  html("td", {}, link(node, label)),
                  cell(shape, "gl-dim"),
                  cell(gradient, "gl-figure-cell"),
                  cell(weights, "gl-value"),
                  cell(ratio, ""),
                ),
              ),
            ),
          )
        : "",
    ];
  }

  /** @param {string} text */
  function codeBlock(text) {
    return html("pre", { tabindex: "0" }, text);
  }

  return {
    root,

    /** Show what the page knows until the kernel answers. @param {number} node @param {Fold | null} fold */
    wait(node, fold) {
      const place = data.span(node),
        words = [data.operation(node), data.made(node), data.about.wheres[place] ?? "", data.module(node)];
      body.replaceChildren(
        html("h4", {}, fold?.label ?? title(data, node)),
        html("div", { class: "gl-dim" }, fold ? "" : words.filter(Boolean).join(" · ")),
      );
    },

    /** Describe the whole graph, before a node is selected. */
    whole() {
      const { head, whole } = data.about;
      body.replaceChildren(
        html("h4", {}, head.out),
        facts(whole.about),
        ...together(whole),
        html("p", { class: "gl-dim" }, "Select a row or a node to see its value, its gradient and the rule that ran."),
      );
    },

    /** @param {Panel} panel @param {Fold | null} fold the selected fold, whose last node the panel describes */
    show(panel, fold) {
      /** @type {(HTMLElement | string)[]} */
      const parts = [
        html("h4", {}, fold?.label ?? title(data, panel.node)),
        facts(panel.fold?.about ?? panel.about.filter(([word]) => word !== "name")),
      ];
      if (panel.trouble) parts.push(html("div", { class: "gl-error" }, panel.trouble));
      const leaf = data.isLeaf(panel.node);
      parts.push(
        html(
          "div",
          { class: "gl-tensors" },
          tensor(panel.value, "value", "not stored", {
            called: panel.fold && "output",
            norm: panel.fold?.parameters.length ? undefined : term(data.about.terms, "norm", "‖·‖"),
          }),
          tensor(
            panel.gradient,
            "gradient",
            panel.none ?? (data.about.sweep ? "no gradient reached this node" : "no sweep recorded"),
          ),
        ),
      );
      if (panel.fold) parts.push(...together(panel.fold));
      if (panel.came.rows.length)
        parts.push(
          part(
            "Where the gradient came from",
            table(panel.came.rows),
            panel.came.sum ? html("div", { class: "gl-sum" }, panel.came.sum) : "",
          ),
        );
      if (panel.fold) {
        const last = html("button", { type: "button", class: "gl-link", onclick: () => go(panel.node) }, title(data, panel.node));
        body.replaceChildren(...parts, html("p", { class: "gl-dim" }, "Its output comes from ", last, "."));
        return;
      }
      if (panel.handed.length) parts.push(part("Gradients of its inputs", table(panel.handed)));
      const alike = compareModules(data, panel.node, go);
      if (alike) parts.push(part("The same in similar modules", alike));
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
          panel.code.code ? codeBlock(panel.code.code) : html("div", { class: "gl-dim" }, panel.code.says ?? ""),
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
 * @param {string} none the text without numbers
 * @param {{ called?: string | undefined, norm?: Node | undefined }} [words]
 */
function tensor(numbers, title, none, { called = title, norm: sign } = {}) {
  const head = html("div", { class: "gl-tensor-head" }, html("b", { class: `gl-${title}` }, called)),
    root = html("div", { class: "gl-tensor" }, head);
  if (!numbers) {
    head.append(" ", html("span", { class: "gl-dim" }, none));
    return root;
  }
  const { text, norm, odd, map, bars, range } = numbers;
  if (text === undefined && norm) head.append(" ", html("span", { class: "gl-dim" }, sign ?? "‖·‖", ` = ${norm}`));
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
 * ‖gradient‖ of the same operation in each similar module, one bar each; null if there are none.
 * @param {Data} data
 * @param {number} node
 * @param {(node: number) => void} go
 */
function compareModules(data, node, go) {
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
