import flamegraph, { type ChartNode, type FlameGraph as Chart, type Tooltip } from 'd3-flame-graph';
import { select } from 'd3-selection';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { FlameGraphAnswer } from './api';
import { colourOf, diffColourOf } from './colour';
import { formatValue, percent, signed } from './format';
import { type Frame, deltaOf, matches } from './graph';
import type { State } from './state';

const kHighlight = '#e600e6';

// What the tooltip and the line of the chosen frame say.
function About({ frame, graph }: { frame: Frame; graph: FlameGraphAnswer }) {
  const base = graph.baseline;
  const side = (total: number, self: number, whole: number) =>
    `${formatValue(total, graph.unit)} (${percent(total, whole)}), self ${formatValue(self, graph.unit)}`;
  return (
    <>
      <strong>{frame.name}</strong>
      {frame.module && <span class="module"> {frame.module}</span>}
      {base ? (
        <div>
          baseline {side(frame.baseTotal, frame.baseSelf, base.total)}
          <br />
          comparison {side(frame.total, frame.self, graph.total)}
          <br />
          {signed(deltaOf(frame, graph))} percentage points
        </div>
      ) : (
        <div>{side(frame.total, frame.self, graph.total)}</div>
      )}
    </>
  );
}

export function FlameGraph(props: {
  graph: FlameGraphAnswer;
  tree: Frame;
  search: string;
  root: State['root'];
  palette: State['palette'];
  onSearch: (name: string) => void;
}) {
  const { graph, tree, search, root, palette } = props;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | undefined>(undefined);
  const [width, setWidth] = useState(0);
  const [hovered, setHovered] = useState<{ frame: Frame; x: number; y: number }>();
  const [chosen, setChosen] = useState<Frame>();
  const [found, setFound] = useState<string>();

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  const tooltip = useMemo<Tooltip>(
    () =>
      Object.assign(() => {}, {
        show: (event: MouseEvent, node: ChartNode) =>
          setHovered({ frame: node.data, x: event.clientX, y: event.clientY }),
        hide: () => setHovered(undefined),
      }),
    [],
  );

  useEffect(() => {
    if (width === 0) return;
    const element = box.current!;
    element.replaceChildren();
    setChosen(undefined);
    setHovered(undefined);
    const colour = ({ data, highlight }: ChartNode) =>
      highlight
        ? kHighlight
        : graph.baseline
          ? diffColourOf(deltaOf(data, graph), palette)
          : colourOf(data, palette);
    const made = flamegraph()
      .width(width)
      .cellHeight(20)
      .minFrameSize(1)
      .transitionDuration(matchMedia('(prefers-reduced-motion: reduce)').matches ? 0 : 150)
      .inverted(root === 'top')
      .sort((a, b) => (a.data.name < b.data.name ? -1 : 1))
      .tooltip(tooltip)
      .setColorMapper(colour)
      .setSearchMatch((node, term) => matches(node.data.name, term))
      .setSearchHandler((results, sum) =>
        setFound(
          `${results.length} frames match, ${percent(sum, tree.value)} of the whole`,
        ),
      )
      .onClick((node) => setChosen(node.parent ? node.data : undefined));
    // d3-flame-graph marks hidden frames in the data: each drawing gets its own.
    made(select<HTMLElement, unknown>(element).datum<unknown>(structuredClone(tree)));
    chart.current = made;
    return () => made.destroy();
  }, [tree, width, root, palette]);

  useEffect(() => {
    if (!chart.current) return;
    if (search === '') {
      chart.current.clear();
      setFound(undefined);
    } else {
      chart.current.search(search);
    }
  }, [search, tree, width, root, palette]);

  useEffect(() => {
    const escape = (event: KeyboardEvent) => event.key === 'Escape' && reset();
    addEventListener('keydown', escape);
    return () => removeEventListener('keydown', escape);
  }, []);

  const reset = () => {
    chart.current?.resetZoom();
    setChosen(undefined);
  };

  return (
    <section class="flame-graph" aria-label="Flame graph">
      <div class="line">
        {chosen ? (
          <>
            <span class="chosen">
              <About frame={chosen} graph={graph} />
            </span>
            <button onClick={() => navigator.clipboard.writeText(chosen.name)}>Copy name</button>
            <button onClick={() => props.onSearch(chosen.name)}>Find</button>
            <button onClick={reset}>Reset zoom</button>
          </>
        ) : (
          <span class="hint">Click a frame to zoom, Escape to go back.</span>
        )}
        {found && <span class="found">{found}</span>}
        {graph.pruned.nodes > 0 && (
          <span class="hint">
            {graph.pruned.nodes.toLocaleString('en')} small frames are not drawn, together{' '}
            {percent(graph.pruned.self, graph.total)}.
          </span>
        )}
      </div>
      <div
        ref={box}
        class="chart"
        role="img"
        aria-label="Flame graph; the table of functions has the same numbers"
      />
      {hovered && (
        <div
          class="tooltip"
          style={{
            left: `${Math.min(hovered.x + 12, innerWidth - 380)}px`,
            top: `${hovered.y + 16}px`,
          }}
        >
          <About frame={hovered.frame} graph={graph} />
        </div>
      )}
    </section>
  );
}
