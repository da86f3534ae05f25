import type { FlameGraphAnswer } from './api';
import { formatValue, percent, signed } from './format';
import { type Frame, deltaOf } from './graph';

// What the tooltip and the line of the chosen frame say.
export function FrameInfo({ frame, graph }: { frame: Frame; graph: FlameGraphAnswer }) {
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
