import { useRef, useEffect } from 'preact/hooks';
import { type ProfileType, getLabelValues, getSeries } from './api';
import { formatTime } from './format';
import { type SetState, type State, matcher, selectionOf, timeOf } from './state';
import { useAnswer } from './useAnswer';

const presets = ['15m', '1h', '6h', '24h', '3d', '7d'];

// "memory:inuse_space:bytes:space:bytes" -> "memory inuse_space"
const nameOf = (type: string) => type.split(':').slice(0, 2).join(' ');

export function TypeSelect(props: { types: ProfileType[]; state: State; change: SetState }) {
  const { types, state } = props;
  const chosen = types.find((t) => t.type === state.type || t.type.startsWith(`${state.type}:`));
  return (
    <label>
      Profile{' '}
      <select
        value={chosen?.type ?? state.type}
        onChange={(e) => props.change({ type: e.currentTarget.value, zoom: '' })}
      >
        {!chosen && <option value={state.type}>{nameOf(state.type)}</option>}
        {types.map((t) => (
          <option key={t.type} value={t.type}>
            {nameOf(t.type)}
          </option>
        ))}
      </select>
    </label>
  );
}

export function RangeSelect({ state, change }: { state: State; change: SetState }) {
  const preset = state.until === 'now' && presets.find((p) => state.from === `now-${p}`);
  const set = (from: string, until: string) =>
    change({ from, until, baseFrom: '', baseUntil: '', mainFrom: '', mainUntil: '' });
  const zoomOut = () => {
    const now = Date.now();
    const [from, until] = [timeOf(state.from, now), timeOf(state.until, now)];
    if (Number.isNaN(from + until)) return;
    const end = Math.min(now, until + (until - from) / 2);
    set(String(Math.round(end - 2 * (until - from))), String(Math.round(end)));
  };
  const range = (title: string, value: string, onChange: (value: string) => void) => (
    <label>
      {title}{' '}
      <input
        class="time"
        value={shown(value)}
        title="now-1h, 2026-01-31 12:00:00, 2026-01-31T12:00:00Z, or Unix seconds"
        onChange={(e) => onChange(meant(e.currentTarget.value))}
      />
    </label>
  );
  return (
    <>
      <label>
        Last{' '}
        <select
          value={preset || ''}
          onChange={(e) => e.currentTarget.value && set(`now-${e.currentTarget.value}`, 'now')}
        >
          {!preset && <option value="">other</option>}
          {presets.map((p) => (
            <option key={p} value={p}>
              {p}
            </option>
          ))}
        </select>
      </label>
      {range('From', state.from, (from) => set(from, state.until))}
      {range('Until', state.until, (until) => set(state.from, until))}
      <button title="Twice the range" onClick={zoomOut}>
        Zoom out
      </button>
    </>
  );
}

// Milliseconds, as a drag over a chart leaves them, as a time to read.
const shown = (time: string) => (/^\d{13}$/.test(time) ? formatTime(Number(time)) : time);

// What a person typed; a date without a zone is of the browser's clock, which the store does not know.
function meant(text: string) {
  const time = /^\d{4}-/.test(text.trim()) ? Date.parse(text.trim()) : NaN;
  return Number.isNaN(time) ? text.trim() : String(time);
}

// The labels that tell these series apart, with their first values.
function choicesOf(series: Record<string, string>[]) {
  const values = new Map<string, Set<string>>();
  for (const labels of series) {
    for (const [name, value] of Object.entries(labels)) {
      if (name === '__name__' || name === 'service_name') continue;
      values.set(name, (values.get(name) ?? new Set()).add(value));
    }
  }
  return [...values].sort().map(([name, found]) => ({ name, values: [...found].sort().slice(0, 50) }));
}

// Label matchers as text, and a choice of what there is to add.
export function Filter(props: { label: string; state: State; value: string; onChange: (filter: string) => void }) {
  const selection = selectionOf({ ...props.state, filter: props.value });
  const series = useAnswer(JSON.stringify(selection), (signal) => getSeries(selection, signal));
  const choices = choicesOf(series.value ?? []);
  const add = (text: string) =>
    text && props.onChange([props.value.trim(), text].filter(Boolean).join(', '));
  return (
    <label class="filter">
      <span class="caption">{props.label}</span>
      <input
        placeholder={'namespace="shop", pod=~"web-.*"'}
        value={props.value}
        onChange={(e) => props.onChange(e.currentTarget.value)}
      />
      <select aria-label={`Add to ${props.label}`} value="" onChange={(e) => add(e.currentTarget.value)}>
        <option value="">+ label</option>
        {choices.map(({ name, values }) => (
          <optgroup key={name} label={name}>
            {values.map((value) => (
              <option key={value} value={matcher(name, value)}>
                {value}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

export function ServiceSelect(props: { state: State; change: SetState }) {
  const selection = selectionOf({ ...props.state, service: '', filter: '' });
  const services = useAnswer(JSON.stringify(selection), (signal) =>
    getLabelValues('service_name', selection, signal),
  );
  const names = services.value ?? [];
  const { service } = props.state;
  return (
    <label>
      Service{' '}
      <select value={service} onChange={(e) => props.change({ service: e.currentTarget.value, zoom: '' })}>
        <option value="">all</option>
        {service && !names.includes(service) && <option value={service}>{service}</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

export function SearchAndLook({ state, change }: { state: State; change: SetState }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const slash = (event: KeyboardEvent) => {
      if (event.key !== '/' || /^(INPUT|SELECT|TEXTAREA)$/.test((event.target as Element).tagName)) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener('keydown', slash);
    return () => removeEventListener('keydown', slash);
  }, []);
  return (
    <div class="toolbar">
      <label>
        Search{' '}
        <input
          ref={input}
          type="search"
          placeholder="function name ( / )"
          value={state.search}
          onInput={(e) => change({ search: e.currentTarget.value }, { replace: true })}
        />
      </label>
      <label>
        Root{' '}
        <select value={state.root} onChange={(e) => change({ root: e.currentTarget.value as State['root'] })}>
          <option value="top">on top</option>
          <option value="bottom">at the bottom</option>
        </select>
      </label>
      <label>
        Colours{' '}
        <select value={state.palette} onChange={(e) => change({ palette: e.currentTarget.value as State['palette'] })}>
          <option>standard</option>
          <option>colour-blind</option>
        </select>
      </label>
    </div>
  );
}
