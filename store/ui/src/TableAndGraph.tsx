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
  return (
    <div class="panes">
      <FunctionTable
        graph={graph}
        search={state.search}
        sort={sort}
        onSort={(sort) => change({ sort })}
        onSearch={(search) => change({ search: search === state.search ? '' : search })}
      />
      <FlameGraph graph={graph} tree={tree} state={state} change={change} />
    </div>
  );
}
