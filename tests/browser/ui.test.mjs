// The web UI of a real store in a real browser.
//   FF_STORE_BINARY=build/release/bin/flamefleet-store node --test tests/browser/ui.test.mjs
// Screenshots are left in FF_SCREENSHOTS, if set.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, beforeEach, test } from 'node:test';
import { cpuProfile, push } from './pprof.mjs';

// The packages are installed in the build tree, beside which this file does not lie.
const require = createRequire(join(process.env.FF_NODE_MODULES ?? import.meta.dirname ?? '.', 'x.js'));
const puppeteer = require('puppeteer-core');
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const kPatience = 60_000; // for a machine that does much else
const kHostile = '<img src=x onerror=alert(1)>';
const now = Date.now();
const minute = 60_000;

let store, url, data, browser, page;
let complaints = [];

before(async () => {
  data = mkdtempSync(join(tmpdir(), 'flamefleet-ui-'));
  store = spawn(process.env.FF_STORE_BINARY, ['--listen', '127.0.0.1:0', '--data', data]);
  for await (const line of createInterface({ input: store.stderr })) {
    const { port } = JSON.parse(line);
    if (!port) continue;
    url = `http://127.0.0.1:${port}`;
    break;
  }
  store.stderr.resume();
  const shop = { __name__: 'process_cpu', service_name: 'shop', namespace: 'web' };
  const early = { 'main.main;main.work;main.leafA': 7e9, 'main.main;main.work;main.leafB': 3e9 };
  const late = { 'main.main;main.work;main.leafA': 3e9, 'main.main;main.work;main.leafB': 7e9 };
  await push(url, { ...shop, pod: 'shop-1' }, cpuProfile(early, now - 50 * minute));
  await push(url, { ...shop, pod: 'shop-2' }, cpuProfile(late, now - 10 * minute));
  await push(
    url,
    { __name__: 'process_cpu', service_name: 'cart' },
    cpuProfile({ [`main;${kHostile}`]: 1e9 }, now - 10 * minute),
  );
  browser = await puppeteer.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    protocolTimeout: 5 * kPatience,
    timeout: kPatience,
  });
});

after(async () => {
  await browser?.close();
  store?.kill('SIGTERM');
  rmSync(data, { recursive: true, force: true });
});

beforeEach(async () => {
  await page?.close();
  page = await browser.newPage();
  page.setDefaultTimeout(kPatience);
  await page.setViewport({ width: 1400, height: 900 });
  complaints = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // The browser itself reports each answer 404: "nothing matches".
    if (message.type() === 'error' && !/status of 404/.test(message.text())) complaints.push(message.text());
  });
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
});

const open = (query) => page.goto(`${url}/?${new URLSearchParams(query)}`);
const single = { view: 'single', service: 'shop' };
const text = (selector) => page.$eval(selector, (element) => element.innerText);
const rows = () => page.$$eval('.functions tbody tr', (all) => all.map((row) => row.innerText.split(/\s+/)));
const names = async () => (await rows()).map(([name]) => name);
const frames = () => page.$$eval('.d3-flame-graph g.frame', (all) => all.map((g) => g.getAttribute('name')));
const until = (condition, ...args) => page.waitForFunction(condition, { polling: 100 }, ...args);
const graphShown = () => page.waitForSelector('.d3-flame-graph g.frame');

