// What the pages have in common besides charts: the band, the key, the choice of colors.
const page = (() => {
  'use strict';
  const { make } = charts;
  const set = (e, text) => {
    text = format.unbroken(text);
    if (e.textContent !== text) e.textContent = text;
  };

  // band fills the section of a band. Its places are those of the markup: what is missing is hidden.
  function band(section, { word, mark, text, facts, notes = [], more }) {
    if (section.className !== 'result ' + mark) section.className = 'result ' + mark;
    set(section.querySelector('.word'), word);
    set(section.querySelector('.why'), text);
    const places = (list, all, show) => [...list.children].forEach((e, i) => {
      e.hidden = !all[i];
      if (!all[i]) return;
      e.className = all[i].mark ?? '';
      show(e, all[i]);
    });
    places(section.querySelector('.facts'), facts, (e, f) => {
      set(e.children[0], f.name);
      set(e.children[1], f.value);
      set(e.children[2], f.note ?? '');
    });
    const list = section.querySelector('.notes');
    list.hidden = notes.length === 0;
    places(list, notes, (e, n) => {
      set(e.children[0], n.label);
      set(e.children[1], n.text);
    });
    const rest = section.querySelector('.more');
    if (!rest) return;
    rest.hidden = !more;
    if (more) set(rest.firstElementChild, more + ' more below');
  }

  // key shows those of its shades that have one of these classes, and the marks of a figure.
  function key(element, classes, marks) {
    const all = charts.numbered({ shared: true, marks }), text = JSON.stringify([[...classes], all]);
    if (element.shown === text) return; // a rebuilt list would close what was opened
    element.shown = text;
    element.hidden = classes.size + all.length === 0;
    for (const li of element.querySelector('.shades').children) li.hidden = !classes.has(li.className);
    const moments = (from, to) => all.slice(from, to).map(([at, , what], i) => {
      const li = make('li');
      li.append(make('span', { class: 'pill' }, String(from + i + 1)), ' ', make('b', {}, format.unbroken(format(at, 's'))), ' ' + format.unbroken(what));
      return li;
    });
    const most = 6, rest = all.length - most;
    element.querySelector('.moments').replaceChildren(...moments(0, most));
    let more = element.querySelector('details');
    if (rest <= 0) { more?.remove(); return; }
    if (!more) {
      more = make('details');
      more.append(make('summary'), make('ol', { class: 'moments' }));
      element.append(more);
    }
    set(more.firstChild, rest + ' more marks');
    more.lastChild.replaceChildren(...moments(most, Math.min(all.length, most + 200)));
  }

  // colors adds the choice of the theme to an element. It is kept if the browser allows that.
  function colors(into, repaint) {
    const root = document.documentElement, label = make('label', {}, 'Colors '), select = make('select');
    for (const [value, text] of [['auto', 'of this device'], ['light', 'light'], ['dark', 'dark']]) select.append(make('option', { value }, text));
    const paint = () => {
      if (select.value === 'auto') delete root.dataset.theme; else root.dataset.theme = select.value;
      repaint();
    };
    let kept = 'auto';
    try { kept = localStorage.getItem('carronade-theme') || 'auto'; } catch { /* not allowed here */ }
    select.value = kept;
    if (!select.value) select.value = 'auto';
    select.addEventListener('change', () => {
      paint();
      try { localStorage.setItem('carronade-theme', select.value); } catch { /* not allowed here */ }
    });
    label.append(select);
    into.append(label);
    paint();
  }

  // button is a button that says what it does.
  function button(text, act) {
    const b = make('button', { type: 'button' }, text);
    b.addEventListener('click', act);
    return b;
  }

  return Object.freeze({ band, key, colors, button });
})();
