// The table of workers. Rows are kept by name and only changed where a value changed, so 200 of them cost little every two
// seconds. All text goes in as textContent: names and reasons are words of others.
import * as format from '/page/format.js';

const SEVERITY = {bad: 0, warning: 1, good: 2, gone: 3};
const network = (w) => w.upload_ratio == null ? null : w.upload_ratio + w.wait_ratio + w.download_ratio;

// `value` sorts, `text` shows; `from` is the first direction of a sort: 1 the small ones first.
const COLUMNS = [
  {key: 'name', title: 'Worker', from: 1, value: (w) => w.name, text: (w) => w.name},
  {key: 'state', title: 'State', from: 1, value: (w) => w.state, text: (w) => w.state},
  {key: 'up', title: 'Up', label: 'up', from: 1, value: (w) => w.up_goodput, text: (w) => format.rate(w.up_goodput),
    help: (w) => `while sending; ${format.rate(w.up_bytes_per_second)} over all time, ${format.bytes(w.sent_bytes)} in all`},
  {key: 'down', title: 'Down', label: 'down', from: 1, value: (w) => w.down_goodput, text: (w) => format.rate(w.down_goodput),
    help: (w) => `while receiving; ${format.rate(w.down_bytes_per_second)} over all time, ${format.bytes(w.received_bytes)} in all${
      format.fromMirrors([w], ', of results and snapshot ')}`},
  {key: 'network', title: 'Network time', label: 'network', from: -1, value: network, text: (w) => format.percent(network(w)),
    help: (w) => `of the training thread: upload ${format.percent(w.upload_ratio)}, waiting for others ${
      format.percent(w.wait_ratio)}, download ${format.percent(w.download_ratio)}`},
  {key: 'update', title: 'Update in', label: 'update in', from: -1, value: (w) => w.update_seconds,
    text: (w) => format.seconds(w.update_seconds), help: () => 'from the opening of the round to its last byte'},
  {key: 'tokens', title: 'Tokens/s', label: 'tokens/s', from: 1, value: (w) => w.tokens_per_second,
    text: (w) => format.short(w.tokens_per_second),
    help: (w) => w.local_steps == null ? '' : `${format.count(w.local_steps)} local steps in its last round, of weight ${w.weight}`},
  {key: 'loss', title: 'Loss', label: 'loss', from: -1, value: (w) => w.loss, text: (w) => format.loss(w.loss),
    help: (w) => w.own_evaluation_loss == null ? '' : `${format.loss(w.own_evaluation_loss)} on held-out tokens of its own ${
      format.short(w.own_tokens)}`},
  {key: 'included', title: 'Last round', label: 'last round', from: 1, value: (w) => w.last_included_round,
    text: (w) => format.count(w.last_included_round),
    help: (w) => `the last round that included it; ${format.count(w.included_rounds)} of ${format.count(w.rounds)} since the start`},
  {key: 'note', title: 'What is wrong', from: 1, value: (w) => SEVERITY[w.severity], text: note},
];
const CULPRITS = [['Slow uplink', 'up'], ['Slow downlink', 'down'], ['Slow, and', 'update'], ['Not included', 'included']];

function note(worker) {
  if (worker.problem) return worker.problem;
  if (worker.state === 'probation') return `On probation: ${worker.probation_left} good updates to go`;
  if (worker.state !== 'active') return worker.reason;
  return worker.excluded ? `Not wholly in the last round: ${worker.excluded}` : '';
}

function compare(a, b) {
  if (a === b) return 0;
  if (a == null) return 1;
  if (b == null) return -1;
  return a < b ? -1 : 1;
}

function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

class Row {
  constructor() {
    this.node = document.createElement('tr');
    this.cells = new Map();
    for (const column of COLUMNS) {
      const cell = this.node.insertCell();
      cell.className = column.key;
      if (column.label) cell.dataset.label = column.label;
      this.cells.set(column.key, cell.appendChild(document.createElement('span')));
      if (column.key === 'state') this.inState = cell.appendChild(document.createElement('span'));
      if (column.key === 'network') this.split = cell.appendChild(document.createElement('span'));
    }
    this.inState.className = 'for';
    this.split.className = 'split';
    this.parts = ['upload', 'wait', 'download'].map((name) => {
      const part = this.split.appendChild(document.createElement('i'));
      part.className = name;
      return part;
    });
  }

