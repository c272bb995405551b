// The live part of the first page: what david sends as events becomes two charts and a heading. A browser that was cut
// off tells david the last event it had, and gets what came after it.
(() => {
  'use strict';
  const byId = id => document.getElementById(id);
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const fixed = (x, digits) => x.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
  const series = ['s0', 's1', 's2', 's3', 's4', 's5', 's6'];
  const shown = 10 * 60 * 1000; // ms
  const points = []; // {at, arm, warm, tps, p95}
  const arms = [];
  let state = {run: '', tune: {on: false}}, latest = null, waiting = false;

  // draw redraws with the next frame, however many events came.
  function draw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; render(); });
  }

  function armColour(arm) {
    if (!arms.includes(arm)) arms.push(arm);
    const others = arms.filter(a => a !== 'control');
    return colour(arm === 'control' ? 's0' : series[1 + others.indexOf(arm) % 6]);
  }

  function axis(text, more) {
    return {title: {display: true, text, color: colour('soft')}, grid: {color: colour('grid')}, border: {color: colour('line')},
      ticks: {color: colour('soft'), maxRotation: 0, includeBounds: false}, ...more};
  }

  // pieces makes of the seconds of each arm a line that is broken where another arm was loaded.
  function pieces(value) {
    const sets = new Map();
    let last = null;
    for (const p of points) {
      if (!sets.has(p.arm)) sets.set(p.arm, []);
      const data = sets.get(p.arm);
      if (last && (last.arm !== p.arm || p.at - last.at > 3000)) data.push({x: p.at, y: NaN});
      data.push({x: p.at, y: value(p)});
      last = p;
    }
    return [...sets].map(([arm, data]) => ({label: arm, data, borderColor: armColour(arm), backgroundColor: armColour(arm),
      borderWidth: 2, pointRadius: 1.5, pointHitRadius: 8, tension: 0, spanGaps: false}));
  }

  const steps = [5, 10, 15, 30, 60, 120, 300].map(s => 1000 * s); // ms between two marks of time
  const charts = {};
  function chart(id, text, value) {
    const last = points.length ? points.at(-1).at : Date.now();
    const first = Math.max(last - shown, points.length ? points[0].at : last);
    const clock = at => new Date(at).toLocaleTimeString('en-GB');
    const x = axis('', {type: 'linear', min: first, max: Math.max(last, first + 1000), title: {display: false}});
    x.ticks.callback = clock;
    x.ticks.stepSize = steps.find(s => s * (innerWidth < 600 ? 3 : 8) >= x.max - x.min) ?? steps.at(-1);
    const config = {type: 'line', data: {datasets: pieces(value)}, options: {responsive: true, maintainAspectRatio: false, animation: false,
      interaction: {mode: 'nearest', axis: 'x', intersect: false}, scales: {x, y: axis(text, {beginAtZero: true, grace: '10%'})},
      plugins: {legend: {display: false}, tooltip: {callbacks: {title: at => clock(at[0].parsed.x)}}}}};
    if (!charts[id]) {
      charts[id] = new Chart(byId(id), config);
      return;
    }
    charts[id].data = config.data;
    charts[id].options = config.options;
    charts[id].update('none');
  }

  const left = s => s >= 90 ? Math.round(s / 60) + ' min left' : s > 0 ? Math.round(s) + ' s left' : '';

  function heading() {
    const p = latest && latest.point, big = byId('now').firstElementChild;
    big.textContent = state.run && p ? fixed(p.tps, 0) : '';
    byId('unit').textContent = !state.run ? (state.tune.on ? 'A tune is starting' : 'Nothing is being measured')
      : p ? 'transactions/s, p95 ' + fixed(p.p95_ms, 1) + ' ms' : 'Being measured';
    byId('doing').textContent = state.run && latest ? [latest.phase, latest.text, left(latest.left_seconds ?? 0)].filter(Boolean).join('; ') : '';
  }

  function key() {
    const have = [...new Set(points.map(p => p.arm))];
    byId('key').replaceChildren(...have.map(arm => {
      const item = document.createElement('li'), mark = document.createElement('i');
      mark.style.borderTopColor = armColour(arm);
      item.append(mark, arm);
      return item;
    }));
  }

  function render() {
    heading();
    byId('live').hidden = !state.run && points.length === 0;
    byId('start').hidden = state.tune.on || state.run !== '';
    byId('stop').hidden = !state.tune.on;
    byId('said').hidden = !state.tune.said;
    byId('said').lastElementChild.textContent = state.tune.said ?? '';
    if (byId('live').hidden) return;
    key();
    chart('tps', 'transactions/s', p => p.tps);
    chart('p95', 'ms', p => p.p95);
  }

  function forget(run) {
    points.length = arms.length = 0;
    latest = null;
    byId('run').textContent = run;
    byId('run').href = '/report/' + run;
  }

  let of = '';
  function take(event) {
    const run = event.lastEventId.split(':')[0], m = JSON.parse(event.data);
    if (run !== of) forget(of = run);
    if (!m.line) latest = m;
    if (m.point) points.push({at: Date.parse(m.at), arm: m.arm ?? '', warm: m.point.warm, tps: m.point.tps, p95: m.point.p95_ms});
    while (points.length > 0 && points.at(-1).at - points[0].at > shown) points.shift();
    draw();
  }

  // ask fills in what the experiments have found, one after the other.
  let asking = false;
  async function ask() {
    if (asking) return;
    asking = true;
    for (const item of document.querySelectorAll('li[data-ask]')) {
      const answer = await fetch('/found/' + encodeURIComponent(item.dataset.id));
      if (!answer.ok) continue;
      const v = await answer.json(), found = item.querySelector('.found');
      if (v.later) {
        found.textContent = 'told once nothing is being measured';
        continue;
      }
      delete item.dataset.ask;
      item.className = v.tone;
      const big = document.createElement('b');
      big.textContent = v.big;
      found.replaceChildren(big, v.rest);
      item.querySelector('.sure').textContent = v.sure;
    }
    asking = false;
  }

  // again reads the list anew, with what has just ended.
  async function again() {
    const answer = await fetch('/');
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    byId('runs').replaceWith(page.getElementById('runs'));
    pick();
    ask();
  }

  // pick goes to two experiments as soon as two are picked.
  function pick() {
    const form = byId('pairs');
    form?.addEventListener('change', () => {
      const n = form.querySelectorAll('input:checked').length;
      byId('hint').textContent = n === 1 ? 'Pick another one.' : 'Pick two to see them side by side.';
      if (n === 2) form.submit();
    });
  }

  const source = new EventSource('/events');
  source.addEventListener('moment', take);
  source.addEventListener('state', event => {
    const before = state;
    state = JSON.parse(event.data);
    if (state.ended || before.run !== state.run || before.tune.on && !state.tune.on) again();
    draw();
  });
  source.addEventListener('error', () => { byId('doing').textContent = 'david serve does not answer; trying again'; });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  addEventListener('pageshow', () => { for (const box of document.querySelectorAll('#pairs input')) box.checked = false; });
  pick();
  ask();
})();
