// The store's answers, as its handler.cc lists them.

export interface Side {
  from: string;
  until: string;
  profiles: number;
  series: number;
  total: number;
}

export interface Values {
  self: number[];
  total: number[];
}

export interface FlameGraphAnswer extends Side {
  type: string;
  unit: string;
  functions: Values & { name: string[]; module: string[] };
  nodes: Values & { function: number[]; parent: number[] };
  pruned: { nodes: number; self: number };
  baseline?: Side & { functions: Values; nodes: Values; pruned: { self: number } };
}

export interface TimelineAnswer {
  type: string;
  unit: string;
  level: boolean; // values say how much there was: means of the steps, not sums
  from: string;
  until: string;
  stepSeconds: number;
  lineCount: number;
  total: number; // of all lines, those that are not given as well
  lines: { value: string; total: number; points: number[] }[];
}

export interface ProfileType {
  type: string;
  unit: string;
  default: boolean;
}

// What a status of our kinds says; operator/fleet_report.h.
export interface FailingPod {
  namespace?: string;
  name: string;
  node?: string;
  profile?: string;
  reason: string;
  message: string;
  since?: string;
}

interface PodCounts {
  matched: number;
  profiled: number;
  failing: number;
  waiting: number;
  idle: number;
}

export interface FleetObject {
  name: string;
  namespace?: string;
  status: {
    conditions?: { type: string; status: string; reason: string; message: string }[];
    failingPods?: FailingPod[];
    warnings?: FailingPod[];
    nodes?: { desired?: number; ready?: number; profiling?: number; degraded?: number };
    problemNodes?: { name: string; reason: string; message: string }[];
    annotatedPods?: PodCounts;
    pods?: PodCounts;
    lastProfileTime?: string;
    endpoint?: string;
    agents?: { delivering: number; failing: number };
    backlog?: { profiles: number; bytes: number; oldest?: string };
  };
}

interface FleetList {
  total: number;
  items: FleetObject[];
}

export type FleetReport = Record<'pools' | 'backends' | 'targets', FleetList>;

// What a query means: a profile type and label matchers, from when to when.
export interface Selection {
  query: string;
  from: string;
  until: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

// The parameters of a request, with the tenant of the page's address.
function parametersOf(parameters: object) {
  const tenant = new URLSearchParams(location.search).get('tenant');
  return new URLSearchParams({ ...parameters, ...(tenant && { tenant }) });
}

async function get<T>(path: string, parameters: Record<string, string>, signal: AbortSignal) {
  const response = await fetch(`${path}?${parametersOf(parameters)}`, {
    headers: { Accept: 'application/json' },
    signal,
  });
  if (!response.ok) throw new ApiError(response.status, (await response.text()).trim());
  return (await response.json()) as T;
}

// `nodes`: how many at most; empty: the store's default.
export const getFlameGraph = (
  main: Selection,
  baseline: Selection | null,
  nodes: string,
  signal: AbortSignal,
) =>
  get<FlameGraphAnswer>(
    '/flamegraph',
    {
      ...main,
      ...(nodes && { 'max-nodes': nodes }),
      ...(baseline && {
        'baseline-query': baseline.query,
        'baseline-from': baseline.from,
        'baseline-until': baseline.until,
      }),
    },
    signal,
  );

export const getTimeline = (selection: Selection, by: string, signal: AbortSignal) =>
  get<TimelineAnswer>('/timeline', { ...selection, ...(by && { by }) }, signal);

export const getFleet = (signal: AbortSignal) =>
  get<{ ageSeconds: number; fleet: FleetReport }>('/fleet', {}, signal);

export const getTypes = async (from: string, until: string, signal: AbortSignal) =>
  (await get<{ types: ProfileType[] }>('/types', { from, until }, signal)).types;

export const getSeries = async (selection: Selection, signal: AbortSignal) =>
  (await get<{ series: Record<string, string>[] }>('/series', { ...selection }, signal)).series;

export const getLabelValues = async (name: string, selection: Selection, signal: AbortSignal) =>
  (
    await get<{ values: string[] }>(
      `/labels/${encodeURIComponent(name)}/values`,
      { ...selection },
      signal,
    )
  ).values;

export const pprofUrl = (selection: Selection) =>
  `/pprof?${parametersOf(selection)}`;
