import { useMemo, useState } from 'preact/hooks';
import { type FlameGraphAnswer, type Selection, getFlameGraph, getTimeline } from './api';
import { copy } from './copy';
import { FlameGraph } from './FlameGraph';
import { formatValue, signed } from './format';
import { selfDeltaOf, shortName, toTable, toTree } from './graph';
import { NoData } from './NoData';
import { CopyLink, kBaselineColour, kMainColour, pprofCommand } from './Single';
import { type SetState, type State, selectionOf, sidesOf, timeOf } from './state';
import { TableAndGraph } from './TableAndGraph';
import { TimeChart } from './TimeChart';
import { Filter, SearchAndLook } from './Toolbar';
import { useAnswer } from './useAnswer';

// The two sides as of when one of them changed, not of each keystroke.
const useSides = (state: State) =>
  useMemo(
    () => sidesOf(state),
    [JSON.stringify(selectionOf(state)), state.baseFilter, state.baseFrom, state.baseUntil, state.mainFrom, state.mainUntil],
  );

// Two ranges and two label sets over one chart; a drag sets the range of the side that is chosen.
function Sides({ state, change }: { state: State; change: SetState }) {
  const [dragged, setDragged] = useState<'base' | 'main'>('main');
  const sides = useSides(state);
  const over = (side: Selection) => ({ query: side.query, from: state.from, until: state.until });
  const main = useAnswer(JSON.stringify(over(sides.main)), (signal) => getTimeline(over(sides.main), '', signal));
  const base = useAnswer(JSON.stringify(over(sides.baseline)), (signal) =>
    getTimeline(over(sides.baseline), '', signal),
  );
  const timelines = useMemo(() => {
    if (!main.value || !base.value) return [];
    return [
      { label: 'baseline', answer: base.value, colour: kBaselineColour },
      { label: 'comparison', answer: main.value, colour: kMainColour },
    ];
  }, [main.value, base.value]);
  const now = Date.now();
  const span = (side: Selection, colour: string, label: string) => ({
    from: timeOf(side.from, now),
    until: timeOf(side.until, now),
    colour,
    label,
  });
  return (
    <>
      <TimeChart
        timelines={timelines}
        spans={[
          span(sides.baseline, kBaselineColour, 'baseline'),
          span(sides.main, kMainColour, 'comparison'),
        ]}
        onSelect={(from, until) =>
          change(
            dragged === 'base'
              ? { baseFrom: String(from), baseUntil: String(until) }
              : { mainFrom: String(from), mainUntil: String(until) },
          )
        }
      />
      <div class="bars">
        <div class="toolbar">
          <fieldset>
            <legend>Dragging over the chart sets the range of</legend>
            {(['base', 'main'] as const).map((side) => (
              <label key={side} class={side}>
                <input type="radio" name="dragged" checked={dragged === side} onChange={() => setDragged(side)} />
                {side === 'base' ? 'baseline' : 'comparison'}
              </label>
            ))}
          </fieldset>
          <Filter
            label="Baseline labels"
            state={state}
            value={state.baseFilter}
            onChange={(baseFilter) => change({ baseFilter })}
          />
        </div>
        <SearchAndLook state={state} change={change} />
      </div>
    </>
  );
}

// One side of the comparison.
function SideGraph(props: { title: string; selection: Selection; state: State; change: SetState }) {
  const { selection, state } = props;
  const graph = useAnswer(JSON.stringify(selection) + state.nodes, (signal) =>
    getFlameGraph(selection, null, state.nodes, signal),
  );
  const tree = useMemo(() => graph.value && toTree(graph.value), [graph.value]);
  return (
    <section aria-label={props.title}>
      <h2>
        {props.title}
        {graph.value && <small> {formatValue(graph.value.total, graph.value.unit)}</small>}
      </h2>
      {graph.error && <NoData error={graph.error} state={state} />}
      {graph.value && tree && (
        <FlameGraph graph={graph.value} tree={tree} state={state} change={props.change} />
      )}
    </section>
  );
}

export function Comparison({ state, change }: { state: State; change: SetState }) {
  const sides = useSides(state);
  return (
    <>
      <Sides state={state} change={change} />
      <div class="panes halves">
        <SideGraph title="Baseline" selection={sides.baseline} state={state} change={change} />
        <SideGraph title="Comparison" selection={sides.main} state={state} change={change} />
      </div>
    </>
  );
}

const kChanges = 3;

// The functions whose own use grew and shrank most.
function ChangedMost({ graph, change }: { graph: FlameGraphAnswer; change: SetState }) {
  const changes = useMemo(
    () =>
      toTable(graph)
        .map(({ name, self, baseSelf }) => ({ name, points: selfDeltaOf({ self, baseSelf }, graph) }))
        .filter(({ points }) => Math.abs(points) >= 0.005)
        .sort((a, b) => b.points - a.points),
    [graph],
  );
  const grew = changes.filter(({ points }) => points > 0).slice(0, kChanges);
  const shrank = changes.filter(({ points }) => points < 0).slice(-kChanges).reverse();
  if (grew.length + shrank.length === 0) return <p class="hint">Every function has the same share on both sides.</p>;
  return (
    <section class="changes" aria-label="What changed most">
      <h2>What changed most</h2>
      {[...grew, ...shrank].map(({ name, points }) => (
        <button key={name} title={name} onClick={() => change({ search: name })}>
          <span class={points > 0 ? 'more' : 'less'}>{signed(points)} pp</span> {shortName(name)}
        </button>
      ))}
    </section>
  );
}

export function Diff({ state, change }: { state: State; change: SetState }) {
  const sides = useSides(state);
  const graph = useAnswer(JSON.stringify(sides) + state.nodes, (signal) =>
    getFlameGraph(sides.main, sides.baseline, state.nodes, signal),
  );
  const answer = graph.value;
  const tree = useMemo(() => answer && toTree(answer), [answer]);
  return (
    <>
      <Sides state={state} change={change} />
      {graph.error && <NoData error={graph.error} state={state} />}
      {answer?.baseline && tree && (
        <>
          <div class="toolbar actions">
            <span>
              Baseline <strong>{formatValue(answer.baseline.total, answer.unit)}</strong>, comparison{' '}
              <strong>{formatValue(answer.total, answer.unit)}</strong>
            </span>
            <button onClick={() => copy(pprofCommand(sides.main, sides.baseline))}>
              Copy go tool pprof command
            </button>
            <CopyLink state={state} />
            <span class="hint">
              Compared are shares of each side:{' '}
              {state.palette === 'standard' ? 'red grew, green shrank' : 'orange grew, blue shrank'}, grey is the same.
            </span>
          </div>
          <ChangedMost graph={answer} change={change} />
          <TableAndGraph
            graph={answer}
            tree={tree}
            sort={state.sort === 'self' ? 'selfDelta' : state.sort}
            state={state}
            change={change}
          />
        </>
      )}
    </>
  );
}