  show(worker) {
    this.node.className = worker.severity;
    const culprit = CULPRITS.find(([words]) => worker.problem.startsWith(words))?.[1];
    for (const column of COLUMNS) {
      const span = this.cells.get(column.key);
      const text = column.text(worker);
      set(span, text);
      span.className = column.key === culprit ? 'culprit' : '';
      span.parentNode.classList.toggle('empty', text === '' || text === '–');
      if (column.help) span.parentNode.title = column.help(worker);
    }
    set(this.inState, format.duration(worker.in_state_seconds));
    this.cells.get('state').parentNode.title = worker.reason;
    this.split.hidden = network(worker) == null;
    [worker.upload_ratio, worker.wait_ratio, worker.download_ratio].forEach((ratio, i) => {
      this.parts[i].style.width = `${100 * (ratio ?? 0)}%`;
    });
  }
}

export class WorkerTable {
  constructor(table, find, onlyProblems, empty) {
    this.body = table.tBodies[0];
    this.find = find;
    this.onlyProblems = onlyProblems;
    this.empty = empty;
    this.rows = new Map();
    this.workers = [];
    this.sort = null;  // null: the server's order, problems first
    this.headers = COLUMNS.map((column) => this.header(table.tHead.rows[0], column));
    find.addEventListener('input', () => this.arrange());
    onlyProblems.addEventListener('change', () => this.arrange());
  }

  header(row, column) {
    const header = document.createElement('th');
    header.className = column.key;
    header.scope = 'col';
    const button = header.appendChild(document.createElement('button'));
    button.textContent = column.title;
    button.addEventListener('click', () => this.sortBy(column));
    row.append(header);
    return header;
  }

  // First its own direction, then the other, then problems first again.
  sortBy(column) {
    if (this.sort?.column !== column) this.sort = {column, direction: column.from};
    else if (this.sort.direction === column.from) this.sort = {column, direction: -column.from};
    else this.sort = null;
    COLUMNS.forEach((other, i) => {
      if (this.sort?.column === other)
        this.headers[i].setAttribute('aria-sort', this.sort.direction > 0 ? 'ascending' : 'descending');
      else this.headers[i].removeAttribute('aria-sort');
    });
    this.arrange();
  }

  show(workers) {
    this.workers = workers;
    const names = new Set(workers.map((worker) => worker.name));
    for (const [name, row] of this.rows) {
      if (names.has(name)) continue;
      row.node.remove();
      this.rows.delete(name);
    }
    for (const worker of workers) {
      if (!this.rows.has(worker.name)) this.rows.set(worker.name, new Row());
      this.rows.get(worker.name).show(worker);
    }
    this.arrange();
  }

  // Order and filter; nodes move only when the order changed.
  arrange() {
    const words = this.find.value.trim().toLowerCase();
    const shown = this.workers.filter((worker) =>
      (!this.onlyProblems.checked || worker.problem) &&
      `${worker.name} ${worker.state} ${note(worker)}`.toLowerCase().includes(words));
    if (this.sort) {
      const {column, direction} = this.sort;
      shown.sort((a, b) => {
        const x = column.value(a), y = column.value(b);
        return (x == null || y == null ? compare(x, y) : direction * compare(x, y)) || compare(a.name, b.name);
      });
    }
    const nodes = shown.map((worker) => this.rows.get(worker.name).node);
    const same = nodes.length === this.body.rows.length && nodes.every((node, i) => this.body.rows[i] === node);
    if (!same) this.body.replaceChildren(...nodes);
    this.empty.hidden = shown.length > 0;
    this.empty.textContent = this.workers.length ? 'No worker fits the filter.' : 'No worker has joined yet.';
  }
}
