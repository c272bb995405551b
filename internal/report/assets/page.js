// Draws the charts from the document in #data, the same that `david report --format json` prints. Colours come from the
// style sheet, so that a change of the colour scheme, or printing, only means drawing again.
(() => {
  'use strict';
  const doc = JSON.parse(document.getElementById('data').textContent);
  const byId = id => document.getElementById(id);
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const fixed = (x, digits = 2) => x.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
  const boxes = [...document.querySelectorAll('#pick input')];
  const labelOf = i => boxes[i].parentElement.textContent;
  const shown = () => boxes.filter(b => b.checked).map(b => Number(b.value));
  const compared = doc.comparisons.length > 0;

  // Series differ by colour and by dash, so that neither alone has to tell them apart.
  const dashes = [[], [9, 4], [2, 3], [9, 3, 2, 3]];
  // An arm of a comparison keeps its colour in every chart; its later blocks differ by their dash.
  function armLook(name, dash = []) {
    if (name === doc.comparisons[0].control) return {series: 's0', dash, width: 1.75};
    const n = doc.arms.filter(a => a.name !== doc.comparisons[0].control).findIndex(a => a.name === name);
    return {series: 's' + (1 + n % 6), dash: n < 6 ? dash : dashes[1], width: 2};
  }
  function look(i) {
    const {arm, block, twin} = doc.trials[i];
    if (compared) return armLook(arm, dashes[((block ?? 1) - 1 + (twin ? 1 : 0)) % 4]);
    return {series: 's' + (1 + i % 6), dash: dashes[i % 4], width: 1.75};
  }
  function line(i, data) {
    const l = look(i);
    return {label: labelOf(i), data, borderColor: colour(l.series), backgroundColor: colour(l.series),
      borderDash: l.dash, borderWidth: l.width, pointRadius: 0, pointHitRadius: 8, tension: 0};
  }
  function paintPick() {
    for (const b of boxes) {
      const l = look(Number(b.value)), mark = b.parentElement.querySelector('i');
      mark.style.borderTopColor = colour(l.series);
      mark.style.borderTopStyle = ['solid', 'dashed', 'dotted', 'dashed'][dashes.indexOf(l.dash)] ?? 'solid';
    }
  }

  const axis = (text, more = {}) => ({
    title: {display: true, text, color: colour('soft')}, grid: {color: colour('grid')}, border: {color: colour('line')},
    ticks: {color: colour('soft'), maxRotation: 0}, ...more});
  function options(x, y, title) {
    return {responsive: true, maintainAspectRatio: false, animation: false, normalized: true,
      interaction: {mode: 'nearest', axis: 'x', intersect: false}, scales: {x, y},
      plugins: {legend: {display: false}, tooltip: {callbacks: {title}}}};
  }

  // upright draws a dashed line from the top to the bottom of a chart, where at lies in it.
  function upright(ctx, at, area, stroke) {
    if (!(at >= area.left && at <= area.right)) return;
    ctx.strokeStyle = stroke;
    ctx.setLineDash([4, 4]);
    ctx.beginPath();
    ctx.moveTo(at, area.top);
    ctx.lineTo(at, area.bottom);
    ctx.stroke();
  }

  // warmUp shades the seconds that are not part of the result.
  const warmUp = {
    id: 'warmUp',
    beforeDatasetsDraw(chart) {
      const until = Math.max(0, ...shown().map(i => (doc.trials[i].points ?? []).findLast(p => p.warm)?.second ?? 0));
      if (until === 0) return;
      const {ctx, chartArea: area, scales: {x}} = chart, right = x.getPixelForValue(until);
      ctx.save();
      ctx.fillStyle = colour('shade');
      ctx.fillRect(area.left, area.top, right - area.left, area.bottom - area.top);
      ctx.fillStyle = colour('soft');
      ctx.font = '12px ' + Chart.defaults.font.family;
      if (right - area.left > 60) ctx.fillText('warm-up', area.left + 6, area.bottom - 8);
      ctx.restore();
    }};
  function overTime(text, value) {
    const last = Math.max(1, ...shown().map(i => doc.trials[i].points?.at(-1)?.second ?? 0));
    const x = axis('seconds', {type: 'linear', min: 0, max: last});
    x.ticks.includeBounds = false;
    return {type: 'line', plugins: [warmUp], options: options(x, axis(text, {beginAtZero: true}), at => 'second ' + at[0].parsed.x),
      data: {datasets: shown().map(i => line(i, (doc.trials[i].points ?? []).map(p => ({x: p.second, y: value(p)}))))}};
  }

  // sysbench divides 0.001 to 100,000 ms into 1,023 steps of equal ratio (1.8 %); 4 of them together are a line one can read.
  const perDecade = 1023 / 8, together = 4;
  const msOf = bucket => 10 ** (bucket / perDecade - 3);
  function shares(trial) {
    const bins = new Map();
    let total = 0;
    for (const {ms, count} of trial.histogram ?? []) {
      const bin = Math.floor(Math.round((Math.log10(ms) + 3) * perDecade) / together);
      bins.set(bin, (bins.get(bin) ?? 0) + count);
      total += count;
    }
    if (total === 0) return [];
    const first = Math.min(...bins.keys()), last = Math.max(...bins.keys());
    return Array.from({length: last - first + 3}, (_, n) => first - 1 + n)
      .map(bin => ({x: msOf((bin + 0.5) * together - 0.5), y: 100 * (bins.get(bin) ?? 0) / total}));
  }
  // p95 marks the 95th percentile of each run.
  const p95 = {
    id: 'p95',
    afterDatasetsDraw(chart) {
      const {ctx, chartArea: area, scales: {x}} = chart;
      ctx.save();
      for (const i of shown()) {
        upright(ctx, x.getPixelForValue(doc.trials[i].latency_ms.p95), area, colour(look(i).series));
      }
      ctx.restore();
    }};
  const plain = /^[125]0*$|^0\.0*[125]$/;
  function latency() {
    const ticks = {color: colour('soft'), maxRotation: 0, callback: v => plain.test(String(v)) ? String(v) : ''};
    const x = axis('latency, ms (logarithmic); the upright lines are p95', {type: 'logarithmic', bounds: 'data', ticks});
    return {type: 'line', plugins: [p95], options: options(x, axis('% of transactions', {beginAtZero: true}), at => fixed(at[0].parsed.x) + ' ms'),
      data: {datasets: shown().map(i => line(i, shares(doc.trials[i])))}};
  }

  // The bars are the runs of a bench; the end of one that is invalid says so.
  const failed = t => t.gates?.some(g => !g.ok);
  const bars = doc.trials.map((t, i) => ({run: labelOf(i), tps: failed(t) ? 0 : t.tps}));
  const barsHeight = 60 + 36 * bars.length;
  const barText = row => row.tps > 0 ? fixed(row.tps, 0) : 'invalid';
  const barLabels = {
    id: 'barLabels',
    afterDatasetsDraw(chart) {
      const {ctx, scales: {x, y}} = chart;
      ctx.save();
      ctx.font = '600 12px ' + Chart.defaults.font.family;
      ctx.textBaseline = 'middle';
      bars.forEach((row, n) => {
        ctx.fillStyle = colour(row.tps > 0 ? 'ink' : 'soft');
        ctx.fillText(barText(row), x.getPixelForValue(row.tps) + 6, y.getPixelForValue(n));
      });
      ctx.restore();
    }};
  function side() {
    byId('bars-box').style.height = barsHeight + 'px';
    const most = Math.max(1, ...bars.map(r => r.tps)), narrow = innerWidth < 600;
    const x = axis('transactions/s', {beginAtZero: true, max: most * (narrow ? 2.6 : 1.35)});
    x.ticks.includeBounds = false;
    const y = axis('', {title: {display: false}, grid: {display: false}, ticks: {color: colour('ink'), autoSkip: false}});
    return {type: 'bar', plugins: [barLabels],
      options: {...options(x, y, at => at[0].label), indexAxis: 'y', interaction: {mode: 'nearest', axis: 'y', intersect: false}},
      data: {labels: bars.map(r => r.run), datasets: [{label: 'transactions/s', data: bars.map(r => r.tps),
        backgroundColor: colour('bar'), barThickness: 20, borderRadius: 2}]}};
  }

  // under is what tells one workload from the others.
  function under(w) {
    const parts = [], differ = key => new Set(doc.comparisons.map(c => c.workload[key] ?? 0)).size > 1;
    if (differ('name')) parts.push(w.name);
    if (differ('threads')) parts.push(w.threads + (w.threads === 1 ? ' thread' : ' threads'));
    if (differ('rate')) parts.push(w.rate ? w.rate + '/s' : 'closed loop');
    return parts.join(', ');
  }
  // A forest is a chart of ratios with their intervals, one row for each arm.
  const forestRows = comparisons => comparisons.flatMap(c => c.arms.map(a => ({...a, floor: c.noise_floor.floor, control: c.control,
    ratios: (a.name === c.control ? c.noise_floor.ratios : a.ratios) ?? [],
    label: comparisons.length > 1 ? [a.name, under(c.workload)] : a.name})));
  // In a race few rounds give a ratio without an interval or a verdict.
  const raceFate = a => {
    if (a.name === a.control) return a.verdict;
    if (a.incarnations && a.pairs < 3) return a.pairs === 1 ? '1 round' : a.pairs + ' rounds';
    return a.pairs === 1 ? '1 block' : a.verdict;
  };
  // The steps of a tune of a running server: their latency to that before the first, and where one was set back.
  const stepRows = (doc.live?.judged ?? []).filter(s => s.interval)
    .map(s => ({...s, label: s.name, verdict: s.state === 'kept' ? 'kept' : 'slower', floor: 0, ratios: s.ratios ?? []}));
  const forests = {
    forest: {rows: forestRows(doc.comparisons), promised: doc.tune?.promised ?? {}, fate: a => a.verdict},
    race: {rows: forestRows(doc.tune?.race ?? []), promised: {}, fate: raceFate},
    steps: {rows: stepRows, promised: {}, fate: a => a.state, of: 'step', limit: doc.live?.max_p95,
      legend: ['latency to before the first step; ', 'small dots are parts of the window']},
  };
  const forestHeight = id => 70 + 44 * forests[id].rows.length;
  const hasInterval = a => a.interval !== null && a.name !== a.control;
  function forestText(a, fate) {
    if (a.name === a.control) return a.ratio > 0 ? 'control' : a.verdict;
    return a.ratio > 0 ? fixed(a.ratio, Math.abs(a.ratio - 1) < 0.1 ? 3 : 2) + 'x  ' + fate(a) : a.verdict;
  }
  function forestColour(a) {
    if (a.verdict === 'faster') return colour('gain');
    return colour(a.verdict === 'slower' || a.verdict === 'infeasible' ? 'bad' : 'quiet');
  }
  const forestMarks = ({rows, promised, fate, limit}) => ({
    id: 'forestMarks',
    beforeDatasetsDraw({ctx, chartArea: area, scales: {x}}) {
      ctx.save();
      if (limit) upright(ctx, x.getPixelForValue(limit), area, colour('bad'));
      ctx.fillStyle = colour('shade');
      const height = (area.bottom - area.top) / rows.length;
      rows.forEach((a, n) => {
        const left = x.getPixelForValue(1 - a.floor);
        ctx.fillRect(left, area.top + n * height, x.getPixelForValue(1 + a.floor) - left, height);
      });
      upright(ctx, x.getPixelForValue(1), area, colour('soft'));
      ctx.restore();
    },
    afterDatasetsDraw({ctx, chartArea: area, scales: {x, y}}) {
      ctx.save();
      ctx.font = '600 12px ' + Chart.defaults.font.family;
      ctx.textBaseline = 'middle';
      rows.forEach((a, n) => {
        const at = y.getPixelForValue(n), text = forestText(a, fate);
        ctx.fillStyle = forestColour(a);
        if (a.ratio > 0) dot(ctx, x.getPixelForValue(a.ratio), at, 5);
        ctx.globalAlpha = 0.55;
        for (const r of a.ratios) dot(ctx, x.getPixelForValue(r), at + 12, 2);
        ctx.globalAlpha = 1;
        ctx.strokeStyle = colour('soft');
        if (promised[a.name]) diamond(ctx, x.getPixelForValue(promised[a.name]), at - 12, 4);
        ctx.fillStyle = colour(a.ratio > 0 ? 'ink' : 'soft');
        const from = a.ratio > 0 ? Math.max(a.ratio, a.interval?.[1] ?? 0) : 1;
        // Beside the interval; above it where that leaves the chart.
        const left = x.getPixelForValue(from) + 8, room = area.right - ctx.measureText(text).width;
        if (from <= x.max || a.ratio >= x.max) ctx.fillText(text, Math.min(left, room), at);
        else ctx.fillText(text, Math.min(x.getPixelForValue(a.ratio) + 8, room), at - 12);
      });
      ctx.restore();
    }});
  function dot(ctx, x, y, radius) {
    ctx.beginPath();
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
    ctx.fill();
  }
  function diamond(ctx, x, y, half) {
    ctx.beginPath();
    for (const [dx, dy] of [[0, -half], [half, 0], [0, half], [-half, 0]]) ctx.lineTo(x + dx, y + dy);
    ctx.closePath();
    ctx.setLineDash([]);
    ctx.lineWidth = 1.5;
    ctx.stroke();
  }
  const narrow = () => innerWidth < 600;
  const categories = () => axis('', {title: {display: false}, grid: {display: false}, ticks: {color: colour('ink'), autoSkip: false}});
  function forest(id) {
    const f = forests[id], {rows, promised} = f;
    byId(id + '-box').style.height = forestHeight(id) + 'px';
    const seen = rows.flatMap(a => [1, ...(f.limit ? [f.limit] : []), ...(a.ratio > 0 ? [a.ratio] : []), ...a.ratios, ...(promised[a.name] ? [promised[a.name]] : [])]);
    // An interval that says nothing may reach a hundred times as far as anything that was seen: it leaves the chart.
    const most = 1.5 * Math.max(...seen), ends = [...seen, ...rows.flatMap(a => [1 - a.floor, 1 + a.floor, ...(hasInterval(a) ? a.interval : [])])]
      .map(end => Math.min(end, most));
    const lo = Math.min(...ends), hi = Math.max(...ends), room = Math.max(hi - lo, 0.02);
    // Slices have rounds, and their noise is in the intervals: there is no floor to draw.
    const legend = f.legend ?? (rows.some(a => a.floor > 0) ? ['ratio to the control; the band is ', 'too small to be seen, small dots are blocks']
      : ['ratio to the control; ', 'small dots are rounds']);
    const x = axis(legend.join(''), {type: 'linear', min: Math.max(0, lo - 0.05 * room), max: hi + room * (narrow() ? 0.9 : 0.3)});
    x.ticks.includeBounds = false;
    if (narrow()) x.title.text = legend;
    const more = options(x, categories(), at => String(at[0].label));
    more.plugins.tooltip.callbacks.label = at => forestTip(rows[at.dataIndex]);
    return {type: 'bar', plugins: [forestMarks(f)], options: {...more, indexAxis: 'y', interaction: {mode: 'nearest', axis: 'y', intersect: false}},
      data: {labels: rows.map(a => a.label), datasets: [{label: 'interval', data: rows.map(a => hasInterval(a) ? a.interval : null),
        backgroundColor: rows.map(forestColour), barThickness: 4, minBarLength: 2}]}};
  }
  const forestTip = a => hasInterval(a) ? fixed(a.ratio, 3) + ' [' + fixed(a.interval[0], 3) + ', ' + fixed(a.interval[1], 3) + ']'
    : a.ratio > 0 && a.name !== a.control ? fixed(a.ratio, 3) + ', no interval' : a.why ?? a.verdict;
  const forestTable = id => [[forests[id].of ?? 'arm', 'ratio', 'from', 'to', 'verdict', ...(id === 'forest' && doc.tune ? ['short trials'] : [])],
    ...forests[id].rows.map(a => [String(a.label), hasInterval(a) || a.ratio > 0 && a.pairs === 1 ? fixed(a.ratio, 3) : '-',
      ...(hasInterval(a) ? a.interval.map(r => fixed(r, 3)) : ['-', '-']), forests[id].fate(a),
      ...(id === 'forest' && doc.tune ? [a.name in forests.forest.promised ? fixed(forests.forest.promised[a.name], 3) : '-'] : [])])];

  // Every short trial of a tune after the race, over the step line of the best so far. What has no value stands on the floor, and so do
  // removals that cost more than the search ever lost, as they would flatten all else.
  const attempts = doc.tune?.tried ?? [];
  const kinds = [['screen', 's3', 'rect'], ['search', 's1', 'circle'], ['prune', 's5', 'triangle']];
  function history() {
    const levels = attempts.flatMap(a => [a.best, ...(a.level > 0 && a.phase !== 'prune' ? [a.level] : [])]), lo = Math.min(...levels), hi = Math.max(...attempts.map(a => a.level), ...levels);
    const room = Math.max(hi - lo, 0.1), floor = Math.max(0, lo - 0.12 * room), at = a => a.level > 0 ? Math.max(a.level, floor) : floor;
    const x = axis('trial', {type: 'linear', min: 0, max: attempts.length + 1});
    Object.assign(x.ticks, {precision: 0, includeBounds: false});
    const y = axis(narrow() ? 'ratio' : 'ratio to the best of the race', {min: Math.max(0, lo - 0.2 * room), max: hi + 0.1 * room});
    y.ticks.includeBounds = false;
    const o = withLegend(options(x, y, at => at[0].raw.name));
    Object.assign(o.plugins.legend.labels, {usePointStyle: true, boxWidth: 8, boxHeight: 8});
    o.plugins.tooltip.callbacks.label = at => attempts[at.raw.x - 1] === undefined ? '' : historyTip(attempts[at.raw.x - 1]);
    o.plugins.tooltip.filter = at => at.dataset.type !== 'line';
    o.interaction = {mode: 'nearest', intersect: true};
    const set = (label, ink, pointStyle, pick, height, more = {}) => ({label, type: 'scatter', borderColor: colour(ink), backgroundColor: colour(ink), pointStyle,
      pointRadius: 5, borderWidth: 1.5, data: attempts.flatMap((a, n) => pick(a) ? [{x: n + 1, y: height(a), name: a.phase + ' ' + a.arm}] : []), ...more});
    const best = {label: 'best so far', type: 'line', stepped: true, pointRadius: 0, pointHitRadius: 0, borderWidth: 2, borderColor: colour('s0'),
      backgroundColor: colour('s0'), pointStyle: 'line', order: 1, data: attempts.map((a, n) => ({x: n + 1, y: a.best}))};
    const sets = [...kinds.map(([phase, ink, shape]) => set(phase + (attempts.some(a => a.phase === phase && a.level > 0 && a.level < floor) ? ' (on the floor: below it)' : ''),
      ink, shape, a => a.phase === phase && a.state === 'tried', at)),
      set('best so far, run again', 's0', 'circle', a => a.state === 'incumbent', a => a.level, {pointRadius: 3}), best,
      set('infeasible', 'bad', 'crossRot', a => a.state === 'infeasible', at, {borderWidth: 2.5}),
      set('invalid', 'quiet', 'star', a => a.state === 'invalid', at),
      set('no-op: not run', 'quiet', 'rectRot', a => a.state === 'no-op', at, {backgroundColor: 'transparent'})];
    return {type: 'scatter', options: o, data: {datasets: sets.filter(s => s.data.length > 0)}};
  }
  const became = a => a.state === 'incumbent' ? 'best so far, run again' : a.state;
  const historyTip = a => (a.ratio > 0 && a.state !== 'incumbent' && a.state !== 'invalid' ? fixed(a.ratio) + 'x the best so far' : became(a)) + (a.why ? ': ' + (a.why.length > 60 ? a.why.slice(0, 60) + '...' : a.why) : '');

  // What the winner's lines are worth: from 1 down to the throughput without them. An interval of two pairs may reach off the chart.
  const worths = doc.tune?.lines ?? [];
  const mostLines = 4;
  const worthLabel = w => [...w.lines.slice(0, mostLines), ...(w.lines.length > mostLines ? ['and ' + (w.lines.length - mostLines) + ' more'] : [])];
  const worthHeight = () => 70 + worths.reduce((sum, w) => sum + Math.max(44, 12 + 16 * worthLabel(w).length), 0);
  const worthText = w => w.ratio > 0 ? fixed(w.ratio) + 'x  ' + (w.pairs === 1 ? '1 pair' : w.pairs + ' pairs') : w.why ? 'cannot run without' : 'not measured: disturbed';
  const worthMarks = {
    id: 'worthMarks',
    afterDatasetsDraw({ctx, chartArea: area, scales: {x, y}}) {
      ctx.save();
      ctx.font = '600 12px ' + Chart.defaults.font.family;
      ctx.textBaseline = 'middle';
      upright(ctx, x.getPixelForValue(1), area, colour('soft'));
      ctx.setLineDash([]);
      worths.forEach((w, n) => {
        const at = y.getPixelForValue(n), inside = v => Math.min(area.right, Math.max(area.left, x.getPixelForValue(v)));
        ctx.strokeStyle = ctx.fillStyle = colour('ink');
        if (w.interval) {
          ctx.fillRect(inside(w.interval[0]), at + 11, inside(w.interval[1]) - inside(w.interval[0]), 1.5);
          for (const r of w.ratios) dot(ctx, inside(r), at + 12, 3);
        }
        ctx.fillText(worthText(w), inside(Math.max(1, w.ratio)) + 8, at);
      });
      ctx.restore();
    }};
  function worth() {
    byId('worth-box').style.height = worthHeight() + 'px';
    const ends = worths.flatMap(w => [1, ...(w.ratio > 0 ? [w.ratio] : []), ...(w.ratios ?? [])]), lo = Math.min(...ends), hi = Math.max(...ends), room = Math.max(hi - lo, 0.02);
    const x = axis('throughput without the lines, ratio' + (narrow() ? '' : '; a thin line is the 95 % interval, dots are pairs'),
      {type: 'linear', min: Math.max(0, lo - 0.08 * room), max: hi + room * (narrow() ? 1 : 0.3)});
    x.ticks.includeBounds = false;
    if (narrow()) x.title.text = ['throughput without, ratio;', 'thin lines: 95 %, dots: pairs'];
    const names = categories();
    if (narrow()) names.ticks.font = {size: 9}; // a name is never broken
    const more = options(x, names, at => String(at[0].label));
    more.plugins.tooltip.callbacks.label = at => worthText(worths[at.dataIndex]);
    return {type: 'bar', plugins: [worthMarks], options: {...more, indexAxis: 'y', interaction: {mode: 'nearest', axis: 'y', intersect: false}},
      data: {labels: worths.map(worthLabel), datasets: [{label: 'without', data: worths.map(w => w.ratio > 0 ? [w.ratio, 1] : null),
        backgroundColor: worths.map(w => colour(w.ratio > 0 && w.ratio < 0.97 ? 'gain' : 'bar')), barThickness: 14, borderRadius: 2, borderSkipped: false}]}};
  }

  // The runs of one arm under the first workload, of which all gates hold; of a tune those of its confirmation, where it came to that.
  const quoted = doc.trials.some(t => t.phase === 'confirm') ? 'confirm' : undefined;
  const first = doc.comparisons[0];
  const alike = w => JSON.stringify(w) === JSON.stringify(first.workload);
  const runsOf = name => doc.trials.filter(t => t.arm === name && !failed(t) && t.tps > 0 && alike(t.workload) && (quoted ?? t.phase) === t.phase);
  const ran = () => first.arms.filter(a => runsOf(a.name).length > 0);
  function armSet(name, data, more) {
    const l = armLook(name);
    return {label: name, data, borderColor: colour(l.series), backgroundColor: colour(l.series), borderDash: l.dash, borderWidth: l.width, ...more};
  }
  function withLegend(o) {
    o.plugins.legend = {display: true, position: 'bottom', labels: {color: colour('ink'), boxWidth: 14, boxHeight: 2}};
    return o;
  }
  const shapes = ['circle', 'rect', 'triangle', 'rectRot', 'star', 'crossRot'];
  function scatter() {
    const x = axis('transactions/s', {type: 'linear', grace: '5%'}), y = axis('p95, ms', {grace: '10%'});
    const o = withLegend(options(x, y, at => at[0].dataset.label));
    Object.assign(o.plugins.legend.labels, {usePointStyle: true, boxWidth: 8, boxHeight: 8});
    o.interaction = {mode: 'nearest', intersect: true};
    return {type: 'scatter', options: o, data: {datasets: ran().map((a, n) => armSet(a.name,
      runsOf(a.name).map(t => ({x: t.tps, y: t.latency_ms.p95})), {pointRadius: 4, pointStyle: shapes[n % 6], borderWidth: 1}))}};
  }
  const p95OfArms = {
    id: 'p95OfArms',
    afterDatasetsDraw({ctx, chartArea: area, scales: {x}}) {
      ctx.save();
      for (const a of ran()) upright(ctx, x.getPixelForValue(a.p95_ms), area, colour(armLook(a.name).series));
      ctx.restore();
    }};
  function mergedLatency() {
    const config = latency(), merged = name => ({histogram: runsOf(name).flatMap(t => t.histogram ?? [])});
    return {...config, plugins: [p95OfArms], options: withLegend(config.options),
      data: {datasets: ran().map(a => armSet(a.name, shares(merged(a.name)), {pointRadius: 0, pointHitRadius: 8, tension: 0}))}};
  }

  // The windows of a tune of a running server, over the seconds since it began to watch.
  function windows() {
    const run = doc.live.run, began = Date.parse(run.before.began);
    return [['before', run.before], ...run.steps.filter(s => s.traffic?.looks).map(s => ['after ' + s.name, s.traffic])]
      .map(([label, w]) => ({label, looks: (w.looks ?? []).map(l => ({...l, second: (Date.parse(w.began) - began) / 1000 + l.at}))}));
  }
  function lookedAt(text, value) {
    const x = axis('seconds', {type: 'linear'});
    x.ticks.includeBounds = false;
    return {type: 'line', options: withLegend(options(x, axis(text, {beginAtZero: true}), at => 'second ' + fixed(at[0].parsed.x, 0))),
      data: {datasets: windows().map((w, n) => ({label: w.label, borderColor: colour('s' + (n === 0 ? 0 : 1 + (n - 1) % 6)), backgroundColor: colour('s' + (n === 0 ? 0 : 1 + (n - 1) % 6)),
        borderDash: dashes[n % 4], borderWidth: 1.75, pointRadius: 0, pointHitRadius: 8, tension: 0, data: w.looks.map(l => ({x: l.second, y: value(l)}))}))}};
  }

  // What was read beside the load, of the run picked. Values are found by their names, as versions differ in what they have.
  const sampled = byId('sampled');
  function beside(text, names, scale = 1) {
    const samples = doc.trials[Number(sampled.value)].samples ?? [];
    const keys = [...new Set(samples.flatMap(s => Object.keys(s.values ?? {})))].filter(k => names.test(k)).sort();
    const x = axis('seconds', {type: 'linear'});
    x.ticks.includeBounds = false;
    return {type: 'line', options: withLegend(options(x, axis(text, {beginAtZero: true}), at => 'second ' + fixed(at[0].parsed.x, 0))),
      data: {datasets: keys.map((k, n) => ({label: k, borderColor: colour('s' + (1 + n % 6)), backgroundColor: colour('s' + (1 + n % 6)),
        borderDash: dashes[n % 4], borderWidth: 1.75, pointRadius: 0, pointHitRadius: 8,
        data: samples.map(s => ({x: s.at, y: s.values?.[k] === undefined ? null : s.values[k] / scale}))}))}};
  }

  // Throughput against price: what was measured, over a line of the machines one would choose untuned.
  function arms() {
    const all = doc.price.arms.filter(a => a.workload === doc.price.arms[0].workload);
    const two = all.filter(a => a.name === doc.price.winner || a.name === doc.price.control);
    return two.length > 0 ? two : all;
  }
  function pricing() {
    const x = axis('US$ a month', {type: 'linear', beginAtZero: true, grace: '5%'}), y = axis('transactions/s', {beginAtZero: true, grace: '10%'});
    const o = withLegend(options(x, y, at => at[0].raw.name ?? at[0].dataset.label));
    Object.assign(o.plugins.legend.labels, {usePointStyle: true, boxWidth: 8, boxHeight: 8});
    o.interaction = {mode: 'nearest', intersect: false};
    const points = arms().map((a, n) => ({label: a.name + ', measured', type: 'scatter', pointRadius: 6, pointStyle: shapes[n % 6],
      borderColor: colour(a.name === doc.price.control ? 's0' : 's' + (1 + n % 6)), backgroundColor: colour(a.name === doc.price.control ? 's0' : 's' + (1 + n % 6)),
      data: [{x: doc.price.machine.usd_month, y: a.tps, name: a.name}]}));
    const line = {label: 'untuned, predicted (estimate)', stepped: 'before', borderColor: colour('soft'), backgroundColor: colour('soft'), borderDash: dashes[1],
      borderWidth: 1.75, pointRadius: 3, pointStyle: 'circle', data: (doc.price.untuned ?? []).map(p => ({x: p.usd_month, y: p.tps, name: p.name}))};
    return {type: 'line', options: o, data: {datasets: [...points, line]}};
  }

  const configs = {
    price: pricing,
    bars: side, latency: compared ? mergedLatency : latency, forest: () => forest('forest'), race: () => forest('race'), steps: () => forest('steps'), history, worth, scatter,
    'live-ms': () => lookedAt('ms', l => l.ms ?? null), 'live-rate': () => lookedAt('statements/s', l => l.rate),
    'server-cpu': () => beside('cores', /^server\..*cpu/),
    'device-iops': () => beside('operations/s', /^(disk|device)\..*iops/),
    'checkpoint-age': () => beside('MiB', /checkpoint_age/, 1 << 20),
    tps: () => overTime('transactions/s', p => p.tps),
    p95: () => overTime('p95, ms', p => p.p95_ms || null),
  };
  // rows are the numbers of a chart for those who read tables.
  const rows = {
    bars: () => [['run', 'transactions/s'], ...bars.map(r => [r.run, r.tps > 0 ? fixed(r.tps) : 'invalid'])],
    forest: () => forestTable('forest'), race: () => forestTable('race'), steps: () => forestTable('steps'),
    'live-ms': () => series('second', 'live-ms'), 'live-rate': () => series('second', 'live-rate'),
    history: () => [['trial', 'phase', 'arm', 'what', 'to the best so far', 'to the best of the race'], ...attempts.map((a, n) => [String(n + 1), a.phase, a.arm, became(a),
      ...[a.ratio, a.level].map(r => r > 0 && a.state !== 'invalid' ? fixed(r, 3) : '-')])],
    worth: () => [['lines', 'throughput without', 'from', 'to', 'pairs'], ...worths.map(w => [w.lines.join(', '), w.ratio > 0 ? fixed(w.ratio, 3) : '-',
      ...(w.interval ?? [0, 0]).map(r => r > 0 ? fixed(r, 3) : '-'), String(w.pairs)])],
    scatter: () => [['arm', 'transactions/s', 'p95, ms'],
      ...charts.scatter.data.datasets.flatMap(s => s.data.map(({x, y}) => [s.label, fixed(x), fixed(y)]))],
    price: () => [['machine', 'US$ a month', 'transactions/s', 'how'],
      ...arms().map(a => [a.name, fixed(doc.price.machine.usd_month), fixed(a.tps), 'measured']),
      ...(doc.price.untuned ?? []).map(p => [p.name, fixed(p.usd_month), fixed(p.tps), 'predicted, untuned'])],
    'server-cpu': () => series('second', 'server-cpu'), 'device-iops': () => series('second', 'device-iops'),
    'checkpoint-age': () => series('second', 'checkpoint-age'),
    tps: () => series('second', 'tps'), p95: () => series('second', 'p95'), latency: () => series('ms, about', 'latency'),
  };
  function series(head, id) {
    const sets = charts[id].data.datasets, cells = new Map();
    sets.forEach((set, n) => set.data.forEach(({x, y}) => {
      if (!cells.has(x)) cells.set(x, sets.map(() => '-'));
      if (y !== null) cells.get(x)[n] = fixed(y);
    }));
    return [[head, ...sets.map(s => s.label)],
      ...[...cells].sort((a, b) => a[0] - b[0]).map(([x, ys]) => [Number.isInteger(x) ? String(x) : fixed(x), ...ys])];
  }
  function fillTable(details) {
    if (!details.open) return;
    const table = document.createElement('table');
    const all = rows[details.dataset.chart](), heads = all[0];
    all.forEach((cells, n) => {
      const row = (n === 0 ? table.createTHead() : table.tBodies[0] ?? table.createTBody()).insertRow();
      cells.forEach((cell, col) => {
        const e = document.createElement(n === 0 || col === 0 ? 'th' : 'td');
        e.scope = n === 0 ? 'col' : 'row';
        if (col > 0) e.className = 'num';
        if (e.tagName === 'TD') e.removeAttribute('scope'), e.dataset.head = heads[col];
        row.appendChild(e).textContent = cell;
      });
    });
    details.querySelector('.scroll').replaceChildren(table);
  }

  const charts = {};
  function draw() {
    paintPick();
    for (const [id, config] of Object.entries(configs)) {
      if (!byId(id)) continue;
      charts[id]?.destroy();
      charts[id] = new Chart(byId(id), config());
    }
    document.querySelectorAll('.alt').forEach(fillTable);
  }

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  document.querySelectorAll('.alt').forEach(d => d.addEventListener('toggle', () => fillTable(d)));
  document.querySelectorAll('a.word').forEach(a => a.addEventListener('click', () => { byId('words').open = true; }));
  boxes.forEach(b => b.addEventListener('change', draw));
  sampled?.addEventListener('change', draw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  // Paper is white and 180 mm wide, whatever the screen is.
  addEventListener('beforeprint', () => {
    document.documentElement.dataset.theme = 'print';
    draw();
    for (const [id, chart] of Object.entries(charts)) chart.resize(680, id in forests ? forestHeight(id) : {bars: barsHeight, worth: worthHeight()}[id] ?? 240);
  });
  addEventListener('afterprint', () => {
    delete document.documentElement.dataset.theme;
    draw();
  });
  draw();
})();
