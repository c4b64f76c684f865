// Numbers as text, as the program prints them: three significant digits and a unit.
const format = (() => {
  'use strict';
  // Three significant digits without trailing zeros or exponent.
  function digits(v) {
    const s = v.toPrecision(3), n = Number(s);
    if (n !== 0 && Math.abs(n) < 1e-6) return s;
    return n.toLocaleString('en-US', { useGrouping: false, maximumSignificantDigits: 3 });
  }
  function short(v) {
    const names = ['', ' k', ' M', ' G', ' T'];
    let i = 0;
    while (i < names.length - 1 && Number(v.toPrecision(3)) >= 1000) { v /= 1000; i++; }
    return digits(v) + names[i];
  }
  const pad = (n) => String(n).padStart(2, '0');
  function duration(ns) {
    if (ns === 0) return '0 s';
    for (const [name, unit, below] of [['ns', 1, 1000], ['us', 1e3, 1000], ['ms', 1e6, 1000], ['s', 1e9, 60]]) {
      const v = Number((ns / unit).toPrecision(3));
      if (v < below) return digits(v) + ' ' + name;
    }
    const s = Math.round(ns / 1e9);
    if (s < 3600) return Math.floor(s / 60) + 'm' + pad(s % 60) + 's';
    const m = Math.round(ns / 6e10);
    if (m < 1440) return Math.floor(m / 60) + 'h' + pad(m % 60) + 'm';
    const h = Math.round(ns / 3.6e12);
    return Math.floor(h / 24) + 'd' + pad(h % 24) + 'h';
  }
  function size(v) {
    v = Math.floor(v);
    for (const u of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
      const n = Number(v.toPrecision(3)), shown = n >= 1000 ? Math.round(v) : n;
      if (shown < 1024 || u === 'TiB') return shown + ' ' + u;
      v /= 1024;
    }
    return '';
  }
  // percentile prints 1/(1-p).
  function percentile(x) {
    if (x <= 1) return 'p0';
    const left = 100 / x;
    const s = (100 - left).toFixed(Math.min(12, Math.max(0, Math.ceil(-Math.log10(left)) + 1)));
    return 'p' + (s.includes('.') ? s.replace(/\.?0+$/, '') : s);
  }
  function format(v, unit) {
    if (v === null || !Number.isFinite(v)) return '-';
    const sign = v < 0 ? '-' : '';
    v = Math.abs(v);
    switch (unit) {
      case 'measured': return v > 3.6e9 ? '> 1 h' : duration(v * 1e3); // longer times are not distinguished
      case 'us': return sign + duration(v * 1e3);
      case 's': return sign + duration(v * 1e9);
      case '/s': return sign + short(v) + '/s';
      case 'bytes': return sign + size(v);
      case 'bytes/s': return sign + size(v) + '/s';
      case '%': return sign + digits(v) + '%';
      case 'percentile': return sign + percentile(v);
      case '': case 'events': return sign + short(v);
    }
    return sign + short(v) + ' ' + unit;
  }
  // whole prints whole events, with separators.
  format.whole = (v) => Math.round(v).toLocaleString('en-US');
  // unbroken is a text in which no line can end between a number and its unit.
  format.unbroken = (text) => text.replace(/(\d) ((?:[kMGT]|[numkM]?s|h|B|[KMGT]iB|cores?)\b|%|\/s)/g, '$1\u00a0$2').replace(/([<>=≥≤]) (\d)/g, '$1\u00a0$2');
  // axis is the unit beside each mark of an axis. Units of other programs may be long.
  format.axis = (unit) => (['s', 'us', 'measured', '/s', 'events', 'bytes', 'bytes/s', '%', 'percentile'].includes(unit) ? unit : '');
  return format;
})();
