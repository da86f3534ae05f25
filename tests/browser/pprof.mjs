// Profiles made up for the browser tests, and a client that pushes them: as JSON, the way a person
// with curl would.

const varint = (value) => {
  const bytes = [];
  let rest = BigInt(value);
  while (rest >= 128n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return [...bytes, Number(rest)];
};
const number = (field, value) => [...varint(field << 3), ...varint(value)];
const bytes = (field, data) => [...varint((field << 3) | 2), ...varint(data.length), ...data];
const packed = (field, values) => bytes(field, values.flatMap(varint));

// `stacks`: {"main;work;leaf": value}, outermost first.
export function profileOf([type, unit], stacks, timeMs) {
  const strings = [''];
  const text = (s) => (strings.includes(s) ? strings.indexOf(s) : strings.push(s) - 1);
  const functions = [];
  const locationOf = (name) =>
    functions.includes(name) ? functions.indexOf(name) + 1 : functions.push(name);
  const samples = Object.entries(stacks).map(([stack, value]) =>
    bytes(2, [...packed(1, stack.split(';').reverse().map(locationOf)), ...packed(2, [value])]),
  );
  const valueType = [...number(1, text(type)), ...number(2, text(unit))];
  return Buffer.from([
    ...bytes(1, valueType),
    ...samples.flat(),
    ...functions.flatMap((_, i) => bytes(4, [...number(1, i + 1), ...bytes(4, number(1, i + 1))])),
    ...functions.flatMap((name, i) => bytes(5, [...number(1, i + 1), ...number(2, text(name))])),
    ...strings.flatMap((s) => bytes(6, [...Buffer.from(s)])),
    ...number(9, BigInt(timeMs) * 1000000n),
    ...number(10, 15_000_000_000),
    ...bytes(11, valueType),
    ...number(12, 10_000_000),
  ]);
}

export const cpuProfile = (stacks, timeMs) => profileOf(['cpu', 'nanoseconds'], stacks, timeMs);

export async function push(url, labels, profile, headers = {}) {
  const response = await fetch(`${url}/push.v1.PusherService/Push`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({
      series: [
        {
          labels: Object.entries(labels).map(([name, value]) => ({ name, value })),
          samples: [{ rawProfile: profile.toString('base64') }],
        },
      ],
    }),
  });
  if (!response.ok) throw new Error(`push: ${response.status} ${await response.text()}`);
}
