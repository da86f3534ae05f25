import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { FlameGraphAnswer } from './api';
import { formatValue, percent, signed } from './format';
import { type FunctionRow, deltaOf, matches, pathEnd, selfDeltaOf, toTable } from './graph';
import type { State } from './state';

const kFirstRows = 100;

function sorted(rows: FunctionRow[], sort: State['sort'], graph: FlameGraphAnswer) {
  const name = (a: FunctionRow, b: FunctionRow) => (a.name < b.name ? -1 : 1);
  const largest = (value: (row: FunctionRow) => number) => (a: FunctionRow, b: FunctionRow) =>
    value(b) - value(a) || name(a, b);
  const by: Record<State['sort'], (a: FunctionRow, b: FunctionRow) => number> = {
    name,
    self: largest((row) => row.self),
    total: largest((row) => row.total),
    base: largest((row) => row.baseTotal),
    delta: largest((row) => Math.abs(deltaOf(row, graph))),
    selfDelta: largest((row) => Math.abs(selfDeltaOf(row, graph))),
  };
  return rows.sort(by[sort] ?? by.self);
}

// The name, with what was searched marked; of a path the end stays when there is no room.
function Name({ name, search }: { name: string; search: string }) {
  const marked = (text: string, offset: number): ComponentChildren => {
    if (!matches(name, search)) return text;
    const at = name.toLowerCase().indexOf(search.toLowerCase());
    const cut = (position: number) => Math.min(Math.max(position - offset, 0), text.length);
    const [begin, end] = [cut(at), cut(at + search.length)];
    return [text.slice(0, begin), <mark key="m">{text.slice(begin, end)}</mark>, text.slice(end)];
  };
  const end = pathEnd(name);
  return (
    <>
      {end > 0 && <span class="path">{marked(name.slice(0, end), 0)}</span>}
      <span class="last">{marked(name.slice(end), end)}</span>
    </>
  );
}

function Share({ value, whole, unit }: { value: number; whole: number; unit: string }) {
  const share = whole === 0 ? 0 : Math.min(1, Math.max(0, value / whole));
  return (
    <td class="share" style={{ '--share': `${(100 * share).toFixed(1)}%` }}>
      {formatValue(value, unit)} <small>{percent(value, whole)}</small>
    </td>
  );
}

function Change({ points }: { points: number }) {
  const kind = Math.abs(points) < 0.005 ? '' : points > 0 ? 'more' : 'less';
  return <td class={kind}>{signed(points)} pp</td>;
}

interface Column {
  key: State['sort'];
  title: string;
  cell: (row: FunctionRow) => ComponentChildren;
}

function columnsOf(graph: FlameGraphAnswer): Column[] {
  const { baseline: base, unit } = graph;
  if (!base) {
    return [
      { key: 'self', title: 'Self', cell: (row) => <Share value={row.self} whole={graph.total} unit={unit} /> },
      { key: 'total', title: 'Total', cell: (row) => <Share value={row.total} whole={graph.total} unit={unit} /> },
    ];
  }
  return [
    { key: 'base', title: 'Before', cell: (row) => <td>{percent(row.baseTotal, base.total)}</td> },
    { key: 'total', title: 'Now', cell: (row) => <td>{percent(row.total, graph.total)}</td> },
    { key: 'selfDelta', title: 'Self Δ', cell: (row) => <Change points={selfDeltaOf(row, graph)} /> },
    { key: 'delta', title: 'Total Δ', cell: (row) => <Change points={deltaOf(row, graph)} /> },
  ];
}

// All functions as numbers, those of frames too small to draw as well; a row marks its function in the graph.
export function FunctionTable(props: {
  graph: FlameGraphAnswer;
  search: string;
  sort: State['sort'];
  onSort: (sort: State['sort']) => void;
  onSearch: (name: string) => void;
}) {
  const { graph, search, sort } = props;
  const [all, setAll] = useState(false);
  const rows = useMemo(() => sorted(toTable(graph), sort, graph), [graph, sort]);
  const shown = search === '' ? rows : rows.filter((row) => matches(row.name, search));
  const columns = useMemo(() => columnsOf(graph), [graph]);
  const heading = (key: State['sort'], title: string) => (
    <th key={key} scope="col" aria-sort={sort === key ? (key === 'name' ? 'ascending' : 'descending') : 'none'}>
      <button onClick={() => props.onSort(key)}>
        {title}
        <span aria-hidden="true">{sort !== key ? '' : key === 'name' ? ' ▴' : ' ▾'}</span>
      </button>
    </th>
  );
  return (
    <section class={graph.baseline ? 'functions diff' : 'functions'} aria-label="Functions">
      <table>
        <thead>
          <tr>
            {heading('name', 'Function')}
            {columns.map(({ key, title }) => heading(key, title))}
          </tr>
        </thead>
        <tbody>
          {shown.slice(0, all ? undefined : kFirstRows).map((row) => (
            <tr key={row.name}>
              <td>
                <button class="name" title={row.name} onClick={() => props.onSearch(row.name)}>
                  <Name name={row.name} search={search} />
                </button>
              </td>
              {columns.map(({ cell }) => cell(row))}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length === 0 && <p class="hint">No function has “{search}” in its name.</p>}
      {shown.length > kFirstRows && !all && (
        <button class="all" onClick={() => setAll(true)}>
          Show all {shown.length.toLocaleString('en')}
        </button>
      )}
    </section>
  );
}
