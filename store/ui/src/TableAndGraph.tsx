import type { FlameGraphAnswer } from './api';
import { FlameGraph } from './FlameGraph';
import { FunctionTable } from './FunctionTable';
import type { Frame } from './graph';
import type { SetState, State } from './state';

// The numbers beside the picture; both mark what is searched.
export function TableAndGraph(props: {
  graph: FlameGraphAnswer;
  tree: Frame;
  sort: State['sort'];
  state: State;
  change: SetState;
}) {
  const { graph, tree, sort, state, change } = props;
  const onSearch = (search: string) => change({ search });
  return (
    <div class="panes">
      <FunctionTable
        graph={graph}
        search={state.search}
        sort={sort}
        onSort={(sort) => change({ sort })}
        onSearch={onSearch}
      />
      <FlameGraph
        graph={graph}
        tree={tree}
        search={state.search}
        root={state.root}
        palette={state.palette}
        onSearch={onSearch}
      />
    </div>
  );
}
