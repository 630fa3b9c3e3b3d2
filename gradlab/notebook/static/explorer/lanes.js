// What stands beside visible rows: which rows their gradients came from and with which shares, the norm that each hands on, the
// parameters that only it uses, and in which lane its rail runs. The same as explore/graph/rows.py says of a static picture.

/** @import { Data, Row } from "./data.js" */

/**
 * A row that is seen.
 * @typedef {object} Seen
 * @property {Row | null} row null of a single node
 * @property {number} node of a single node, else −1
 * @property {string} key
 * @property {number} depth
 * @property {number[]} ranges
 * @property {boolean} opens whether there are rows or several nodes in it
 * @property {boolean} open
 */
/**
 * @typedef {object} Flow
 * @property {number} end the node that hands on what the row makes; −1 of none
 * @property {[number, number | null][]} came the rows that its gradient came from, and their shares
 * @property {number[]} leaves the leaves that only it uses
 * @property {number} lane
 */

const LANES = 7;

/**
 * @param {Data} data
 * @param {Seen[]} seen
 * @returns {{ flows: Flow[], owner: Int32Array, many: number }}
 */
function flowsOf(data, seen) {
  const owner = new Int32Array(data.count).fill(-1);
  seen.forEach((row, at) => {
    if (!row.open) for (const i of data.members(row.ranges)) owner[i] = at;
  });
  const leaves = seen.map(() => /** @type {number[]} */ ([]));
  for (let i = 0; i < data.count; i++) {
    if (!data.isLeaf(i)) continue;
    const own = seen[owner[i]];
    if (own && own.node === i) continue; // it has a row of its own
    const users = [...new Set(data.uses[i].map((use) => owner[use]).filter((at) => at >= 0))];
    if (owner[i] < 0 && users.length) owner[i] = users[0];
    if (owner[i] >= 0) leaves[owner[i]].push(i);
  }
  /** @type {Map<number, Map<number, number | null>>[]} of each row: of its nodes that hand on: shares by target row */
  const out = seen.map(() => new Map());
  for (let target = 0; target < data.count; target++) {
    const b = owner[target];
    if (b < 0) continue;
    data.inputs[target].forEach((source, k) => {
      const a = owner[source];
      if (a < 0 || a === b || (data.isLeaf(source) && seen[a].node !== source)) return;
      const share = data.uses[source].length === 1 ? 1 : (data.shares.get(data.first[target] + k) ?? null),
        from = out[a].get(source) ?? new Map();
      const before = from.has(b) ? from.get(b) : 0;
      from.set(b, share === null || before === null ? null : before + share);
      out[a].set(source, from);
    });
  }
  const flows = seen.map((row, at) => {
    const handing = [...out[at].keys()];
    let end = handing.length ? Math.max(...handing) : -1;
    if (end < 0) for (const i of data.members(row.ranges)) if (!data.isLeaf(i) || row.node === i) end = Math.max(end, i);
    /** @type {Map<number, number | null>} */
    const came = new Map();
    for (const from of out[at].values())
      for (const [b, share] of from) {
        const known = handing.length === 1 ? share : null,
          before = came.has(b) ? came.get(b) : 0;
        came.set(b, known === null || before === null || before === undefined ? null : before + known);
      }
    return { end, came: [...came].sort((a, b) => a[0] - b[0]), leaves: leaves[at], lane: 0 };
  });
  return { flows, owner, many: lay(flows) };
}

/**
 * The lane of each row's rail: a tensor keeps its lane until its last use below, and who uses a tensor last goes on in its lane.
 * @param {Flow[]} flows
 */
function lay(flows) {
  const last = flows.map(({ came }, at) => came.reduce((most, [b]) => Math.max(most, b), at)),
    sources = flows.map(() => /** @type {number[]} */ ([]));
  flows.forEach(({ came }, at) => {
    for (const [b] of came) if (b > at) sources[b].push(at);
  });
  /** @type {number[]} until which row each lane is busy */
  const busy = [];
  flows.forEach((flow, at) => {
    const ending = sources[at].filter((source) => last[source] === at).map((source) => flows[source].lane);
    if (ending.length) flow.lane = Math.min(...ending);
    else {
      let free = busy.findIndex((until) => until <= at);
      if (free < 0) free = busy.length;
      flow.lane = free;
    }
    busy[flow.lane] = Math.max(at, last[at]);
  });
  return Math.min(LANES, busy.length);
}

export { LANES, flowsOf };
