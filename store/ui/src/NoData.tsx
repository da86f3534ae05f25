import { useState } from 'preact/hooks';
import { ApiError, getTypes } from './api';
import { type State, linkTo } from './state';
import { useAnswer } from './useAnswer';

// A store that keeps tenants apart wants to know whose profiles these are.
function TenantForm({ state }: { state: State }) {
  const [tenant, setTenant] = useState('');
  return (
    <form
      class="no-data"
      onSubmit={(event) => {
        event.preventDefault();
        location.href = linkTo({ ...state, tenant });
      }}
    >
      <h2>Whose profiles?</h2>
      <p>This store keeps the profiles of several tenants apart.</p>
      <label>
        Tenant <input value={tenant} onInput={(e) => setTenant(e.currentTarget.value.trim())} />
      </label>{' '}
      <button>Show</button>
    </form>
  );
}

// Why there is nothing to see, and what to do about it.
export function NoData({ error, state }: { error?: Error; state: State }) {
  const types = useAnswer(`${state.from} ${state.until}`, (signal) =>
    getTypes(state.from, state.until, signal),
  );
  if (error instanceof ApiError && error.status === 401 && error.message.includes('X-Scope-OrgID')) {
    return <TenantForm state={state} />;
  }
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
