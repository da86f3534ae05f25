import { render } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import 'uplot/dist/uPlot.min.css';
import { getTypes } from './api';
import { Comparison, Diff } from './Comparison';
import { Fleet } from './Fleet';
import { Overview } from './Overview';
import { Single } from './Single';
import { type State, type View, linkTo, useUrlState, views } from './state';
import './style.css';
import { Filter, RangeSelect, ServiceSelect, TypeSelect } from './Toolbar';
import { useAnswer } from './useAnswer';

const titles: Record<View, string> = {
  overview: 'Overview',
  single: 'Flame graph',
  compare: 'Comparison',
  diff: 'Diff',
  fleet: 'Fleet',
};
// A function that was searched is no pod.
const goTo = (state: State, view: View): State => ({
  ...state,
  view,
  search: (view === 'fleet') === (state.view === 'fleet') ? state.search : '',
});
const themes = ['system', 'light', 'dark'];

function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem('theme') ?? 'system');
  useLayoutEffect(() => {
    localStorage.setItem('theme', theme);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const show = () => {
      document.documentElement.dataset.theme = theme !== 'system' ? theme : dark.matches ? 'dark' : 'light';
    };
    show();
    dark.addEventListener('change', show);
    return () => dark.removeEventListener('change', show);
  }, [theme]);
  return (
    <label>
      Theme{' '}
      <select value={theme} onChange={(e) => setTheme(e.currentTarget.value)}>
        {themes.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function App() {
  const [state, change] = useUrlState();
  const [refresh, setRefresh] = useState(0);
  const types = useAnswer(`${state.from} ${state.until} ${refresh}`, (signal) =>
    getTypes(state.from, state.until, signal),
  );
  return (
    <>
      <header>
        <a class="brand" href="/">
          <img src="/icon.svg" alt="" width="20" height="20" /> Flamefleet
        </a>
        <nav aria-label="Views">
          {views.map((view) => (
            <a
              key={view}
              href={linkTo(goTo(state, view))}
              aria-current={state.view === view ? 'page' : undefined}
              onClick={(event) => {
                if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                event.preventDefault();
                change(goTo(state, view));
              }}
            >
              {titles[view]}
            </a>
          ))}
        </nav>
        <Theme />
      </header>
      <main>
        <h1>{titles[state.view]}</h1>
        <div class="toolbar">
          {state.view !== 'fleet' && (
            <>
              <TypeSelect types={types.value ?? []} state={state} change={change} />
              {state.view !== 'overview' && <ServiceSelect state={state} change={change} />}
              <Filter label="Labels" state={state} value={state.filter} onChange={(filter) => change({ filter })} />
              <RangeSelect state={state} change={change} />
            </>
          )}
          <button onClick={() => setRefresh(refresh + 1)}>Refresh</button>
        </div>
        <div key={refresh}>
          {state.view === 'overview' && <Overview state={state} />}
          {state.view === 'single' && <Single state={state} change={change} />}
          {state.view === 'compare' && <Comparison state={state} change={change} />}
          {state.view === 'diff' && <Diff state={state} change={change} />}
          {state.view === 'fleet' && <Fleet state={state} change={change} />}
        </div>
      </main>
    </>
  );
}

render(<App />, document.getElementById('app')!);
