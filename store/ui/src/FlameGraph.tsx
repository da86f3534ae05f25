import flamegraph, { type ChartNode, type FlameGraph as Chart, type Tooltip } from 'd3-flame-graph';
import { select } from 'd3-selection';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { FlameGraphAnswer } from './api';
import { colourOf, diffColourOf } from './colour';
import { copy } from './copy';
import { counted, percent } from './format';
import { FrameInfo } from './FrameInfo';
import { type Frame, deltaOf, matches, shortName } from './graph';
import type { SetState, State } from './state';
import { findKey, keyOf, neighbour } from './walk';

const kHighlight = '#e600e6';
const kMostNodes = 200_000; // that the store gives
const kTooltipWidth = 380;
const kTooltipHeight = 120;

const drawn = (box: HTMLElement) => select(box).selectAll<SVGGElement, ChartNode>('g.frame');

// The line above the graph: the chosen frame, or what can be done; what was found; what is missing.
function Line(props: {
  graph: FlameGraphAnswer;
  chosen?: Frame;
  found?: string;
  state: State;
  change: SetState;
}) {
  const { graph, chosen, found, state, change } = props;
  const pruned = graph.pruned.nodes;
  return (
    <div class="line">
      <span class="chosen" role="status">
        {chosen ? (
          <FrameInfo frame={chosen} graph={graph} />
        ) : (
          <span class="hint">Click a frame to zoom, or walk by arrow keys and Enter; Escape goes back.</span>
        )}
      </span>
      {chosen && <button onClick={() => copy(chosen.name)}>Copy name</button>}
      {chosen && <button onClick={() => change({ search: chosen.name })}>Find</button>}
      {state.zoom && <button onClick={() => change({ zoom: '' })}>Reset zoom</button>}
      {found && <span class="found">{found}</span>}
      {pruned > 0 && (
        <span class="hint">
          {pruned.toLocaleString('en')} small frames are left out, together {percent(graph.pruned.self, graph.total)}.{' '}
          {!state.nodes && <button onClick={() => change({ nodes: String(kMostNodes) })}>Load them</button>}
        </span>
      )}
    </div>
  );
}

export function FlameGraph(props: { graph: FlameGraphAnswer; tree: Frame; state: State; change: SetState }) {
  const { graph, tree, state, change } = props;
  const { search, root, palette, zoom } = state;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | undefined>(undefined);
  const shownZoom = useRef('');
  const cursor = useRef<ChartNode | undefined>(undefined);
  const [width, setWidth] = useState(0);
  const [hovered, setHovered] = useState<{ frame: Frame; x: number; y: number }>();
  const [chosen, setChosen] = useState<Frame>();
  const [found, setFound] = useState<string>();
  const drawing = [tree, width, root, palette];

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

  const choose = (node: ChartNode | undefined) => {
    cursor.current = node;
    setChosen(node?.parent ? node.data : undefined);
    drawn(box.current!).attr('data-cursor', (other) => (node?.parent && other === node ? '' : null));
  };

  useEffect(() => {
    if (width === 0) return;
    const element = box.current!;
    element.replaceChildren();
    setHovered(undefined);
    shownZoom.current = '';
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
      .getName((node) => shortName(node.data.name))
      .sort((a, b) => (a.data.name < b.data.name ? -1 : 1))
      .tooltip(tooltip)
      .setColorMapper(colour)
      .setSearchMatch((node, term) => matches(node.data.name, term))
      .setSearchHandler((results, sum) =>
        setFound(`${counted(results.length, 'frame')} ${results.length === 1 ? 'matches' : 'match'}, ${percent(sum, tree.value)} of the whole`),
      )
      .onClick((node) => {
        shownZoom.current = keyOf(node);
        choose(node);
        change({ zoom: shownZoom.current });
      });
    // d3-flame-graph marks hidden frames in the data: each drawing gets its own.
    made(select<HTMLElement, unknown>(element).datum<unknown>(structuredClone(tree)));
    chart.current = made;
    choose(undefined);
    return () => made.destroy();
  }, drawing);

  useEffect(() => {
    if (!chart.current || zoom === shownZoom.current) return;
    const top = drawn(box.current!).data()[0]?.ancestors().at(-1);
    const node = zoom === '' ? top : top && findKey(top, zoom);
    if (node) chart.current.zoomTo(node);
  }, [zoom, ...drawing]);

  useEffect(() => {
    if (!chart.current) return;
    if (search === '') {
      chart.current.clear();
      setFound(undefined);
    } else {
      chart.current.search(search);
    }
  }, [search, ...drawing]);

  useEffect(() => {
    const escape = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return;
      choose(undefined);
      change({ zoom: '' });
    };
    addEventListener('keydown', escape);
    return () => removeEventListener('keydown', escape);
  }, []);

  const onKey = (event: KeyboardEvent) => {
    const frames = drawn(box.current!).data();
    const from = cursor.current ?? frames[0]?.ancestors().at(-1);
    if (!from) return;
    if (event.key === 'Enter') {
      chart.current?.zoomTo(from);
    } else if (event.key.startsWith('Arrow')) {
      const shown = new Set(frames);
      const to = neighbour(from, event.key, root === 'top', (node) => shown.has(node));
      if (to) choose(to);
    } else {
      return;
    }
    event.preventDefault();
  };

  return (
    <section class="flame-graph" aria-label="Flame graph">
      <Line graph={graph} chosen={chosen} found={found} state={state} change={change} />
      <div
        ref={box}
        class="chart"
        tabIndex={0}
        role="application"
        aria-label="Flame graph: walk by arrow keys, zoom by Enter; the table of functions has the same numbers"
        onKeyDown={onKey}
      />
      {hovered && (
        <div
          class="tooltip"
          style={{
            left: `${Math.min(hovered.x + 12, innerWidth - kTooltipWidth)}px`,
            top: `${Math.min(hovered.y + 16, innerHeight - kTooltipHeight)}px`,
          }}
        >
          <FrameInfo frame={hovered.frame} graph={graph} />
        </div>
      )}
    </section>
  );
}
