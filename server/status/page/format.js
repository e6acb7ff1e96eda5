// Numbers for people. Every function takes null for "not known" and says "–".
const NONE = '–';
const JOIN = '\u00a0';  // of a number and its unit, in running text

// Three digits that mean something: 1.30, 13.0, 130, 1 300.
function digits(value) {
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(3));
  return Math.abs(rounded) >= 100 ? count(rounded) : value.toPrecision(3);
}

function scaled(value, unit, separator) {
  const steps = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  for (const [size, prefix] of steps) {
    if (Math.abs(value) >= size * 0.9995) return digits(value / size) + separator + prefix + unit;
  }
  return digits(value) + (unit ? separator + unit : '');
}

// Text of others, with an escape in place of each character that is not seen, or that changes how others are seen (ShownText).
export const shown = (text) =>
    text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, '0')}`);

export const bytes = (value) => value == null ? NONE : scaled(value, 'B', ' ');
export const rate = (value) => value == null ? NONE : scaled(value, 'B/s', ' ');
export const short = (value) => value == null ? NONE : scaled(value, '', ' ');
export const count = (value) => value == null ? NONE : value.toLocaleString('en').replaceAll(',', JOIN);
export const number = (value) => value == null ? NONE : digits(value);
export const loss = (value) => value == null ? NONE : value.toFixed(3);
export const percent = (value) => value == null ? NONE : `${Math.round(100 * value)} %`;
export const factor = (less, more) => less && more ? `${digits(more / less)} ×` : NONE;

// What share of their results and snapshots these workers have from mirrors, after `lead`; '' in a run without mirrors.
export function fromMirrors(workers, lead = '') {
  const sum = (key) => workers.reduce((all, worker) => all + (worker[key] ?? 0), 0);
  const bytes = sum('mirror_bytes'), failures = sum('mirror_failures');
  if (!bytes && !failures) return '';
  const failed = failures ? `, failed requests: ${count(failures)}` : '';
  return `${lead}${percent(Math.min(1, bytes / Math.max(1, sum('received_bytes') + sum('received_snapshot_bytes'))))} from mirrors${failed}`;
}

export function seconds(value) {
  if (value == null) return NONE;
  if (value < 0.0995) return `${Math.max(1, Math.round(1000 * value))}${JOIN}ms`;
  if (value < 9.95) return `${value.toFixed(1)}${JOIN}s`;
  return duration(value);
}

export function duration(value) {
  if (value == null) return NONE;
  const whole = Math.round(value);
  if (whole < 100) return `${whole}${JOIN}s`;
  if (whole < 100 * 60) return `${Math.round(whole / 60)}${JOIN}min`;
  if (whole < 48 * 3600) return `${Math.round(whole / 3600)}${JOIN}h`;
  return `${Math.round(whole / 86400)}${JOIN}d`;
}
