// Numbers as text, the same as in the report: three significant digits and a unit.

function digits(v) {
  return Number(v.toPrecision(3)).toLocaleString('en-US', { useGrouping: false, maximumSignificantDigits: 3 });
}

function scaled(v, by, names) {
  let i = 0;
  while (i < names.length - 1 && Number(v.toPrecision(3)) >= by) { v /= by; i++; }
  return digits(v) + (names[i] ? ' ' + names[i] : '');
}

export const count = (v) => scaled(v, 1000, ['', 'k', 'M', 'G', 'T']);
export const rate = (v) => count(v) + '/s';

export function bytes(v) {
  v = Math.floor(v);
  for (const u of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    const n = Number(v.toPrecision(3)), shown = n >= 1000 ? Math.round(v) : n;
    if (shown < 1024 || u === 'TiB') return shown + ' ' + u;
    v /= 1024;
  }
  return '';
}

const pad = (n) => String(n).padStart(2, '0');

// A time in seconds.
export function time(v) {
  if (v <= 0) return '0 s';
  for (const [name, unit, below] of [['ns', 1e-9, 1000], ['us', 1e-6, 1000], ['ms', 1e-3, 1000], ['s', 1, 60]]) {
    const n = Number((v / unit).toPrecision(3));
    if (n < below) return digits(n) + ' ' + name;
  }
  const s = Math.round(v);
  if (s < 3600) return Math.floor(s / 60) + 'm' + pad(s % 60) + 's';
  const m = Math.round(v / 60);
  if (m < 1440) return Math.floor(m / 60) + 'h' + pad(m % 60) + 'm';
  const h = Math.round(v / 3600);
  return Math.floor(h / 24) + 'd' + pad(h % 24) + 'h';
}

// A measured time. More than an hour is not distinguished.
export const measured = (v) => (v > 3600 ? '> 1 h' : time(v));

// Whole events, with separators.
export const whole = (v) => Math.round(v).toLocaleString('en-US');

// A value of a metric in its own unit.
export function value(v, unit) {
  switch (unit) {
    case 'bytes': return bytes(v);
    case 'bytes/s': return bytes(v) + '/s';
    case 's': return time(v);
    case 'ms': return time(v / 1e3);
    case 'cores': return digits(v);
    case '%': return digits(v) + '%';
    case '': return count(v);
  }
  return count(v) + ' ' + unit;
}
