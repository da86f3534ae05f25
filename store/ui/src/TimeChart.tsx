import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { TimelineAnswer } from './api';
import { formatRate, tickSteps } from './format';

export interface Span {
  from: number; // milliseconds
  until: number;
  colour: string;
  label: string;
}

// The texts of the time axis by the distance between two of them, after uPlot's own, but with a clock of 24 hours.
const kDay = 86_400;
const kTimeTexts: uPlot.Axis.Values = [
  [365 * kDay, '{YYYY}', null, null, null, null, null, null, 1],
  [28 * kDay, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [kDay, '{MMM} {D}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{YYYY}-{MM}-{DD}', null, '\n{MM}-{DD}', null, null, null, 1],
  [1, ':{ss}', '\n{YYYY}-{MM}-{DD} {HH}:{mm}', null, '\n{MM}-{DD} {HH}:{mm}', null, '\n{HH}:{mm}', null, 1],
];

// Totals over time; dragging over the chart gives a range.
export function TimeChart(props: {
  timelines: { label: string; answer: TimelineAnswer; colour: string }[];
  spans?: Span[];
  onSelect: (fromMs: number, untilMs: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const select = useRef(props.onSelect);
  select.current = props.onSelect;

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const first = props.timelines[0]?.answer;
    if (width === 0 || !first) return;
    const style = getComputedStyle(box.current!);
    const text = style.getPropertyValue('--text');
    const grid = { stroke: style.getPropertyValue('--line'), width: 1 };
    const begin = Date.parse(first.from) / 1000;
    const length = Math.max(...props.timelines.map((t) => t.answer.lines[0]?.points.length ?? 0));
    const times = Array.from({ length }, (_, i) => begin + i * first.stepSeconds);
    const rate = (value: number) => formatRate(value, first.stepSeconds, first);
    const chart = new uPlot(
      {
        width,
        height: 140,
        legend: { show: props.timelines.length > 1, live: false },
        cursor: { drag: { x: true, y: false, setScale: false } },
        select: { show: true, left: 0, top: 0, width: 0, height: 0 },
        scales: { x: { range: () => [begin, Date.parse(first.until) / 1000] } },
        axes: [
          { stroke: text, grid, ticks: grid, values: kTimeTexts },
          { stroke: text, grid, ticks: grid, size: 90, incrs: tickSteps(first), values: (_, ticks) => ticks.map(rate) },
        ],
        series: [
          {},
          ...props.timelines.map(({ label, colour }) => ({
            label,
            stroke: colour,
            fill: `${colour}22`,
            width: 1.5,
            points: { show: false },
          })),
        ],
        hooks: {
          drawClear: [
            (plot) => {
              for (const span of props.spans ?? []) {
                const left = plot.valToPos(span.from / 1000, 'x', true);
                const right = plot.valToPos(span.until / 1000, 'x', true);
                plot.ctx.fillStyle = `${span.colour}33`;
                plot.ctx.fillRect(left, plot.bbox.top, right - left, plot.bbox.height);
              }
            },
          ],
          setSelect: [
            (plot) => {
              if (plot.select.width < 4) return;
              const at = (x: number) => Math.round(plot.posToVal(x, 'x') * 1000);
              select.current(at(plot.select.left), at(plot.select.left + plot.select.width));
            },
          ],
        },
      },
      [times, ...props.timelines.map((t) => t.answer.lines[0]?.points ?? times.map(() => 0))] as uPlot.AlignedData,
      box.current!,
    );
    return () => chart.destroy();
  }, [props.timelines, JSON.stringify(props.spans), width]);

  return (
    <div
      ref={box}
      class="time-chart"
      role="img"
      aria-label="Total over time; drag over it to choose a range"
    />
  );
}
