// SPDX-License-Identifier: Apache-2.0
// Profiles itself with @pyroscope/nodejs until its input ends: client.mjs URL NAME PASSWORD.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';

// The packages are installed in the build tree, beside which this file does not lie.
const require = createRequire(join(process.env.FF_NODE_MODULES, 'x.js'));
const Pyroscope = require('@pyroscope/nodejs').default;

const [url, name, password] = process.argv.slice(2);
const kept = [];

function hotLeaf() {
  let sum = 0;
  for (let i = 0; i < 2e6; ++i) sum += Math.sqrt(i);
  return sum;
}

function outer() {
  kept.push(Buffer.from(JSON.stringify({ text: 'x'.repeat(20_000), sum: hotLeaf() })).toString());
  if (kept.length > 200) kept.shift();
}

Pyroscope.init({
  serverAddress: url,
  appName: 'node-client',
  basicAuthUser: name,
  basicAuthPassword: password,
  tags: { team: 'a.b' },
  flushIntervalMs: 1000,
  wall: { collectCpuTime: true },
});
Pyroscope.start();
let ended = false;
process.stdin.on('end', () => (ended = true)).resume();
while (!ended) {
  outer();
  await setImmediate();
}
await Pyroscope.stop();
