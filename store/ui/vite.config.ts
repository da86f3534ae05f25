import { cpSync } from 'node:fs';
import { defineConfig } from 'vite';

// speedscope is a whole static application of its own: it is served beside ours, as it is.
const speedscope = {
  name: 'copy-speedscope',
  closeBundle() {
    cpSync('node_modules/speedscope/dist/release', 'dist/speedscope', {
      recursive: true,
      filter: (path) => !/perf-vertx.*\.txt$/.test(path), // its demo
    });
  },
};

// `npm run dev` serves the UI with reload; the data comes from a store on its default port.
const store = 'http://127.0.0.1:4040';

export default defineConfig({
  plugins: [speedscope],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: { target: 'es2020', assetsInlineLimit: 0 },
  server: {
    proxy: Object.fromEntries(
      ['/pprof', '/flamegraph', '/timeline', '/types', '/series', '/labels', '/fleet'].map((path) => [path, store]),
    ),
  },
});
