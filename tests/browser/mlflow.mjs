// MLflow as a newcomer finds it after the demo: an experiment's charts, its list of runs, a query's run, a plan's run, two plans compared.
// No setting is touched on the way. node mlflow.mjs '{"mlflow": URL, "page": URL, "experiment": NUMBER, "shots": FOLDER, "chromium": PATH}'
import { chromium } from 'playwright-core';

const given = JSON.parse(process.argv[2]);
const OFF = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const QUERY = 'sections';      // the one whose plan the demo's sale changes

const browser = await chromium.launch({ executablePath: given.chromium, args: OFF });

// Each page in a profile of its own: nothing is remembered from the one before.
async function shot(name, address, words, { height = 900, ready = async () => {} } = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height } });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(address);
  for (const word of words) await page.getByText(word, { exact: false }).first().waitFor({ state: 'attached' });
  await page.locator('button[aria-label="Close"], button:has([data-icon="close"])').last().click({ timeout: 2000 }).catch(() => {});
  await ready(page);
  await page.waitForTimeout(4000);
  if (name) await page.screenshot({ path: `${given.shots}/${name}.png` });
  await context.close();
}

// A picture of the run's own, which the page asks the server for.
async function pictured(page) {
  const image = page.locator('img[src*="get-artifact"]').first();
  await image.waitFor();
  await page.waitForFunction((e) => e.complete && e.naturalWidth > 400, await image.elementHandle());
}

// All of the description, of which a page shows three lines.
async function unfolded(page) {
  await page.getByText('Show more').first().click();
}

// Where artifacts lie is a matter of the machine.
async function placeless(page) {
  await page.getByText(/^Path:/).first().evaluate((e) => { e.style.visibility = 'hidden'; });
}

async function runs(filter) {
  const answer = await fetch(`${given.mlflow}/api/2.0/mlflow/runs/search`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ experiment_ids: [given.experiment], filter: `tags.\`forebay.query\` = '${QUERY}' and ${filter}`, order_by: ['attributes.start_time ASC'] }),
  });
  return (await answer.json()).runs.map((run) => run.info.run_id);
}

const experiment = `${given.mlflow}/#/experiments/${given.experiment}`;
const [query] = await runs("tags.`forebay.kind` = 'query'");
const plans = await runs("tags.`forebay.kind` = 'plan'");
if (plans.length < 2) throw new Error(`the demo's sale changed no plan of ${QUERY}`);
const two = encodeURIComponent(JSON.stringify(plans.slice(0, 2)));

await shot('mlflow-charts', given.page, ['prices/sections', QUERY], { height: 960 });
await shot('', `${experiment}/runs?workflowType=machine_learning&compareRunsMode=CHART`, ['measured', 'predicted', QUERY]);
await shot('mlflow-runs', given.page.replace('compareRunsMode=CHART', 'compareRunsMode=TABLE'), [QUERY]);
await shot('mlflow-run', `${experiment}/runs/${query}?workflowType=machine_learning`, ['answers', 'Why: ', 'seconds/measured'], { ready: pictured });
await shot('', `${experiment}/runs/${query}/model-metrics?workflowType=machine_learning`, ['predicted_cheapest']);
await shot('mlflow-plan', `${experiment}/runs/${plans[1]}?workflowType=machine_learning`, ['Candidates when it was decided', 'chosen'], { height: 1300, ready: unfolded });
await shot('mlflow-candidates', `${experiment}/runs/${plans[1]}/artifacts/candidates.json?workflowType=machine_learning`, ['candidates.json', 'predicted_s'], { ready: placeless });
await shot('mlflow-compare', `${given.mlflow}/#/compare-runs?runs=${two}&experiments=${encodeURIComponent(JSON.stringify([given.experiment]))}&workflowType=machine_learning`, ['seconds/measured', 'seconds/predicted'], { height: 1300 });
await browser.close();
