// From the store's columns to what the views need.
import type { FlameGraphAnswer } from './api';

// A node as d3-flame-graph reads it.
export interface Frame {
  name: string;
  module: string;
  value: number; // total; of a comparison the sum of both sides' shares, which sets the width
  self: number;
  total: number;
  baseSelf: number;
  baseTotal: number;
  children: Frame[];
}

export interface FunctionRow {
  name: string;
  self: number;
  total: number;
  baseSelf: number;
  baseTotal: number;
}

export function toTree(graph: FlameGraphAnswer): Frame {
  const { function: called, parent, total, self } = graph.nodes;
  const base = graph.baseline;
  const share = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);
  const frames: Frame[] = called.map((index, i) => {
    const baseTotal = base?.nodes.total[i] ?? 0;
    return {
      name: i === 0 ? 'total' : graph.functions.name[index]!,
      module: graph.functions.module[index]!,
      value: base ? share(total[i]!, graph.total) + share(baseTotal, base.total) : total[i]!,
      self: self[i]!,
      total: total[i]!,
      baseSelf: base?.nodes.self[i] ?? 0,
      baseTotal,
      children: [],
    };
  });
  for (let i = 1; i < frames.length; i++) frames[parent[i]!]!.children.push(frames[i]!);
  return frames[0]!;
}

export const toTable = ({ functions, baseline }: FlameGraphAnswer): FunctionRow[] =>
  functions.name
    .map((name, i) => ({
      name,
      self: functions.self[i]!,
      total: functions.total[i]!,
      baseSelf: baseline?.functions.self[i] ?? 0,
      baseTotal: baseline?.functions.total[i] ?? 0,
    }))
    .slice(1); // the root

// Growth of the share, in percentage points.
export const deltaOf = (
  row: { total: number; baseTotal: number },
  graph: FlameGraphAnswer,
): number => {
  const main = graph.total === 0 ? 0 : row.total / graph.total;
  const baseTotal = graph.baseline?.total ?? 0;
  return 100 * (main - (baseTotal === 0 ? 0 : row.baseTotal / baseTotal));
};

export const matches = (name: string, search: string) =>
  search !== '' && name.toLowerCase().includes(search.toLowerCase());
