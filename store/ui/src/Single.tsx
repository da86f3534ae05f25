import { useMemo } from 'preact/hooks';
import { type Selection, getFlameGraph, getTimeline, pprofUrl } from './api';
import { copy } from './copy';
import { counted, formatValue } from './format';
import { toTree } from './graph';
import { NoData } from './NoData';
import { type SetState, type State, linkTo, selectionOf, withTimes } from './state';
import { TableAndGraph } from './TableAndGraph';
import { TimeChart } from './TimeChart';
import { SearchAndLook } from './Toolbar';
import { useAnswer } from './useAnswer';

export const kMainColour = '#ea580c';
export const kBaselineColour = '#2563eb';

const absolute = (path: string) => `${location.origin}${path.replace(/'/g, '%27')}`;

// For a shell: the browser's profile in pprof's own UI.
export const pprofCommand = (main: Selection, baseline?: Selection) =>
  `go tool pprof -http=: ${baseline ? `-diff_base '${absolute(pprofUrl(baseline))}' ` : ''}'${absolute(pprofUrl(main))}'`;

export const CopyLink = ({ state }: { state: State }) => (
  <button
    title="The range becomes absolute: the link shows the same later"
    onClick={() => copy(location.origin + linkTo(withTimes(state, Date.now())))}
  >
    Copy link
  </button>
);

export function Single({ state, change }: { state: State; change: SetState }) {
  const selection = selectionOf(state);
  const key = JSON.stringify(selection);
  const timeline = useAnswer(key, (signal) => getTimeline(selection, '', signal));
  const graph = useAnswer(key + state.nodes, (signal) =>
    getFlameGraph(selection, null, state.nodes, signal),
  );
  const timelines = useMemo(
    () => (timeline.value ? [{ label: 'total', answer: timeline.value, colour: kMainColour }] : []),
    [timeline.value],
  );
  const answer = graph.value;
  const tree = useMemo(() => answer && toTree(answer), [answer]);
  if (graph.error) return <NoData error={graph.error} state={state} />;
  if (!answer || !tree) return <p class="hint">Loading…</p>;
  const shown = { query: selection.query, from: answer.from, until: answer.until };
  const url = pprofUrl(shown);
  return (
    <div class={graph.loading ? 'stale' : ''}>
      <TimeChart
        timelines={timelines}
        onSelect={(from, until) => change({ from: String(from), until: String(until) })}
      />
      <div class="bars">
        <SearchAndLook state={state} change={change} />
        <div class="toolbar actions">
          <strong>{formatValue(answer.total, answer.unit)}</strong>
          <span class="hint">
            {counted(answer.profiles, 'profile')} of {counted(answer.series, 'series')}
          </span>
          <a href={url} download="profile.pb.gz">
            Download pprof
          </a>
          <button onClick={() => copy(pprofCommand(shown))}>Copy go tool pprof command</button>
          <a href={`/speedscope/#profileURL=${encodeURIComponent(url)}`} target="_blank" rel="noopener">
            Open in speedscope
          </a>
          <CopyLink state={state} />
        </div>
      </div>
      <TableAndGraph graph={answer} tree={tree} sort={state.sort} state={state} change={change} />
    </div>
  );
}
