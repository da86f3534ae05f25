import { useMemo } from 'preact/hooks';
import { getFlameGraph, getTimeline, pprofUrl } from './api';
import { formatValue } from './format';
import { toTree } from './graph';
import { NoData } from './NoData';
import { type SetState, type State, selectionOf } from './state';
import { TableAndGraph } from './TableAndGraph';
import { TimeChart } from './TimeChart';
import { SearchAndLook } from './Toolbar';
import { useAnswer } from './useAnswer';

export const kMainColour = '#ea580c';
export const kBaselineColour = '#2563eb';

export function Single({ state, change }: { state: State; change: SetState }) {
  const selection = selectionOf(state);
  const key = JSON.stringify(selection);
  const timeline = useAnswer(key, (signal) => getTimeline(selection, '', signal));
  const graph = useAnswer(key, (signal) => getFlameGraph(selection, null, signal));
  const timelines = useMemo(
    () => (timeline.value ? [{ label: 'total', answer: timeline.value, colour: kMainColour }] : []),
    [timeline.value],
  );
  const answer = graph.value;
  const tree = useMemo(() => answer && toTree(answer), [answer]);
  if (graph.error) return <NoData error={graph.error} state={state} />;
  if (!answer || !tree) return <p class="hint">Loading…</p>;
  const url = pprofUrl({ query: selection.query, from: answer.from, until: answer.until });
  const command = `go tool pprof -http=: '${location.origin}${url.replace(/'/g, '%27')}'`;
  return (
    <div class={graph.loading ? 'stale' : ''}>
      <TimeChart
        timelines={timelines}
        onSelect={(from, until) => change({ from: String(from), until: String(until) })}
      />
      <div class="toolbar">
        <strong>{formatValue(answer.total, answer.unit)}</strong>
        <span class="hint">
          {answer.profiles.toLocaleString('en')} profiles of {answer.series} series
        </span>
        <a href={url} download="profile.pb.gz">
          Download pprof
        </a>
        <button onClick={() => navigator.clipboard.writeText(command)}>Copy go tool pprof command</button>
        <a href={`/speedscope/#profileURL=${encodeURIComponent(url)}`} target="_blank" rel="noopener">
          Open in speedscope
        </a>
        <button onClick={() => navigator.clipboard.writeText(location.href)}>Copy link</button>
      </div>
      <SearchAndLook state={state} change={change} />
      <TableAndGraph graph={answer} tree={tree} sort={state.sort} state={state} change={change} />
    </div>
  );
}
