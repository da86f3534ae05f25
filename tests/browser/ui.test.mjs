// The web UI of a real store in a real browser.
//   FF_STORE_BINARY=build/release/bin/flamefleet-store node --test tests/browser/ui.test.mjs
// Screenshots are left in FF_SCREENSHOTS, if set.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, beforeEach, test } from 'node:test';
import { cpuProfile, profileOf, push } from './pprof.mjs';

// The packages are installed in the build tree, beside which this file does not lie.
const require = createRequire(join(process.env.FF_NODE_MODULES ?? import.meta.dirname ?? '.', 'x.js'));
const puppeteer = require('puppeteer-core');
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const kPatience = 60_000; // for a machine that does much else
const kHostile = '<img src=x onerror=alert(1)>';
const now = Date.now();
const minute = 60_000;

let url, data, browser, page;
const stores = [];
let complaints = [];

// The URL of a store that is ready.
async function startStore(...flags) {
  const store = spawn(process.env.FF_STORE_BINARY, ['--listen', '127.0.0.1:0', ...flags]);
  stores.push(store);
  let port;
  for await (const line of createInterface({ input: store.stderr })) {
    port = JSON.parse(line).port;
    if (port) break;
  }
  store.stderr.resume();
  return `http://127.0.0.1:${port}`;
}

