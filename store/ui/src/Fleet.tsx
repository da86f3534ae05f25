import type { ComponentChildren } from 'preact';
import { ApiError, type FailingPod, type FleetObject, type FleetReport, getFleet } from './api';
import { formatValue } from './format';
import type { SetState, State } from './state';
import { useAnswer } from './useAnswer';

const kSilentSeconds = 60; // the operator speaks every 15 s

// The Ready condition, in words and a colour; its message where something is wrong.
function Ready({ object }: { object: FleetObject }) {
  const ready = object.status.conditions?.find(({ type }) => type === 'Ready');
  const stalled = object.status.conditions?.some(({ type, status }) => type === 'Stalled' && status === 'True');
  if (!ready) return <span class="badge wait">not judged yet</span>;
  if (ready.status === 'True') return <span class="badge good">Ready</span>;
  return (
    <>
      <span class={stalled ? 'badge bad' : 'badge wait'}>{ready.reason}</span> <span>{ready.message}</span>
    </>
  );
}

const count = (value: number | undefined) => (value ?? 0).toLocaleString('en');
const failing = (value: number | undefined) => <td class={value ? 'more' : ''}>{count(value)}</td>;
const kindless = (object: FleetObject) =>
  object.namespace ? `${object.namespace}/${object.name}` : object.name;

// "2026-11-30T03:00:00Z" -> "12 min"
function since(time: string | undefined) {
  if (!time) return '';
  return formatValue(Math.max(0, Date.now() - Date.parse(time)) * 1e6, 'nanoseconds').replace(/\.\d+/, '');
}

