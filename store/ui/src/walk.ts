// Walking through a drawn flame graph by keyboard, and finding frames of a link in it.
import type { ChartNode } from 'd3-flame-graph';
import { hash, pathKey } from './graph';

export const keyOf = (node: ChartNode) =>
  node.parent ? pathKey(node.ancestors().reverse().slice(1).map(({ data }) => data.name)) : '';

// The frame below `root` with this key.
export function findKey(root: ChartNode, key: string): ChartNode | undefined {
  const wanted = parseInt(key, 36);
  const left: [ChartNode, number][] = [[root, hash('')]];
  for (let next = left.pop(); next; next = left.pop()) {
    const [node, value] = next;
    if (value === wanted && node !== root) return node;
    for (const child of node.children ?? []) left.push([child, hash(`${child.data.name}\n`, value)]);
  }
  return undefined;
}

// Where an arrow key leads from `node`; only frames that are drawn count.
export function neighbour(
  node: ChartNode,
  key: string,
  rootOnTop: boolean,
  isDrawn: (node: ChartNode) => boolean,
): ChartNode | undefined {
  const inwards = rootOnTop ? 'ArrowDown' : 'ArrowUp';
  const outwards = rootOnTop ? 'ArrowUp' : 'ArrowDown';
  if (key === outwards) return node.parent ?? undefined;
  if (key === inwards) {
    const children = (node.children ?? []).filter(isDrawn);
    return children.reduce<ChartNode | undefined>(
      (widest, child) => (widest && widest.value >= child.value ? widest : child),
      undefined,
    );
  }
  const siblings = (node.parent?.children ?? []).filter(isDrawn);
  const at = siblings.indexOf(node);
  if (key === 'ArrowLeft') return siblings[at - 1];
  if (key === 'ArrowRight') return siblings[at + 1];
  return undefined;
}