before(async () => {
  data = mkdtempSync(join(tmpdir(), 'flamefleet-ui-'));
  url = await startStore('--data', data);
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
  // 100,489 frames.
  const numbers = Array.from({ length: 317 }, (_, i) => i);
  const huge = Object.fromEntries(numbers.flatMap((i) => numbers.map((j) => [`main;f${i};g${j}`, 1e6 * (1 + ((i * j) % 7))])));
  await push(url, { __name__: 'huge', service_name: 'shop' }, cpuProfile(huge, now - 10 * minute));
  // What there is, not what was spent: four times the same, a minute apart.
  for (const ago of [13, 12, 11, 10])
    await push(
      url,
      { __name__: 'memory', service_name: 'shop' },
      profileOf(['inuse_space', 'bytes'], { 'main;cache': 3 << 20, 'main;index': 1 << 20 }, now - ago * minute),
    );
  await push(
    url,
    { __name__: 'marked', service_name: kHostile, pod: `"${kHostile}` },
    cpuProfile({ main: 1e9 }, now - 10 * minute),
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
  for (const store of stores) store.kill('SIGTERM');
  rmSync(data, { recursive: true, force: true });
});

beforeEach(async () => {
  await page?.close();
  page = await browser.newPage();
  page.setDefaultTimeout(kPatience);
  await page.setViewport({ width: 1400, height: 900 });
  complaints = [];
  await page.evaluateOnNewDocument(() => {
    navigator.clipboard.writeText = async (text) => (window.copied = text);
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // The browser itself reports each answer 404, "nothing matches", and 401, "whose profiles?".
    if (message.type() === 'error' && !/status of 40[14]/.test(message.text())) complaints.push(message.text());
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
const frame = (name) => `.d3-flame-graph g[name="${name}"]`;
const widthOf = (name) => page.$eval(frame(name), (g) => Number(g.getAttribute('width')));
const fillOf = (name) => page.$eval(`${frame(name)} rect`, (rect) => rect.getAttribute('fill'));
const heightOf = (name) => page.$eval(frame(name), (g) => g.getBoundingClientRect().top);
const clickFrame = (name) =>
  page.$eval(frame(name), (g) => g.dispatchEvent(new MouseEvent('click', { bubbles: true })));
const isAbout = (name, width) =>
  until(
    (selector, wanted) => Math.abs(Number(document.querySelector(selector)?.getAttribute('width')) - wanted) < 2,
    frame(name),
    width,
  );
const click = (text) => page.click(`::-p-xpath(//button[normalize-space()="${text}"])`);
async function copied(button) {
  await page.evaluate(() => delete window.copied);
  await click(button);
  await until(() => window.copied !== undefined);
  return page.evaluate(() => window.copied);
}
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
  assert.equal(await fillOf('main.leafA'), await fillOf('main.leafB')); // of one package
  assert.ok((await heightOf('main.leafA')) > (await heightOf('main.main')));
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
  assert.equal(await text('.functions mark'), 'leafA');
  await until(() => /1 frame matches, 50.00 %/.test(document.querySelector('.found')?.innerText ?? ''));
  const marked = await page.$$eval('.d3-flame-graph g.frame', (all) =>
    all.filter((g) => g.querySelector('rect').getAttribute('fill') === '#e600e6').map((g) => g.getAttribute('name')),
  );
  assert.deepEqual(marked, ['main.leafA']);
});

test('a click zooms, and a link to that shows another person the same; Escape goes back', async () => {
  await open(single);
  await graphShown();
  const [before, whole] = [await widthOf('main.leafA'), await widthOf('total')];
  await clickFrame('main.leafA');
  await isAbout('main.leafA', whole);
  assert.match(await text('.chosen'), /main\.leafA[\s\S]*10\.00 s \(50\.00 %\)/);
  await page.reload();
  await graphShown();
  await isAbout('main.leafA', whole);
  await page.keyboard.press('Escape');
  await isAbout('main.leafA', before);
  assert.doesNotMatch(page.url(), /zoom/);
  await page.goBack();
  await isAbout('main.leafA', whole);
  await finish('zoom');
});

test('arrow keys walk through the graph, Enter zooms', async () => {
  await open(single);
  await graphShown();
  const whole = await widthOf('total');
  await page.focus('.chart');
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowRight']) await page.keyboard.press(key);
  assert.match(await text('.chosen'), /main\.leafB/);
  assert.equal(await page.$eval('g[data-cursor]', (g) => g.getAttribute('name')), 'main.leafB');
  await finish('keyboard');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowLeft'); // it has no neighbour
  assert.match(await text('.chosen'), /main\.work/);
  for (const key of ['ArrowDown', 'Enter']) await page.keyboard.press(key);
  await isAbout('main.leafA', whole);
});

test('the tooltip has the name and the share of a frame', async () => {
  await open(single);
  await graphShown();
  await page.hover(`${frame('main.leafA')} rect`);
  await page.waitForSelector('.tooltip');
  assert.match(await text('.tooltip'), /main\.leafA[\s\S]*10\.00 s \(50\.00 %\), self 10\.00 s/);
  await finish('tooltip');
});

test('a link shows another person the same', async () => {
  const query = { ...single, search: 'leafB', root: 'bottom', palette: 'colour-blind', filter: 'pod="shop-2"' };
  await open(query);
  await graphShown();
  const link = await copied('Copy link');
  await page.goto(link);
  await graphShown();
  assert.deepEqual(await rows(), [['main.leafB', '7.00', 's', '70.00', '%', '7.00', 's', '70.00', '%']]);
  assert.equal(await page.$eval('input[type=search]', (input) => input.value), 'leafB');
  assert.ok((await heightOf('main.leafA')) < (await heightOf('main.main')));
  const { from, until: end, ...state } = Object.fromEntries(new URL(link).searchParams);
  assert.deepEqual(state, query);
  assert.match(from, /^\d{13}$/); // what is meant now, not the last hour of whoever opens it
  assert.equal(Number(end) - Number(from), 60 * minute);
  await finish('link');
});

test('dragging over the chart narrows the range, Zoom out widens it', async () => {
  await open(single);
  await graphShown();
  const over = await (await page.waitForSelector('.time-chart .u-over')).boundingBox();
  await page.mouse.move(over.x + over.width * 0.6, over.y + 20);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * 0.9, over.y + 20, { steps: 4 });
  await page.mouse.up();
  await until(() => /^10.00 s/.test(document.querySelector('.actions strong')?.innerText ?? ''));
  assert.deepEqual((await rows()).map((row) => row.slice(0, 2)).slice(0, 2), [['main.leafB', '7.00'], ['main.leafA', '3.00']]);
  await finish('range');
  for (let i = 0; i < 2; i++) await click('Zoom out');
  await until(() => /^20.00 s/.test(document.querySelector('.actions strong')?.innerText ?? ''));
});

test('what cannot be copied is shown', async () => {
  // As where the page came over plain HTTP from another machine.
  await page.evaluateOnNewDocument(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  page.removeAllListeners('dialog');
  await open(single);
  await graphShown();
  const dialog = new Promise((resolve) => page.once('dialog', resolve));
  const clicked = click('Copy link');
  const shown = await dialog;
  assert.match(shown.defaultValue(), /view=single&service=shop/);
  await shown.dismiss();
  await clicked;
  assert.deepEqual(complaints, []);
});

test('the copied command fetches the profile that is shown', async () => {
  await open(single);
  await graphShown();
  const command = await copied('Copy go tool pprof command');
  const { 1: profile } = /^go tool pprof -http=: '(.*)'$/.exec(command);
  const top = spawnSync('go', ['tool', 'pprof', '-top', profile], { encoding: 'utf8' });
  assert.match(top.stdout, /10s 50.00% 50.00% +10s 50.00% +main.leafA/, top.stderr);
});

test('a graph of 100,000 frames says what it leaves out, and shows it on demand', async () => {
  await open({ ...single, type: 'huge:cpu' });
  await graphShown();
  assert.match(await text('.line'), /84,4\d\d small frames are left out/);
  await click('Load them');
  await until(() => !/left out/.test(document.querySelector('.line').innerText));
  await graphShown();
  await page.type('input[type=search]', 'g31');
  await until(() => /2,536 frames match/.test(document.querySelector('.found')?.innerText ?? ''));
  await clickFrame('f30');
  await isAbout('f30', await widthOf('total'));
  await page.waitForSelector(frame('g31'));
  await finish('huge');
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

test('the halves of a range are found however its times are written', async () => {
  const seconds = (ago) => String(Math.round((now - ago) / 1000));
  for (const [from, end] of [[seconds(60 * minute), seconds(0)], ['now-0h60m', 'now']]) {
    await open({ ...single, view: 'compare', from, until: end });
    await until(() => document.querySelectorAll('.halves .d3-flame-graph').length === 2);
  }
  await open({ ...single, view: 'compare', from: 'yesterday', until: 'now' });
  await until(() => /time 'yesterday'/.test(document.querySelector('.halves .no-data')?.innerText ?? ''));
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
  assert.deepEqual(
    await page.$$eval('.changes button', (all) => all.map((button) => button.innerText)),
    ['+40.00 pp main.leafB', '-40.00 pp main.leafA'],
  );
  const command = await copied('Copy go tool pprof command');
  const [base, main] = [...command.matchAll(/'([^']*)'/g)].map(([, profile]) => profile);
  const top = spawnSync('go', ['tool', 'pprof', '-top', '-diff_base', base, main], { encoding: 'utf8' });
  assert.match(top.stdout, /-4s .*main.leafA/, top.stderr);
  await finish('diff');
  await open({ ...single, view: 'diff', palette: 'colour-blind' });
  await graphShown();
  assert.deepEqual([await hue('main.leafB'), await hue('main.leafA')], [30, 215]);
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

test('the fleet says why a pod has no profile, as the operator said it', async () => {
  await open({ view: 'fleet' });
  await until(() => /No operator has told about a fleet/.test(document.querySelector('.no-data')?.innerText ?? ''));
  await finish('fleet-untold');
  const body = readFileSync(new URL('../data/fleet_report.json', import.meta.url));
  assert.equal((await fetch(`${url}/fleet`, { method: 'POST', body })).status, 204);
  await click('Refresh');
  await until(() => document.querySelectorAll('.fleet section').length === 6);
  const sections = Object.fromEntries(
    await page.$$eval('.fleet section', (all) =>
      all.map((section) => [
        section.getAttribute('aria-label'),
        [...section.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText)),
      ]),
    ),
  );
  const failing = sections['Pods without a profile'];
  assert.deepEqual(failing.map((row) => row[0]), ['shop/checkout-7d9f-x2', 'ml/train-0', 'ml/train-1']);
  assert.match(failing[0][3], /^NotFound GET .*: 404: <img src=x onerror=alert\(1\)>$/);
  assert.equal(failing[1].at(-1), 'annotations, pool gpu');
  assert.deepEqual(sections['Nodes with a problem'][0].slice(0, 1), ['gpu-1']);
  assert.match(sections['Pools'][0][1], /^NodesDegraded 1 of 2 nodes has a problem/);
  assert.deepEqual(sections['Pools'][1].slice(0, 6), ['default', 'Ready', '12', '12', '12', '0']);
  assert.deepEqual(sections['Targets'].map((row) => row.slice(0, 1)[0]), ['shop/checkout', 'shop/cart']);
  assert.deepEqual(sections['Backends'][0].slice(3, 7), ['13', '0', '4', '80.00 KiB']);
  assert.match(sections['Pods with a warning'][0][3], /cpu-path is no annotation/);
  await finish('fleet');
  await page.type('input[type=search]', 'gpu-0');
  await until(() => document.querySelectorAll('.fleet section:first-of-type tbody tr').length === 1);
  assert.match(page.url(), /search=gpu-0/);
});

test('a store with tenants asks whose profiles are meant, and shows no others', async () => {
  const shared = await startStore('--data', join(data, 'shared'), '--tenants', '2');
  for (const tenant of ['team-a', 'team-b']) {
    const labels = { __name__: 'process_cpu', service_name: `shop-of-${tenant}` };
    await push(shared, labels, cpuProfile({ main: 1e9 }, now), { 'X-Scope-OrgID': tenant });
  }
  await page.goto(shared);
  await page.waitForSelector('form.no-data');
  await finish('tenant');
  await page.type('form.no-data input', 'team-a');
  await Promise.all([page.waitForNavigation(), click('Show')]);
  await page.waitForSelector('.overview tbody tr');
  assert.deepEqual(await page.$$eval('.overview tbody a', (all) => all.map((a) => a.innerText)), ['shop-of-team-a']);
  await page.click('.overview tbody a');
  await graphShown();
  assert.match(await page.$eval('a[download]', (a) => a.href), /tenant=team-a/);
  await finish('tenant-single');
});

test('a function named as markup is text', async () => {
  await open({ view: 'single', service: 'cart' });
  await graphShown();
  assert.ok((await frames()).includes(kHostile));
  assert.equal(await page.$$eval('#app img[src="x"]', (all) => all.length), 0);
  await finish('hostile');
});

test('labels that are markup are text', async () => {
  await open({ type: 'marked:cpu' });
  await page.waitForSelector('.overview tbody tr');
  assert.equal(await text('.overview tbody a'), kHostile);
  await Promise.all([page.waitForNavigation(), page.click('.overview tbody a')]);
  await graphShown();
  assert.equal(await page.$$eval('#app img[src="x"]', (all) => all.length), 0);
  await finish('hostile-labels');
});

test('memory in use is a mean, in the list, the chart and the graph', async () => {
  await open({ type: 'memory:inuse_space' });
  await page.waitForSelector('.overview tbody tr');
  const cells = await page.$$eval('.overview tbody td', (all) => all.map((cell) => cell.innerText));
  assert.deepEqual(cells.filter((cell) => cell), ['shop', '4.00 MiB', '100.00 %']);
  await finish('overview-level');
  await open({ ...single, type: 'memory:inuse_space' });
  await graphShown();
  assert.equal(await text('.actions strong'), '4.00 MiB');
  assert.deepEqual((await rows())[0].slice(0, 3), ['cache', '3.00', 'MiB']);
  await finish('single-level');
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
