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
const growth = (part: number, basePart: number, graph: FlameGraphAnswer) => {
  const share = (value: number, whole: number) => (whole === 0 ? 0 : value / whole);
  return 100 * (share(part, graph.total) - share(basePart, graph.baseline?.total ?? 0));
};
export const deltaOf = (row: { total: number; baseTotal: number }, graph: FlameGraphAnswer) =>
  growth(row.total, row.baseTotal, graph);
export const selfDeltaOf = (row: { self: number; baseSelf: number }, graph: FlameGraphAnswer) =>
  growth(row.self, row.baseSelf, graph);

// "github.com/shop/cart.(*Cart).Add" -> "cart.(*Cart).Add": what fits a frame.
export const pathEnd = (name: string) => {
  const arguments_ = name.search(/[(<\[ ]/);
  return name.lastIndexOf('/', arguments_ < 0 ? undefined : arguments_) + 1;
};
export const shortName = (name: string) => name.slice(pathEnd(name));

// FNV-1a.
export const hash = (text: string, seed = 2166136261) => {
  let value = seed;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
};

// A frame's place in the graph, for links: the names from the root to it.
export const pathKey = (names: string[]) =>
  names.reduce((key, name) => hash(`${name}\n`, key), hash('')).toString(36);

export const matches = (name: string, search: string) =>
  search !== '' && name.toLowerCase().includes(search.toLowerCase());
