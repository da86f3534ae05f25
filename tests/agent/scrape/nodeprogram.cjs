// SPDX-License-Identifier: Apache-2.0
// A program in Node that serves its own profiles where Go programs do, by @datadog/pprof (the
// successor of Google's pprof for Node), which lies in $FF_NODE_MODULES. Says "port N".
'use strict';
const http = require('node:http');
const {createRequire} = require('node:module');
const pprof = createRequire(process.env.FF_NODE_MODULES + '/')('@datadog/pprof');

function burnInNode() {
  const end = Date.now() + 50;
  while (Date.now() < end) {
  }
  setImmediate(burnInNode);
}

const kept = [];
function keepInNode() {
  for (let i = 0; i < 20000; ++i) kept.push({text: 'kept ' + i});
}

const profiles = {
  '/debug/pprof/profile': (url) =>
      pprof.time.profile({durationMillis: 1000 * Number(url.searchParams.get('seconds'))}),
  '/debug/pprof/heap': () => pprof.heap.profile(),
};

pprof.heap.start(16 << 10, 64);
keepInNode();
const server = http.createServer(async (request, response) => {
  const url = new URL(request.url, 'http://localhost');
  const profile = profiles[url.pathname];
  if (!profile) {
    response.writeHead(404).end();
    return;
  }
  response.end(await pprof.encode(await profile(url)));
});
server.listen(0, '127.0.0.1', () => {
  console.log('port ' + server.address().port);
  setImmediate(burnInNode);
});