function Table<T>(props: {
  title: string;
  columns: string[];
  rows: T[];
  total?: number;
  none: string;
  row: (row: T) => ComponentChildren;
}) {
  const { title, rows, total = rows.length } = props;
  return (
    <section aria-label={title}>
      <h2>
        {title} <small>{count(total)}</small>
      </h2>
      {rows.length === 0 ? (
        <p class="hint">{props.none}</p>
      ) : (
        <div class="wide">
          <table>
            <thead>
              <tr>
                {props.columns.map((column) => (
                  <th key={column} scope="col">
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>{rows.map(props.row)}</tbody>
          </table>
        </div>
      )}
      {total > rows.length && <p class="hint">{count(total - rows.length)} more are not shown here.</p>}
    </section>
  );
}

interface PodRow extends FailingPod {
  asker: string; // the object that wants its profiles
}

// Of targets, whose pods are of their namespace, and of pools: pods with annotations.
const podsOf = (fleet: FleetReport, list: 'failingPods' | 'warnings'): PodRow[] =>
  [...fleet.targets.items, ...fleet.pools.items].flatMap((object) =>
    (object.status[list] ?? []).map((pod) => ({
      ...pod,
      namespace: pod.namespace ?? object.namespace,
      asker: object.namespace ? `target ${object.name}` : `annotations, pool ${object.name}`,
    })),
  );

function Pods(props: { title: string; pods: PodRow[]; total?: number; none: string }) {
  return (
    <Table
      {...props}
      columns={['Pod', 'Node', 'Profile', 'Why', 'Since', 'Wanted by']}
      rows={props.pods}
      row={(pod) => (
        <tr key={`${pod.namespace}/${pod.name} ${pod.asker} ${pod.reason}`}>
          <td>
            {pod.namespace}/{pod.name}
          </td>
          <td>{pod.node}</td>
          <td>{pod.profile ?? 'all'}</td>
          <td class="why">
            <span class="badge wait">{pod.reason}</span> {pod.message}
          </td>
          <td>{since(pod.since)}</td>
          <td>{pod.asker}</td>
        </tr>
      )}
    />
  );
}

function Objects({ fleet }: { fleet: FleetReport }) {
  const { pools, backends, targets } = fleet;
  const nodes = pools.items.flatMap((pool) =>
    (pool.status.problemNodes ?? []).map((node) => ({ ...node, pool: pool.name })),
  );
  return (
    <>
      <Table
        title="Pools"
        columns={['Pool', 'State', 'Nodes', 'Ready', 'Profiling', 'Degraded', 'Annotated pods', 'Profiled', 'Failing']}
        rows={pools.items}
        total={pools.total}
        none="There is no AgentPool: no node has an agent."
        row={(pool) => (
          <tr key={pool.name}>
            <td>{pool.name}</td>
            <td class="why">
              <Ready object={pool} />
            </td>
            <td>{count(pool.status.nodes?.desired)}</td>
            <td>{count(pool.status.nodes?.ready)}</td>
            <td>{count(pool.status.nodes?.profiling)}</td>
            {failing(pool.status.nodes?.degraded)}
            <td>{count(pool.status.annotatedPods?.matched)}</td>
            <td>{count(pool.status.annotatedPods?.profiled)}</td>
            {failing(pool.status.annotatedPods?.failing)}
          </tr>
        )}
      />
      <Table
        title="Nodes with a problem"
        columns={['Node', 'Why', 'Pool']}
        rows={nodes}
        total={pools.items.reduce((sum, pool) => sum + Number(pool.status.nodes?.degraded ?? 0), 0)}
        none="No agent has a problem."
        row={(node) => (
          <tr key={`${node.pool} ${node.name}`}>
            <td>{node.name}</td>
            <td class="why">
              <span class="badge wait">{node.reason}</span> {node.message}
            </td>
            <td>{node.pool}</td>
          </tr>
        )}
      />
      <Table
        title="Targets"
        columns={['Target', 'State', 'Pods', 'Profiled', 'Idle', 'Waiting', 'Failing', 'Last profile']}
        rows={targets.items}
        total={targets.total}
        none="There is no ProfilingTarget; pods may ask by annotations."
        row={(target) => (
          <tr key={kindless(target)}>
            <td>{kindless(target)}</td>
            <td class="why">
              <Ready object={target} />
            </td>
            <td>{count(target.status.pods?.matched)}</td>
            <td>{count(target.status.pods?.profiled)}</td>
            <td>{count(target.status.pods?.idle)}</td>
            <td>{count(target.status.pods?.waiting)}</td>
            {failing(target.status.pods?.failing)}
            <td>{target.status.lastProfileTime ? `${since(target.status.lastProfileTime)} ago` : 'none'}</td>
          </tr>
        )}
      />
      <Table
        title="Backends"
        columns={['Backend', 'State', 'Endpoint', 'Agents delivering', 'Failing', 'Profiles waiting', 'Bytes', 'Oldest']}
        rows={backends.items}
        total={backends.total}
        none="There is no ProfilingBackend: profiles have nowhere to go."
        row={(backend) => (
          <tr key={backend.name}>
            <td>{backend.name}</td>
            <td class="why">
              <Ready object={backend} />
            </td>
            <td>{backend.status.endpoint}</td>
            <td>{count(backend.status.agents?.delivering)}</td>
            {failing(backend.status.agents?.failing)}
            <td>{count(backend.status.backlog?.profiles)}</td>
            <td>{formatValue(backend.status.backlog?.bytes ?? 0, 'bytes')}</td>
            <td>{since(backend.status.backlog?.oldest)}</td>
          </tr>
        )}
      />
    </>
  );
}

// Why a pod has no profile: what the operator knows, as kubectl would show it.
export function Fleet({ state, change }: { state: State; change: SetState }) {
  const answer = useAnswer('fleet', getFleet);
  if (answer.error) {
    const untold = answer.error instanceof ApiError && answer.error.status === 404;
    return (
      <div class="no-data" role={untold ? 'status' : 'alert'}>
        <h2>{untold ? 'No operator has told about a fleet' : 'The store does not answer'}</h2>
        <p>
          {untold
            ? 'The Flamefleet operator tells the stores that it runs every 15 seconds. A store that runs elsewhere, or without ' +
              'Kubernetes, has no fleet; kubectl get agentpools,profilingbackends,profilingtargets -A shows the same there.'
            : answer.error.message}
        </p>
      </div>
    );
  }
  if (!answer.value) return <p class="hint">Loading…</p>;
  const { fleet, ageSeconds } = answer.value;
  const wanted = state.search.toLowerCase();
  const matching = (pods: PodRow[]) =>
    pods.filter((pod) => JSON.stringify(Object.values(pod)).toLowerCase().includes(wanted));
  const all = podsOf(fleet, 'failingPods');
  const pods = matching(all);
  const failingPods =
    fleet.targets.items.reduce((sum, { status }) => sum + (status.pods?.failing ?? 0), 0) +
    fleet.pools.items.reduce((sum, { status }) => sum + (status.annotatedPods?.failing ?? 0), 0);
  return (
    <div class="fleet">
      <div class="toolbar">
        <label>
          Find a pod
          <input
            type="search"
            placeholder="name, node or reason"
            value={state.search}
            onInput={(e) => change({ search: e.currentTarget.value }, { replace: true })}
          />
        </label>
        <p class="said" role="status">
          The operator said this {ageSeconds} seconds ago.{' '}
          {ageSeconds > kSilentSeconds && (
            <strong class="more">It speaks every 15 seconds: either none leads, or it cannot reach this store.</strong>
          )}
        </p>
      </div>
      <Pods
        title="Pods without a profile"
        pods={pods}
        total={wanted === '' ? failingPods : undefined}
        none={all.length === 0 ? 'Every pod that is wanted is profiled, idle or about to be.' : 'None of them matches.'}
      />
      <Objects fleet={fleet} />
      <Pods
        title="Pods with a warning"
        pods={matching(podsOf(fleet, 'warnings'))}
        none="Nothing that annotations or targets say is in vain."
      />
    </div>
  );
}
