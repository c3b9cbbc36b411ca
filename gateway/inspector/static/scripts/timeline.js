// Lay out turns and runs on a timeline: rows ordered by time, each run deeper than the runs that it waits for.

/**
 * Return `{rows, edges}`. A row is a turn (`entry`, depth 0) or a run (`run`, depth 1 or more). An edge leads from
 * a turn to the first runs of a graph, from a run to its successors, or from a run to its rerun (`again`).
 */
export function layOut(entries, runs) {
  const graphs = groupBy(runs, (run) => run.graph_id);
  const things = [
    ...entries.filter((entry) => entry.turnId !== null).map((entry) => ({ at: timeOf(entry.at), entry })),
    ...[...graphs.values()].map((members) => ({ at: Math.min(...members.map((run) => timeOf(run.created_at))), members })),
  ].sort((one, other) => one.at - other.at);
  const rows = [];
  const edges = [];
  let turn = null;
  for (const thing of things) {
    if (thing.entry !== undefined) {
      turn = `turn:${thing.entry.turnId}`;
      rows.push({ key: turn, depth: 0, entry: thing.entry });
    } else {
      placeGraph(thing.members, turn, rows, edges);
    }
  }
  return { rows, edges };
}

function placeGraph(members, turn, rows, edges) {
  const ids = new Set(members.map((run) => run.run_id));
  const before = new Map(members.map((run) => [run.run_id, []]));
  for (const run of members) {
    for (const next of run.successors ?? []) if (ids.has(next)) before.get(next).push(run.run_id);
  }
  const chains = groupBy(members, (run) => run.chain_id);
  for (const chain of chains.values()) {
    chain.sort((one, other) => (one.redo_count ?? 0) - (other.redo_count ?? 0));
    chain.slice(1).forEach((run, at) => edges.push({ from: `run:${chain[at].run_id}`, to: `run:${run.run_id}`, again: true }));
  }
  const first = new Set([...chains.values()].map((chain) => chain[0].run_id));
  const depths = new Map();
  const depthOf = (id) => {
    if (!depths.has(id)) {
      depths.set(id, 1); // stop at cycles, which should not exist
      depths.set(id, 1 + Math.max(0, ...before.get(id).map(depthOf)));
    }
    return depths.get(id);
  };
  const chainDepth = (run) => Math.max(...chains.get(run.chain_id).map((one) => depthOf(one.run_id)));
  const ordered = [...members].sort((one, other) => chainDepth(one) - chainDepth(other) || timeOf(one.created_at) - timeOf(other.created_at) || (one.redo_count ?? 0) - (other.redo_count ?? 0));
  for (const run of ordered) {
    rows.push({ key: `run:${run.run_id}`, depth: chainDepth(run), run });
    for (const id of before.get(run.run_id)) edges.push({ from: `run:${id}`, to: `run:${run.run_id}`, again: false });
    if (turn !== null && first.has(run.run_id) && before.get(run.run_id).length === 0) edges.push({ from: turn, to: `run:${run.run_id}`, again: false });
  }
}

function groupBy(all, nameOf) {
  const groups = new Map();
  for (const one of all) {
    const name = nameOf(one);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(one);
  }
  return groups;
}

function timeOf(time) {
  const parsed = Date.parse(time ?? "");
  return Number.isNaN(parsed) ? Date.now() : parsed;
}
