import { getTimeline } from './api';
import { formatRate, formatValue, percent } from './format';
import { NoData } from './NoData';
import { type State, linkTo, selectionOf } from './state';
import { useAnswer } from './useAnswer';

function Sparkline({ points }: { points: number[] }) {
  const most = Math.max(1, ...points);
  const line = points
    .map((value, i) => `${((100 * i) / Math.max(1, points.length - 1)).toFixed(1)},${(24 - (22 * value) / most).toFixed(1)}`)
    .join(' ');
  return (
    <svg class="sparkline" viewBox="0 0 100 25" preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,25 ${line} 100,25`} />
      <polyline points={line} />
    </svg>
  );
}

// Who uses most: one row per service, the largest first.
export function Overview({ state }: { state: State }) {
  const selection = selectionOf({ ...state, service: '' });
  const timeline = useAnswer(JSON.stringify(selection), (signal) =>
    getTimeline(selection, 'service_name', signal),
  );
  const answer = timeline.value;
  if (timeline.error) return <NoData error={timeline.error} state={state} />;
  if (!answer) return <p class="hint">Loading…</p>;
  if (answer.lines.length === 0) return <NoData state={state} />;
  const seconds = (Date.parse(answer.until) - Date.parse(answer.from)) / 1000;
  const whole = answer.total;
  return (
    <section class="overview" aria-label="Workloads">
      <table>
        <thead>
          <tr>
            <th scope="col">Service</th>
            <th scope="col">Over time</th>
            <th scope="col">Average</th>
            {!answer.level && <th scope="col">Total</th>}
            <th scope="col">Share</th>
          </tr>
        </thead>
        <tbody>
          {answer.lines.map((line) => (
            <tr key={line.value}>
              <td>
                <a href={linkTo({ ...state, view: 'single', service: line.value })}>{line.value}</a>
              </td>
              <td>
                <Sparkline points={line.points} />
              </td>
              <td>{formatRate(line.total, seconds, answer)}</td>
              {!answer.level && <td>{formatValue(line.total, answer.unit)}</td>}
              <td class="share" style={{ '--share': percent(line.total, whole).replace(' ', '') }}>
                {percent(line.total, whole)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {answer.lineCount > answer.lines.length && (
        <p class="hint">
          The {answer.lines.length} largest of {answer.lineCount} services; a filter narrows the choice.
        </p>
      )}
    </section>
  );
}
