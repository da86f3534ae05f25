// Turns the built UI into two sources of the store: assets.S holds the files, compressed, and
// assets.inc the table of their names.
//   node embed.mjs DIST_DIR OUT_DIR
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const types = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.md': 'text/plain; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.woff2': 'font/woff2',
};

const [dist, out] = process.argv.slice(2);
const files = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  .sort();

mkdirSync(out, { recursive: true });
let assembly = '// Made by store/ui/embed.mjs.\n.section .rodata\n';
let table = '// Made by store/ui/embed.mjs.\n';
let symbols = '';
files.forEach((file, i) => {
  const type = types[extname(file)];
  if (!type) throw new Error(`${file}: no content type is known for it`);
  const bytes = gzipSync(readFileSync(file), { level: 9 });
  const etag = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  const blob = join(out, `asset_${i}.gz`);
  writeFileSync(blob, bytes);
  assembly += `.globl flamefleet_ui_asset_${i}\nflamefleet_ui_asset_${i}:\n.incbin "${blob}"\n`;
  symbols += `extern "C" const char flamefleet_ui_asset_${i}[];\n`;
  table += `    {${JSON.stringify('/' + file.slice(dist.length + 1))}, ${JSON.stringify(type)}, "\\"${etag}\\"", {flamefleet_ui_asset_${i}, ${bytes.length}}},\n`;
});
assembly += '.section .note.GNU-stack,"",%progbits\n';
writeFileSync(join(out, 'assets.S'), assembly);
writeFileSync(join(out, 'assets.inc'), table);
writeFileSync(join(out, 'assets_symbols.inc'), symbols);
