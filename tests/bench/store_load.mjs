#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// A store under the pushes of a fleet, while people look at it.
//   tests/bench/store_load.mjs [SECONDS]    of pushing; 60 by default
// 500 agents push 5 profiles each every 15 seconds, one request per profile: profiles of real programs
// (tests/data/pprof) with times of now, each a series of its own. Ten users ask one query after the
// other, a second apart. Prints pushes per second, latencies, refusals, the store's memory and CPU; then
// the memory of a store that is started on what was stored, at rest, and after queries about all of it.
// Fails when an acknowledged profile is not there at the end.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

const kAgents = 500;
const kProfiles = 5; // of each agent, per interval
const kInterval = 15_000;
const kUsers = 10;
const seconds = Number(process.argv[2] ?? 60);
const root = fileURLToPath(new URL('../..', import.meta.url));

const originals = [
  { type: 'process_cpu', file: 'sdk_go_cpu' },
  { type: 'wall', file: 'sdk_node_wall' },
  { type: 'process_cpu', file: 'real_cpu' },
].map(({ type, file }) => ({
  type,
  profile: gunzipSync(readFileSync(join(root, `tests/data/pprof/${file}.pb.gz`))),
}));

// The profile at another time: of a field that comes twice the last one counts.
function at(profile, timeMs) {
  const time = [9 << 3];
  let rest = BigInt(timeMs) * 1_000_000n;
  for (; rest >= 128n; rest >>= 7n) time.push(Number(rest & 127n) | 128);
  return gzipSync(Buffer.concat([profile, Buffer.from([...time, Number(rest)])]));
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 256 });
function ask(method, port, path, body) {
  const start = performance.now();
  return new Promise((resolve) => {
    const request = http.request(
      { agent, host: '127.0.0.1', port, method, path, headers: body ? { 'Content-Type': 'application/json' } : {} },
      (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part));
        response.on('end', () =>
          resolve({ status: response.statusCode, ms: performance.now() - start, body: Buffer.concat(parts).toString() }),
        );
      },
    );
    request.on('error', (error) => resolve({ status: error.code, ms: performance.now() - start, body: '' }));
    request.end(body);
  });
}

function show(what, answers) {
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  const share = (part) => times[Math.floor(part * (times.length - 1))].toFixed(0);
  const failed = {};
  for (const { status } of answers) if (status !== 200) failed[status] = (failed[status] ?? 0) + 1;
  console.log(`${what}: ${answers.length}, median ${share(0.5)} ms, p99 ${share(0.99)} ms, longest ${share(1)} ms; ` +
    `not answered with 200: ${JSON.stringify(failed)}`);
}

const data = mkdtempSync(join(tmpdir(), 'flamefleet-load-'));
async function startStore() {
  const store = spawn(join(root, 'build/release/bin/flamefleet-store'), ['--listen', '127.0.0.1:0', '--data', data]);
  for await (const line of createInterface({ input: store.stderr })) {
    const { port } = JSON.parse(line);
    if (!port) continue;
    store.stderr.resume();
    return { store, port };
  }
  throw new Error('the store does not listen');
}
async function stop(store) {
  const ended = new Promise((resolve) => store.once('exit', resolve));
  store.kill('SIGTERM');
  await ended;
}
// VmRSS: now; VmHWM: at most so far.
function megabytes(store, what) {
  const status = readFileSync(`/proc/${store.pid}/status`, 'utf8');
  return new RegExp(`${what}:\\s+(\\d+)`).exec(status)[1] >> 10;
}

let { store, port } = await startStore();

const begin = Date.now();
const end = begin + 1000 * seconds;
const pushes = [];
const queries = [];
let acknowledged = 0;

async function runAgent(number) {
  await sleep((kInterval * number) / kAgents);
  for (let round = 0; Date.now() < end; ++round) {
    const due = begin + (kInterval * number) / kAgents + round * kInterval;
    await sleep(Math.max(0, due - Date.now()));
    for (let i = 0; i < kProfiles; ++i) {
      const { type, profile } = originals[(number + i) % originals.length];
      const labels = { __name__: type, service_name: `service-${(number * kProfiles + i) % 100}`, pod: `pod-${number}-${i}` };
      const body = JSON.stringify({
        series: [{
          labels: Object.entries(labels).map(([name, value]) => ({ name, value })),
          samples: [{ rawProfile: at(profile, Date.now()).toString('base64') }],
        }],
      });
      const answer = await ask('POST', port, '/push.v1.PusherService/Push', body);
      if (answer.status === 200) acknowledged++;
      pushes.push(answer);
    }
  }
}

async function runUser(number) {
  const selector = encodeURIComponent(`process_cpu{service_name="service-${number}"}`);
  const paths = [`/flamegraph?query=${selector}`, '/timeline?by=service_name', `/top?query=${selector}`, '/series', '/types'];
  for (let i = 0; Date.now() < end; ++i) {
    const answer = await ask('GET', port, paths[i % paths.length]);
    if (answer.status !== 404) queries.push(answer); // nothing there yet
    await sleep(1000);
  }
}

await Promise.all([
  ...Array.from({ length: kAgents }, (_, i) => runAgent(i)),
  ...Array.from({ length: kUsers }, (_, i) => runUser(i)),
]);
const took = (Date.now() - begin) / 1000;
console.log(`${kAgents} agents: ${(pushes.length / took).toFixed(0)} pushes a second for ${took.toFixed(0)} s`);
show('pushes', pushes);
show('queries', queries);
const ticks = readFileSync(`/proc/${store.pid}/stat`, 'utf8').split(') ')[1].split(' ');
const cpu = (Number(ticks[11]) + Number(ticks[12])) / 100;
console.log(`store: ${megabytes(store, 'VmHWM')} MB at most, ${cpu.toFixed(1)} s of CPU, ` +
  `${(pushes.length / cpu).toFixed(0)} pushes per second of CPU, queries included`);
const { body } = await ask('GET', port, '/metrics');
const stored = Number(/^flamefleet_store_profiles_stored_total (\d+)/m.exec(body)[1]);
const series = JSON.parse((await ask('GET', port, '/series')).body).series.length;
console.log(`acknowledged ${acknowledged}, stored ${stored}, of ${series} series`);

await stop(store);
({ store, port } = await startStore());
const atRest = megabytes(store, 'VmRSS');
for (const path of ['/flamegraph?query=process_cpu', '/timeline?by=service_name', '/top?query=process_cpu', '/top?query=wall', '/series']) {
  const { status, ms } = await ask('GET', port, path);
  console.log(`a store with all of this: GET ${path}: ${status} after ${ms.toFixed(0)} ms`);
}
console.log(`its memory: ${atRest} MB at rest, ${megabytes(store, 'VmHWM')} MB at most under these queries`);
await stop(store);
rmSync(data, { recursive: true, force: true });
agent.destroy();
if (stored < acknowledged) process.exit(1);
