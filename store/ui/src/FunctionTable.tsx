import { useMemo, useState } from 'preact/hooks';
import type { FlameGraphAnswer } from './api';
import { formatValue, percent, signed } from './format';
import { type FunctionRow, deltaOf, matches, toTable } from './graph';
import type { State } from './state';

const kFirstRows = 100;

function sorted(rows: FunctionRow[], sort: State['sort'], graph: FlameGraphAnswer) {
  const name = (a: FunctionRow, b: FunctionRow) => (a.name < b.name ? -1 : 1);
  const by: Record<State['sort'], (a: FunctionRow, b: FunctionRow) => number> = {
    name,
    self: (a, b) => b.self + b.baseSelf - a.self - a.baseSelf || name(a, b),
    total: (a, b) => b.total + b.baseTotal - a.total - a.baseTotal || name(a, b),
    delta: (a, b) => Math.abs(deltaOf(b, graph)) - Math.abs(deltaOf(a, graph)) || name(a, b),
  };
  return rows.sort(by[sort] ?? by.self);
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
  const base = graph.baseline;
  const columns: [State['sort'], string][] = [
    ['name', 'Function'],
    ['self', 'Self'],
    ['total', 'Total'],
    ...(base ? [['delta', 'Delta'] as [State['sort'], string]] : []),
  ];
  const cell = (value: number, whole: number) => (
    <>
      {formatValue(value, graph.unit)} <small>{percent(value, whole)}</small>
    </>
  );
  return (
    <section class="functions" aria-label="Functions">
      <table>
        <thead>
          <tr>
            {columns.map(([key, title]) => (
              <th scope="col" aria-sort={sort === key ? (key === 'name' ? 'ascending' : 'descending') : 'none'}>
                <button onClick={() => props.onSort(key)}>
                  {title}
                  {sort === key && ' ▾'}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.slice(0, all ? undefined : kFirstRows).map((row) => (
            <tr key={row.name}>
              <td>
                <button class="name" title={row.name} onClick={() => props.onSearch(row.name)}>
                  {row.name}
                </button>
              </td>
              <td>{cell(row.self, graph.total)}</td>
              <td>
                {cell(row.total, graph.total)}
                {base && <div class="base">was {cell(row.baseTotal, base.total)}</div>}
              </td>
              {base && (
                <td class={deltaOf(row, graph) > 0 ? 'more' : 'less'}>{signed(deltaOf(row, graph))} pp</td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length === 0 && <p class="hint">No function has “{search}” in its name.</p>}
      {shown.length > kFirstRows && !all && (
        <button onClick={() => setAll(true)}>Show all {shown.length.toLocaleString('en')}</button>
      )}
    </section>
  );
}
