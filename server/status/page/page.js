// Polls /status.json and shows it. One request at a time, each answered at once; none while nobody looks.
import {LossChart} from '/page/chart.js';
import * as format from '/page/format.js';
import {WorkerTable} from '/page/workers.js';

const INTERVAL = 2000, GIVE_UP = 5000;
const MOST_PROBLEMS = 6;
const MOODS = {training: 'good', done: 'good', waiting: 'warning', paused: 'warning', draining: 'warning', empty: 'warning'};

const at = (id) => document.getElementById(id);
const chart = new LossChart(at('chart'), at('chart-readout'));
const table = new WorkerTable(at('workers'), at('find'), at('only-problems'), at('no-workers'));
let heardAt = null;

function set(id, text) {
  const node = at(id);
  if (node.textContent !== text) node.textContent = text;
}

function showHead(report) {
  const {run, round} = report;
  set('run', run.id || 'distro-aggregator');
  set('state', run.state);
  at('state').className = `pill ${MOODS[run.state] ?? ''}`;
  at('insecure').hidden = !run.insecure;
  const method = run.method ? `${run.method} · ` : '';
  set('about', `${method}epoch ${run.epoch} · log ${run.log_hash} · version ${run.version}`);
  set('reason', run.reason);
  at('progress').style.width = round.of ? `${100 * round.number / round.of}%` : '0';
  document.title = `${run.state} ${round.of ? `${round.number}/${round.of} ` : ''}· ${run.id || 'distro-aggregator'}`;
}

function showTiles(report) {
  const {round, states, totals, loss, run} = report;
  set('round', format.count(round.number));
  const open = round.open_seconds == null ? '' : `, open for ${format.seconds(round.open_seconds)}`;
  set('round-note', `of ${format.count(round.of)}${open}`);
  set('pace', format.number(round.per_minute));
  const limit = round.deadline_seconds == null ? 'no deadline' : `deadline ${format.seconds(round.deadline_seconds)}`;
  set('pace-note', `${format.seconds(round.typical_seconds)} each, ${limit}`);
  set('loss', format.loss(totals.loss));
  set('held-out', format.loss(loss.held_out_last));
  const rates = report.workers.map((worker) => worker.tokens_per_second).filter((rate) => rate != null);
  set('tokens', rates.length ? format.short(rates.reduce((sum, rate) => sum + rate, 0)) : '–');
  set('tokens-note', `${format.short(totals.tokens)} in rounds so far`);
  set('active', format.count(states.active));
  const inSession = Object.entries(states).filter(([state]) => state !== 'left' && state !== 'quarantined');
  set('active-note', `of ${inSession.reduce((sum, [, n]) => sum + n, 0)} here; a round needs ${run.min_workers}`);
}

function problem(mood, name, what, runbook) {
  const item = document.createElement('li');
  item.className = mood;
  item.appendChild(document.createElement('b')).textContent = name;
  item.appendChild(document.createElement('span')).textContent = what;
  if (runbook) {
    const link = item.appendChild(document.createElement('a'));
    link.href = `/runbooks/${encodeURIComponent(runbook)}`;
    link.textContent = `runbook: ${runbook}`;
  }
  return item;
}

function showProblems(report) {
  const items = report.warnings.map((w) => problem(w.critical ? 'bad' : 'warning', w.name, w.what, w.name));
  const workers = report.workers.filter((worker) => worker.problem);
  const shown = workers.slice(0, MOST_PROBLEMS);
  items.push(...shown.map((w) => problem(w.severity, w.name, w.problem, w.runbook)));
  if (workers.length > shown.length)
    items.push(problem('', '', `and ${workers.length - shown.length} more workers, first in the table below`));
  at('attention').classList.toggle('calm', items.length === 0);
  if (items.length === 0) items.push(problem('', 'Nothing needs attention.', ''));
  const list = at('problems');
  const next = document.createElement('ul');
  next.append(...items);
  if (list.innerHTML !== next.innerHTML) list.replaceChildren(...items);
}

function showBytes(report) {
  const {bytes, run} = report;
  const per = (value, parameters) => value == null || !parameters ? '–' : `${format.number(1000 * value / parameters)} B`;
  for (const way of ['up', 'down']) {
    set(`${way}-bytes`, format.bytes(bytes[way]));
    set(`${way}-gradient`, format.bytes(bytes.gradient));
    set(`${way}-factor`, format.factor(bytes[way], bytes.gradient));
    set(`${way}-report`, format.bytes(bytes[`report_${way}`]));
    set(`${way}-per`, per(bytes[way], run.parameters));
    set(`${way}-report-per`, per(bytes[`report_${way}`], bytes.report_parameters));
  }
}

function showAggregator(report) {
  const {readiness, totals, bytes, round, workers} = report;
  const fromMirrors = format.fromMirrors(workers);
  at('checks').replaceChildren(...readiness.checks.map((check) => {
    const item = document.createElement('li');
    item.className = check.ok ? '' : 'bad';
    item.textContent = check.name.replaceAll('_', ' ') + (check.detail ? `: ${check.detail}` : '');
    return item;
  }));
  const facts = [
    ['updates, in all', format.bytes(bytes.received_update_bytes)], ['results, in all', format.bytes(bytes.sent_result_bytes)],
    ...(fromMirrors ? [['workers receive', fromMirrors]] : []), ['updates rejected', format.count(totals.updates_rejected)], ['hash mismatches', format.count(totals.state_hash_mismatches)],
    ...(totals.sign_agreement_ratio == null ? [] : [['signs agree', format.percent(totals.sign_agreement_ratio)]]), ['newest snapshot', `round ${format.count(round.snapshot_round)}`],
    ['round log', format.bytes(totals.log_bytes)], ['disk free', format.bytes(totals.disk_free_bytes)]];
  at('facts').replaceChildren(...facts.flatMap(([name, value]) => {
    const term = document.createElement('dt'), text = document.createElement('dd');
    term.textContent = name;
    text.textContent = value;
    return [term, text];
  }));
}

function show(report) {
  showHead(report);
  showTiles(report);
  showProblems(report);
  showBytes(report);
  showAggregator(report);
  chart.show(report.loss.training, report.loss.held_out);
  const states = Object.entries(report.states).filter(([, n]) => n > 0).map(([state, n]) => `${n} ${state}`);
  set('states', states.join(' · '));
  table.show(report.workers);
  document.querySelector('main').hidden = false;
}

function showConnection(error) {
  const silent = heardAt === null ? null : (Date.now() - heardAt) / 1000;
  const lost = error !== null;
  document.body.classList.toggle('offline', lost);
  at('offline').hidden = !lost;
  if (lost) set('offline', silent === null ? 'The aggregator does not answer.' :
    `The aggregator has not answered for ${format.duration(silent)}: what is below is of then.`);
  if (!lost) set('updated', `as of ${new Date(heardAt).toLocaleTimeString()}, every ${INTERVAL / 1000} s`);
}

async function poll() {
  let report;
  try {
    const answer = await fetch('/status.json', {cache: 'no-store', signal: AbortSignal.timeout(GIVE_UP)});
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    report = JSON.parse(await answer.text(), (key, value) => typeof value === 'string' ? format.shown(value) : value);
  } catch (error) {
    showConnection(error);
    return;
  }
  heardAt = Date.now();
  show(report);
  showConnection(null);
}

async function run() {
  for (;;) {
    if (!document.hidden) await poll().catch((error) => console.error(error));
    await new Promise((done) => setTimeout(done, INTERVAL));
  }
}

document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
run();
