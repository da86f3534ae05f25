// The whole state of the page is in its address: a link shows another person the same.
import { useEffect, useState } from 'preact/hooks';
import type { Selection } from './api';

export const views = ['overview', 'single', 'compare', 'diff', 'fleet'] as const;
export type View = (typeof views)[number];

const defaults = {
  view: 'overview' as View,
  type: 'process_cpu:cpu',
  service: '',
  filter: '', // further matchers: namespace="shop", pod=~"web-.*"
  from: 'now-1h',
  until: 'now',
  // The baseline of a comparison; an empty range is the first half of from to until, and `main` the
  // second. Empty filters are those of the other side.
  baseFilter: '',
  baseFrom: '',
  baseUntil: '',
  mainFrom: '',
  mainUntil: '',
  search: '',
  sort: 'self' as 'self' | 'total' | 'name' | 'base' | 'delta' | 'selfDelta',
  root: 'top' as 'top' | 'bottom',
  palette: 'standard' as 'standard' | 'colour-blind',
  tenant: '', // of a store that keeps tenants apart; api.ts sends it with each request
  zoom: '', // the frame that fills the width: pathKey of graph.ts
  nodes: '', // how many frames at most; empty: as the store sees fit
};
export type State = typeof defaults;
export type SetState = (change: Partial<State>, keep?: { replace: boolean }) => void;

export function readState(search: string): State {
  const state: Record<string, string> = { ...defaults };
  for (const [key, value] of new URLSearchParams(search)) if (key in defaults) state[key] = value;
  if (!views.includes(state.view as View)) state.view = defaults.view;
  return state as unknown as State;
}

export function linkTo(state: State): string {
  const changed = Object.entries(state).filter(
    ([key, value]) => value !== defaults[key as keyof State],
  );
  return `/?${new URLSearchParams(changed)}`;
}

export function useUrlState(): [State, SetState] {
  const [state, setState] = useState(() => readState(location.search));
  useEffect(() => {
    const back = () => setState(readState(location.search));
    addEventListener('popstate', back);
    return () => removeEventListener('popstate', back);
  }, []);
  const change: SetState = (change, keep) => {
    setState((old) => {
      const next = { ...old, ...change };
      const link = linkTo(next);
      if (keep?.replace) history.replaceState(null, '', link);
      else if (link !== linkTo(old)) history.pushState(null, '', link);
      return next;
    });
  };
  return [state, change];
}

// A text of the store's query language.
const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`;

export const matcher = (label: string, value: string) => `${quoted(label)}=${quoted(value)}`;

// The same state with the times that are meant now: what is sent to somebody else stays as it is.
export function withTimes(state: State, now: number): State {
  const fixed = (text: string) => {
    const time = text && timeOf(text, now);
    return time && !Number.isNaN(time) ? String(Math.round(time)) : text;
  };
  return {
    ...state,
    from: fixed(state.from),
    until: fixed(state.until),
    baseFrom: fixed(state.baseFrom),
    baseUntil: fixed(state.baseUntil),
    mainFrom: fixed(state.mainFrom),
    mainUntil: fixed(state.mainUntil),
  };
}

export function queryOf(state: State, filter = state.filter): string {
  const matchers = [state.service && matcher('service_name', state.service), filter.trim()];
  return `${state.type}{${matchers.filter(Boolean).join(', ')}}`;
}

export const selectionOf = (state: State): Selection => ({
  query: queryOf(state),
  from: state.from,
  until: state.until,
});

// Milliseconds since 1970 of a time as the state has it, by the store's rules (time_range.cc); NaN: the store says
// what is wrong with it.
export function timeOf(text: string, now: number): number {
  if (text === 'now' || text === '') return now;
  if (text.startsWith('now-')) {
    const parts = [...text.slice(4).matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
    const unit = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5 } as Record<string, number>;
    if (parts.map(([part]) => part).join('') !== text.slice(4)) return NaN;
    return parts.reduce((time, [, count, name]) => time - Number(count) * unit[name!]!, now);
  }
  if (!/^\d+$/.test(text)) return Date.parse(text);
  let time = Number(text) * 1000; // seconds, unless that is too far away
  while (time >= 9e12) time /= 1000;
  return time;
}

// The two sides of a comparison.
export function sidesOf(state: State): { baseline: Selection; main: Selection } {
  const now = Date.now();
  const [from, until] = [timeOf(state.from, now), timeOf(state.until, now)];
  const known = !Number.isNaN(from + until);
  const middle = (otherwise: string) => (known ? String(Math.round((from + until) / 2)) : otherwise);
  return {
    baseline: {
      query: queryOf(state, state.baseFilter || state.filter),
      from: state.baseFrom || (known ? String(Math.round(from)) : state.from),
      until: state.baseUntil || middle(state.until),
    },
    main: {
      query: queryOf(state),
      from: state.mainFrom || middle(state.from),
      until: state.mainUntil || (known ? String(Math.round(until)) : state.until),
    },
  };
}