async function finish(name) {
  if (process.env.FF_SCREENSHOTS) {
    mkdirSync(process.env.FF_SCREENSHOTS, { recursive: true });
    await page.screenshot({ path: join(process.env.FF_SCREENSHOTS, `${name}.png`) });
  }
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => axe.run());
  const serious = violations.filter((v) => ['serious', 'critical'].includes(v.impact));
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes[0].html}`), []);
  assert.deepEqual(complaints, []);
}

test('the overview lists the largest service first and leads to its flame graph', async () => {
  await open({});
  await page.waitForSelector('.overview tbody tr');
  const services = await page.$$eval('.overview tbody a', (all) => all.map((a) => a.innerText));
  assert.deepEqual(services, ['shop', 'cart']);
  await finish('overview');
  await Promise.all([page.waitForNavigation(), page.click('.overview tbody a')]);
  await graphShown();
  assert.equal(await text('h1'), 'Flame graph');
});

test('table and graph have the numbers of the profiles', async () => {
  await open(single);
  await graphShown();
  assert.deepEqual(await rows(), [
    ['main.leafA', '10.00', 's', '50.00', '%', '10.00', 's', '50.00', '%'],
    ['main.leafB', '10.00', 's', '50.00', '%', '10.00', 's', '50.00', '%'],
    ['main.main', '0', 'ns', '0.00', '%', '20.00', 's', '100.00', '%'],
    ['main.work', '0', 'ns', '0.00', '%', '20.00', 's', '100.00', '%'],
  ]);
  assert.deepEqual((await frames()).sort(), ['main.leafA', 'main.leafB', 'main.main', 'main.work', 'total']);
  await finish('single');
});

test('a column sorts the table', async () => {
  await open(single);
  await graphShown();
  await page.click('.functions th:nth-child(3) button');
  await until(() => document.querySelector('.functions tbody td').innerText === 'main.main');
  assert.match(page.url(), /sort=total/);
});

test('search by keyboard marks matches in the table and in the graph', async () => {
  await open(single);
  await graphShown();
  await page.keyboard.press('/');
  await page.keyboard.type('LEAFa');
  await until(() => document.querySelectorAll('.functions tbody tr').length === 1);
  assert.deepEqual(await names(), ['main.leafA']);
  await until(() => /1 frames match, 50.00 %/.test(document.querySelector('.found')?.innerText ?? ''));
  const marked = await page.$$eval('.d3-flame-graph g.frame', (all) =>
    all.filter((g) => g.querySelector('rect').getAttribute('fill') === '#e600e6').map((g) => g.getAttribute('name')),
  );
  assert.deepEqual(marked, ['main.leafA']);
});

test('a click zooms, Escape goes back', async () => {
  await open(single);
  await graphShown();
  const widthOf = (name) =>
    page.$eval(`.d3-flame-graph g[name="${name}"]`, (g) => Number(g.getAttribute('width')));
  const before = await widthOf('main.leafA');
  await page.$eval('.d3-flame-graph g[name="main.leafA"]', (g) =>
    g.dispatchEvent(new MouseEvent('click', { bubbles: true })),
  );
  await until(
    (old) => Number(document.querySelector('.d3-flame-graph g[name="main.leafA"]').getAttribute('width')) > old,
    before * 1.5,
  );
  assert.match(await text('.chosen'), /main\.leafA[\s\S]*10\.00 s \(50\.00 %\)/);
  await page.keyboard.press('Escape');
  await until(
    (old) =>
      Math.abs(Number(document.querySelector('.d3-flame-graph g[name="main.leafA"]').getAttribute('width')) - old) < 2,
    before,
  );
});

test('a link shows another person the same', async () => {
  await open({ ...single, search: 'leafB', root: 'bottom', palette: 'colour-blind', filter: 'pod="shop-2"' });
  await graphShown();
  assert.deepEqual(await rows(), [['main.leafB', '7.00', 's', '70.00', '%', '7.00', 's', '70.00', '%']]);
  assert.equal(await page.$eval('input[type=search]', (input) => input.value), 'leafB');
  await finish('link');
});

test('the comparison shows both halves of the range', async () => {
  await open({ ...single, view: 'compare' });
  await until(() => document.querySelectorAll('.halves .d3-flame-graph').length === 2);
  assert.deepEqual(
    await page.$$eval('.halves h2', (all) => all.map((h) => h.innerText)),
    ['Baseline 10.00 s', 'Comparison 10.00 s'],
  );
  await finish('compare');
});

test('the diff colours what grew red and what shrank green', async () => {
  await open({ ...single, view: 'diff' });
  await graphShown();
  const hue = async (name) =>
    Number(/hsl\((\d+)/.exec(await page.$eval(`.d3-flame-graph g[name="${name}"] rect`, (r) => r.getAttribute('fill')))[1]);
  assert.equal(await hue('main.leafB'), 4);
  assert.equal(await hue('main.leafA'), 130);
  const table = Object.fromEntries((await rows()).map((row) => [row[0], row.at(-2)]));
  assert.equal(table['main.leafB'], '+40.00');
  assert.equal(table['main.leafA'], '-40.00');
  await finish('diff');
});

test('nothing to see says why', async () => {
  await open({ ...single, service: 'nobody' });
  await page.waitForSelector('.no-data');
  await until(() => /none with this type and these labels/.test(document.querySelector('.no-data').innerText));
  await open({ ...single, from: 'now-1m' });
  await until(() => /Nothing at all was stored/.test(document.querySelector('.no-data')?.innerText ?? ''));
  await open({ ...single, filter: 'pod=' });
  await until(() => /cannot answer[\s\S]*query, character/.test(document.querySelector('.no-data')?.innerText ?? ''));
  complaints = complaints.filter((line) => !/status of 400/.test(line));
  await finish('empty');
});

test('a function named as markup is text', async () => {
  await open({ view: 'single', service: 'cart' });
  await graphShown();
  assert.ok((await frames()).includes(kHostile));
  assert.equal(await page.$$eval('#app img[src="x"]', (all) => all.length), 0);
  await finish('hostile');
});

test('the dark theme is remembered', async () => {
  await open(single);
  await graphShown();
  await page.select('header select', 'dark');
  await page.reload();
  await graphShown();
  assert.equal(await page.$eval('html', (html) => html.dataset.theme), 'dark');
  assert.equal(await page.$eval('body', (body) => getComputedStyle(body).backgroundColor), 'rgb(20, 24, 31)');
  await finish('dark');
});

test('the theme of the system is followed, as it changes', async () => {
  await open(single);
  await page.select('header select', 'system');
  for (const theme of ['dark', 'light']) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }]);
    await until((expected) => document.documentElement.dataset.theme === expected, theme);
  }
  await finish('theme');
});

test('speedscope opens the profile that is shown', async () => {
  await open(single);
  await graphShown();
  const link = await page.$eval('a[href^="/speedscope/"]', (a) => a.href);
  await page.goto(link);
  await until(() => /profile\.pb\.gz|cpu|pprof/i.test(document.title) && document.querySelector('canvas') !== null);
  assert.deepEqual(complaints, []);
});
