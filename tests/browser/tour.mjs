// A newcomer's way through the pages: logs in, creates a query by the form, triggers the pipeline, sees green, opens MLflow and the data docs.
// node tour.mjs '{"airflow": URL, "pages": URL, "password": TEXT, "shots": FOLDER, "chromium": PATH}'
import { chromium } from 'playwright-core';

const given = JSON.parse(process.argv[2]);
const OFF = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const PATIENCE = 180_000;      // milliseconds until a run is green: a task may start Python and Spark first
const SQL = `SELECT v.page, COUNT(*) AS n, MAX(b.amount) AS dearest
FROM views AS v [WINDOW 1 HOUR], purchases AS b [WINDOW 10 MINUTES] WHERE v.user = b.user GROUP BY v.page`;

const browser = await chromium.launch({ executablePath: given.chromium, args: OFF });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
page.setDefaultTimeout(60_000);
const shot = (name, more = {}) => page.screenshot({ path: `${given.shots}/${name}.png`, ...more });

async function login() {
  await page.goto(given.airflow);
  await page.fill('input[name=username]', 'admin');
  await page.fill('input[name=password]', given.password);
  await page.click('button[type=submit], button:has-text("Sign in")');
  await page.waitForSelector('text=Dags');
}

async function trigger(dag, fields, name) {
  await page.goto(`${given.airflow}/dags/${dag}`);
  await page.locator('button:has-text("Trigger")').first().click();
  const dialog = page.locator('[role=dialog]').last();
  await dialog.waitFor();
  for (const [field, value] of Object.entries(fields)) {
    const box = dialog.locator(`[name="element_${field}"]`);
    await (value === true ? box.evaluate((e) => e.click()) : box.fill(value));
  }
  if (name) await shot(name);
  await dialog.locator('button:has-text("Trigger")').last().click();
  await green(dag);
}

// A name that is none: the page says that it is refused (what is right stands under the field) and begins nothing.
async function refused(dag) {
  await page.goto(`${given.airflow}/dags/${dag}`);
  await page.locator('button:has-text("Trigger")').first().click();
  const dialog = page.locator('[role=dialog]').last();
  await dialog.waitFor();
  await dialog.locator('[name="element_query"]').fill('no name; drop');
  await dialog.locator('[name="element_query"]').blur();
  await dialog.locator('button:has-text("Trigger")').last().click().catch(() => {});
  await page.waitForTimeout(2000);
  const text = await page.locator('body').innerText();
  if (!/Failed to Trigger|Bad Request/i.test(text)) throw new Error(`a bad name is not refused: ${text.slice(0, 2000)}`);
}

async function green(dag) {
  const end = Date.now() + PATIENCE;
  while (Date.now() < end) {
    await page.goto(`${given.airflow}/dags/${dag}/runs`);
    await page.waitForTimeout(2500);
    const text = await page.locator('table').first().innerText().catch(() => '');
    if (/success/i.test(text) && !/running|queued/i.test(text)) return;
    if (/failed/i.test(text)) throw new Error(`a run of ${dag} failed`);
  }
  throw new Error(`no run of ${dag} is green`);
}

// Where the buttons of a task of the last run lead.
async function buttons(dag, task) {
  await page.goto(`${given.airflow}/dags/${dag}/runs`);
  const run = page.locator(`a[href*="/dags/${dag}/runs/"]`).first();
  await run.waitFor();
  const id = /runs\/([^/?]+)/.exec(await run.getAttribute('href'))[1];
  await page.goto(`${given.airflow}/dags/${dag}/runs/${id}/tasks/${task}/details`);
  const found = {};
  for (const name of ['Data docs', 'Costs in MLflow']) {
    const link = page.locator(`a:has-text("${name}")`).first();
    await link.waitFor();
    found[name] = await link.getAttribute('href');
  }
  return found;
}

await login();
await page.goto(`${given.airflow}/dags`);
await page.waitForSelector('text=forebay__shop__queries');
await shot('airflow-dags');
await refused('forebay__shop__queries');
await trigger('forebay__shop__queries', { query: 'dearest_by_page', sql: SQL }, 'airflow-form');
await trigger('forebay__shop', { flush: true });
await page.goto(`${given.airflow}/dags/forebay__shop`);
await page.waitForTimeout(4000);
await shot('airflow-run', { clip: { x: 0, y: 0, width: 1400, height: 696 } });      // below are asset events, with this machine's paths
await green('forebay__shop__adapt');
const links = await buttons('forebay__shop', 'expectations');
await shot('airflow-task');

await page.goto(links['Costs in MLflow']);
await page.waitForSelector('text=prices/dearest_by_page');      // mlflow.mjs has pictures of MLflow
await page.waitForSelector('text=dearest_by_page');
await page.goto(`${given.pages}/shop/mlflow/dearest_by_page`);      // one query's run
await page.waitForSelector('text=predicted_cheapest');

await page.goto(given.pages);
await page.waitForSelector('a:has-text("data docs")');
await shot('pages', { clip: { x: 0, y: 0, width: 1400, height: 300 } });

const asked = [];
page.on('request', (r) => asked.push(r.url()));
await page.goto(links['Data docs']);
await page.waitForTimeout(1500);
await shot('data-docs');
await page.locator('a:has-text("stream_views")').first().click();
await page.waitForSelector('h1:has-text("stream_views")');
const away = asked.filter((url) => !url.startsWith(given.pages) && !url.startsWith('data:'));
if (away.length) throw new Error(`the data docs ask for ${away.join(', ')}`);
await shot('data-docs-suite');
await browser.close();
