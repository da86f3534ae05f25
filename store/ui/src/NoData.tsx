import { ApiError, getTypes } from './api';
import { type State, linkTo } from './state';
import { useAnswer } from './useAnswer';

// Why there is nothing to see, and what to do about it.
export function NoData({ error, state }: { error?: Error; state: State }) {
  const types = useAnswer(`${state.from} ${state.until}`, (signal) =>
    getTypes(state.from, state.until, signal),
  );
  const nothingMatches = !error || (error instanceof ApiError && error.status === 404);
  if (!nothingMatches) {
    return (
      <div class="no-data" role="alert">
        <h2>{error instanceof ApiError ? 'The store cannot answer this' : 'The store does not answer'}</h2>
        <p>{error.message}</p>
      </div>
    );
  }
  const empty = types.value?.length === 0;
  return (
    <div class="no-data" role="status">
      <h2>No profiles</h2>
      {empty ? (
        <p>
          Nothing at all was stored in this range. If the store has just started, the first profiles come within a
          minute; otherwise the <a href={linkTo({ ...state, view: 'fleet', search: '' })}>fleet</a> says what keeps
          them away.
        </p>
      ) : (
        <p>
          There are profiles in this range, but none with this type and these labels. Choose another profile, service
          or filter, or a longer range.
        </p>
      )}
    </div>
  );
}
