// Numbers for people.

const scaled = (value: number, scales: [number, string][], smallest: string) => {
  const scale = scales.find(([factor]) => Math.abs(value) >= factor);
  return scale ? `${(value / scale[0]).toFixed(2)} ${scale[1]}` : `${round(value)}${smallest}`;
};
const round = (value: number) => Number(value.toFixed(2)).toLocaleString('en');

export function formatValue(value: number, unit: string): string {
  if (unit === 'nanoseconds') {
    return scaled(value, [[3600e9, 'h'], [60e9, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs']], ' ns');
  }
  if (unit === 'bytes') {
    return scaled(value, [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB']], ' B');
  }
  return round(value);
}

export const percent = (part: number, whole: number) =>
  whole === 0 ? '0 %' : `${((100 * part) / whole).toFixed(2)} %`;

export const counted = (count: number, what: string) =>
  `${count.toLocaleString('en')} ${what}${count === 1 || what === 'series' ? '' : 's'}`;

export const signed = (points: number) => `${points > 0 ? '+' : ''}${points.toFixed(2)}`;

// A total per step as a rate, unless it is a level, which is a mean already: CPU time per time is a number of cores,
// small ones in thousandths.
export function formatRate(total: number, seconds: number, { unit, level }: { unit: string; level: boolean }): string {
  if (level) return formatValue(total, unit);
  if (unit === 'nanoseconds') {
    const cores = total / 1e9 / seconds;
    return cores === 0 || cores >= 0.1 ? `${cores.toFixed(2)} cores` : `${(1000 * cores).toFixed(1)} mcores`;
  }
  return `${formatValue(total / seconds, unit)}/s`;
}

// Between the lines of an axis: round numbers of what formatRate shows.
export function tickSteps(timeline: { unit: string; level: boolean; stepSeconds: number }): number[] {
  const { unit, level, stepSeconds } = timeline;
  const one = level ? 1 : stepSeconds * (unit === 'nanoseconds' ? 1e9 : 1);
  const steps =
    unit === 'bytes'
      ? Array.from({ length: 50 }, (_, i) => 2 ** i)
      : Array.from({ length: 22 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** (i - 6))).flat();
  return steps.map((step) => step * one);
}

// As the browser's clock shows it, in a form that Date.parse reads back.
export function formatTime(milliseconds: number): string {
  const local = new Date(milliseconds - new Date(milliseconds).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19).replace('T', ' ');
}
