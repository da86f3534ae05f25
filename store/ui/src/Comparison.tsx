import { useMemo, useState } from 'preact/hooks';
import { type Selection, getFlameGraph, getTimeline } from './api';
import { FlameGraph } from './FlameGraph';
import { formatValue } from './format';
import { toTree } from './graph';
import { NoData } from './NoData';
import { kBaselineColour, kMainColour } from './Single';
import { type SetState, type State, selectionOf, sidesOf, timeOf } from './state';
import { TableAndGraph } from './TableAndGraph';
import { TimeChart } from './TimeChart';
import { Filter, SearchAndLook } from './Toolbar';
import { useAnswer } from './useAnswer';

// Two ranges and two label sets over one chart; a drag sets the range of the side that is chosen.
function Sides({ state, change }: { state: State; change: SetState }) {
  const [dragged, setDragged] = useState<'base' | 'main'>('main');
  const sides = sidesOf(state);
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
    </>
  );
}

function SideGraph(props: { title: string; selection: Selection; state: State; change: SetState }) {
  const { selection, state } = props;
  const graph = useAnswer(JSON.stringify(selection), (signal) => getFlameGraph(selection, null, signal));
  const tree = useMemo(() => graph.value && toTree(graph.value), [graph.value]);
  return (
    <section aria-label={props.title}>
      <h2>
        {props.title}
        {graph.value && <small> {formatValue(graph.value.total, graph.value.unit)}</small>}
      </h2>
      {graph.error && <NoData error={graph.error} state={state} />}
      {graph.value && tree && (
        <FlameGraph
          graph={graph.value}
          tree={tree}
          search={state.search}
          root={state.root}
          palette={state.palette}
          onSearch={(search) => props.change({ search })}
        />
      )}
    </section>
  );
}

export function Comparison({ state, change }: { state: State; change: SetState }) {
  const sides = sidesOf(state);
  return (
    <>
      <Sides state={state} change={change} />
      <SearchAndLook state={state} change={change} />
      <div class="panes halves">
        <SideGraph title="Baseline" selection={sides.baseline} state={state} change={change} />
        <SideGraph title="Comparison" selection={sides.main} state={state} change={change} />
      </div>
    </>
  );
}

export function Diff({ state, change }: { state: State; change: SetState }) {
  const sides = useMemo(() => sidesOf(state), [JSON.stringify(selectionOf(state)), state.baseFilter,
    state.baseFrom, state.baseUntil, state.mainFrom, state.mainUntil]);
  const graph = useAnswer(JSON.stringify(sides), (signal) => getFlameGraph(sides.main, sides.baseline, signal));
  const answer = graph.value;
  const tree = useMemo(() => answer && toTree(answer), [answer]);
  return (
    <>
      <Sides state={state} change={change} />
      <SearchAndLook state={state} change={change} />
      {graph.error && <NoData error={graph.error} state={state} />}
      {answer?.baseline && tree && (
        <>
          <p class="hint">
            Baseline {formatValue(answer.baseline.total, answer.unit)}, comparison{' '}
            {formatValue(answer.total, answer.unit)}. Colours and deltas compare shares of each side:{' '}
            {state.palette === 'standard' ? 'red grew, green shrank' : 'orange grew, blue shrank'}, grey is the same.
          </p>
          <TableAndGraph
            graph={answer}
            tree={tree}
            sort={state.sort === 'self' ? 'delta' : state.sort}
            state={state}
            change={change}
          />
        </>
      )}
    </>
  );
}
