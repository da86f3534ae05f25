// The part of d3-flame-graph that is used here; it has no types of its own.
declare module 'd3-flame-graph' {
  import type { Selection } from 'd3-selection';

  export interface ChartNode {
    data: import('./graph').Frame;
    parent: ChartNode | null;
    children?: ChartNode[];
    value: number;
    highlight: boolean;
    ancestors(): ChartNode[]; // from itself to the root
  }
  export interface Tooltip {
    (selection: unknown): void;
    show(event: MouseEvent, node: ChartNode): void;
    hide(): void;
  }
  export interface FlameGraph {
    (selection: Selection<HTMLElement, unknown, null, undefined>): void;
    width(pixels: number): FlameGraph;
    cellHeight(pixels: number): FlameGraph;
    minFrameSize(pixels: number): FlameGraph;
    transitionDuration(milliseconds: number): FlameGraph;
    inverted(rootOnTop: boolean): FlameGraph;
    getName(name: (node: ChartNode) => string): FlameGraph;
    sort(by: (a: ChartNode, b: ChartNode) => number): FlameGraph;
    tooltip(tooltip: Tooltip): FlameGraph;
    setColorMapper(colour: (node: ChartNode) => string): FlameGraph;
    setSearchMatch(match: (node: ChartNode, term: string) => boolean): FlameGraph;
    setSearchHandler(handler: (results: ChartNode[], sum: number, total: number) => void): FlameGraph;
    onClick(handler: (node: ChartNode) => void): FlameGraph;
    search(term: string): void;
    clear(): void;
    zoomTo(node: ChartNode): void;
    resetZoom(): void;
    destroy(): void;
  }
  export default function flamegraph(): FlameGraph;
}
