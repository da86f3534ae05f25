// SPDX-License-Identifier: Apache-2.0
// What shares.cc is, for JavaScript: node shares.js
let sink = 0;
let state = 1;

function Random(end) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return (state >>> 8) % end;
}

function Spin() {
  for (let i = 0; i < 500; ++i) sink = (sink + i) | 0;
}

function Seventy(units) {
  for (let i = 0; i < 7 * units; ++i) Spin();
}

function Thirty(units) {
  for (let i = 0; i < 3 * units; ++i) Spin();
}

function Middle() {
  for (let i = 0; i < 100; ++i) {
    const units = 1 + Random(8);
    Seventy(units);
    Thirty(units);
  }
}

function Outer() {
  Middle();
  ++sink;
}

Outer();
// What node writes of the code it makes is buffered: more code pushes it out.
for (let i = 0; i < 200; ++i) new Function(`return ${i}`)();
for (;;) Outer();
