"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const d = data.diagnosis;
  const view = data.view;
  const page = document.getElementById("page");

  // ---- building blocks: text only ever enters as text ----

  // Characters that hide or reorder text are shown by their code.
  const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
  const clean = (text) => String(text).replace(unsafe, (c) => "\\u{" + c.charCodeAt(0).toString(16) + "}");

  const add = (node, children) => {
    for (const child of children.flat(9)) {
      if (child === null || child === undefined || child === "") continue;
      node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
    }
    return node;
  };
  const make = (node, attributes, children) => {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined) node.setAttribute(key, clean(value));
    }
    return add(node, children);
  };
  const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    make(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  // ---- units ----

  const digits = (v) => (v < 9.995 ? v.toFixed(2) : v < 99.95 ? v.toFixed(1) : v.toFixed(0));
  const duration = (ns) => {
    if (ns === null || ns === undefined) return "unknown";
    if (ns < 0) return "-" + duration(-ns);
    if (ns < 1e3) return ns + " ns";
    if (ns < 999.5e3) return digits(ns / 1e3) + " \u00b5s";
    if (ns < 999.5e6) return digits(ns / 1e6) + " ms";
    if (ns < 60e9) return digits(ns / 1e9) + " s";
    const s = Math.round(ns / 1e9);
    return s < 3600 ? Math.floor(s / 60) + " m " + (s % 60) + " s" : Math.floor(s / 3600) + " h " + (Math.floor(s / 60) % 60) + " m";
  };
  const isEpoch = (ns) => ns >= 1e18;
  const time = (ns) => {
    if (ns === null || ns === undefined) return "unknown";
    if (!isEpoch(ns)) return "t+" + (ns / 1e9).toFixed(6) + " s";
    return new Date(ns / 1e6).toISOString().replace("T", " ").replace("Z", "");
  };
  const clock = (ns) => (ns !== null && ns !== undefined && isEpoch(ns) ? time(ns).slice(11) : time(ns));
  const count = (n) => (n === null || n === undefined ? "unknown" : n.toLocaleString("en-US"));
  const plural = (n, noun) => count(n) + " " + noun + (n === 1 ? "" : "s");
  const abs = (relative) => view.base_ns + relative;

  // ---- verdict and findings ----

  // "[E3]" in a text becomes a link to that piece of evidence.
  const known = new Set(d.findings.flatMap((f) => f.evidence.map((e) => e.id)));
  const linked = (text) => String(text).split(/(\[[A-Z]\d+\])/).map((part) => {
    const id = part.slice(1, -1);
    return known.has(id) ? el("a", { class: "tag", href: "#" + id }, part) : part;
  });

  const titles = { normal: "Nothing abnormal", abnormal: "Abnormal", cannot_tell: "Cannot tell" };

  const header = () => {
    const v = d.verdict;
    const input = d.input;
    const missing = v.missing.filter((m) => !v.summary.includes(m));
    const facts = [
      ["ranks", input.ranks.length ? input.ranks.length : "none named"], ["spans", count(input.spans)],
      ["steps", count(input.steps)], ["log records", count(input.log_records)],
      ["covers", input.begin_ns === null ? "no time" : duration(input.end_ns - input.begin_ns)],
      ["from", input.begin_ns === null ? "unknown" : time(input.begin_ns) + (isEpoch(input.begin_ns) ? " UTC" : "")],
    ];
    if (input.clock.method) {
      facts.push(["clocks of the ranks", input.clock.method + (input.clock.error_ns ? " \u00b1 " + duration(input.clock.error_ns) : "")]);
    }
    return [
      el("div", { class: "brand" }, el("b", {}, "TELLER"), el("span", {}, d.teller.version)),
      el("section", { class: "card verdict " + v.status, id: "verdict" },
        el("span", { class: "badge " + v.status }, titles[v.status]),
        !v.confidence ? null : el("span", { class: "soft small" }, " confidence " + v.confidence.toFixed(2)),
        v.class === null || v.class === "UNKNOWN" && !d.findings.length ? null : el("h1", {}, v.class),
        el("p", { class: "lead" }, linked(v.summary)),
        v.status === "abnormal" && v.first_action ? el("div", { class: "first" }, el("b", {}, "Do first"), v.first_action) : null,
        missing.length ? el("div", { class: "first" }, el("b", {}, "Capture next"), missing.map((m) => el("div", {}, m))) : null,
        el("dl", { class: "facts" }, facts.map(([k, t]) => el("div", {}, el("dt", {}, k), el("dd", {}, t))))),
    ];
  };

  const stepText = (s) => (s.rank === null ? "" : "rank " + s.rank + " ") + "step " + s.index + (s.name ? " \u201c" + s.name + "\u201d" : "") +
    (s.begin_ns === null || s.end_ns === null ? "" : ", " + duration(s.end_ns - s.begin_ns) + " at " + clock(s.begin_ns));

  const filePath = (index) => (index === null ? null : d.input.files[index].path);

  const evidenceItem = (e) => el("li", { id: e.id },
    el("span", { class: "tag" }, e.id),
    el("div", {}, el("div", {}, e.text),
      el("div", { class: "soft small mono" }, [e.at_ns === null ? null : clock(e.at_ns), filePath(e.file), e.ref].filter(Boolean).join("  "))));

  const findingCard = (f) => {
    const c = f.culprit;
    const rows = [];
    const row = (label, value) => { if (value) rows.push(el("dt", {}, label), el("dd", {}, value)); };
    const who = [c.rank === null ? null : "rank " + c.rank, c.process && "process " + c.process, c.thread && "thread " + c.thread,
      c.layer && "layer " + c.layer].filter(Boolean).join(", ");
    row("culprit", el("b", {}, who || "not told by the evidence"));
    row("operator", c.op && el("code", {}, c.op));
    row("module", c.module && el("code", {}, c.module));
    row("log line", c.log_record && el("code", {}, c.log_record));
    if (f.onset_ns !== null) {
      row("when", time(f.onset_ns) + (f.end_ns > f.onset_ns ? " to " + clock(f.end_ns) + " (" + duration(f.end_ns - f.onset_ns) + ")" : ""));
    }
    row("steps", f.steps.length ? [f.steps.slice(0, 4).map((s) => el("div", {}, stepText(s))),
      f.steps.length > 4 ? el("div", { class: "soft" }, "and " + (f.steps.length - 4) + " more") : null] : null);
    const cost = [f.cost_ns ? duration(f.cost_ns) + " lost" : null, f.without_it && f.without_it.observed_ns !== null && f.without_it.step_ns !== null
      ? "a step takes " + duration(f.without_it.observed_ns) + " and would take " + duration(f.without_it.step_ns) + " without it" : null];
    row("cost", cost.filter(Boolean).join("; "));
    row("victims", f.victims.length ? f.victims.map((v) => el("div", {}, (v.rank === null ? "" : "rank " + v.rank + ": ") + v.what)) : null);
    row("or", f.alternatives.map((a) => a.class + " (" + a.p.toFixed(2) + ")").join(", "));
    if (f.first_action !== d.verdict.first_action) row("do first", f.first_action);
    return el("article", { class: "card finding", id: f.id },
      el("header", {}, el("h3", {}, f.id + "  " + f.class),
        el("span", { class: "soft small" }, "score " + f.score.toFixed(2) + ", false alarm " + Number(f.false_alarm_probability.toPrecision(2)) + " a run")),
      el("dl", { class: "fields" }, rows),
      f.explanation && f.explanation !== d.verdict.summary ? el("p", {}, linked(f.explanation)) : null,
      f.evidence.length ? el("ul", { class: "evidence" }, f.evidence.map(evidenceItem)) : null);
  };

  const findings = () => d.findings.length === 0 ? null : [
    el("h2", {}, "Findings"), d.findings.map(findingCard),
    d.findings_total > d.findings.length ? el("p", { class: "soft" }, (d.findings_total - d.findings.length) + " more findings are not shown.") : null,
  ];

  // No verdict: what whoever knows that something was slow looks at first.
  const suspects = () => !d.suspects.length ? null : [
    el("h2", { id: "suspects" }, "Not proved, least usual"),
    el("p", { class: "soft" }, (d.findings.length ? "Besides the findings. " : "If something was slow all the same, look here first. ") +
      "In every run something is least usual: nobody here is accused."),
    el("ul", { class: "card notes" }, d.suspects.map((s) => el("li", {}, s.text,
      s.steps.length && s.steps[0].begin_ns !== null ? el("span", { class: "soft small" }, "  " + clock(s.steps[0].begin_ns)) : null)))];

  const notes = () => d.notes.length === 0 ? null : [
    el("h2", {}, "Seen, and no fault"),
    el("ul", { class: "card notes" }, d.notes.map((n) => el("li", {}, n.text,
      n.begin_ns === null ? null : el("span", { class: "soft small" }, "  " + clock(n.begin_ns)))))];

  const notGiven = () => d.not_given.length === 0 ? null : [
    el("h2", {}, "Not given, and what it costs"),
    el("ul", { class: "card notes" }, d.not_given.map((n) => el("li", {}, n.input, el("span", { class: "soft" }, ": " + n.cost))))];

  // ---- timeline ----

  const kindClass = { python: "python", op: "op", annotation: "annotation", "gpu annotation": "annotation", runtime: "runtime",
    driver: "runtime", kernel: "gpu", copy: "gpu", memset: "gpu" };
  const classOf = (kind) => "k-" + (kindClass[kind] || "other");
  const legendItems = [["python", "Python"], ["op", "operator"], ["annotation", "annotation"], ["runtime", "CUDA API"],
    ["gpu", "GPU work"], ["other", "other"], ["proof", "evidence"]];

  const niceStep = (span, wanted) => {
    const raw = span / wanted;
    const power = Math.pow(10, Math.floor(Math.log10(raw)));
    return [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw);
  };

  const timeline = () => {
    const t = view.timeline;
    if (!t) return null;
    const focus = view.focus && view.focus.step;
    const rowHeight = 17, gutter = 168, width = 1120, top = 26;
    let from = t.begin, to = t.end;
    const pad = (to - from) * 0.02;
    const home = [from - pad, to + pad];
    [from, to] = home;
    const box = el("div", { id: "timeline" });
    const detail = el("div", { class: "detail", "aria-live": "polite" }, "Click a span for its details; drag to move, Ctrl and wheel to zoom.");
    const height = t.lanes.reduce((sum, lane) => sum + lane.rows * rowHeight + 12, top) + 22;
    const x = (at) => gutter + (at - from) / (to - from) * (width - gutter);

    const showSpan = (lane, s) => {
      const marks = s.slice(5);
      detail.replaceChildren();
      add(detail, [el("b", { class: "mono" }, view.names[s[3]]), el("br"),
        lane.process + ", " + lane.track + "; " + s[4] + "; " + duration(s[1]) + " from " + clock(abs(s[0])) +
        (focus ? " (" + (s[0] < 0 ? "" : "+") + duration(s[0]) + " after the step's begin)" : ""),
        marks.length ? [" ", marks.map((m) => el("a", { class: "tag", href: "#" + m }, "[" + m + "]"))] : null]);
    };

    const drawSpan = (lane, s, y) => {
      const left = Math.max(x(s[0]), gutter), right = Math.min(x(s[0] + s[1]), width);
      if (right < gutter || left > width) return null;
      const w = right - left;
      const proof = s.length > 5;
      if (w < 0.25 && !proof) return null;
      const name = view.names[s[3]];
      const rect = svg("rect", { class: "span " + classOf(s[4]) + (proof ? " proof" : ""), x: left.toFixed(2), y: y + s[2] * rowHeight,
        width: Math.max(w, proof ? 2 : 0.6).toFixed(2), height: rowHeight - 2, rx: w > 6 ? 2 : 0 },
      svg("title", {}, name + "\n" + duration(s[1])));
      rect.addEventListener("click", () => showSpan(lane, s));
      const room = Math.floor((w - 6) / 6.7);
      const label = room >= 4 ? svg("text", { x: (left + 4).toFixed(2), y: y + s[2] * rowHeight + 11.5 },
        name.length > room ? name.slice(0, room - 1) + "\u2026" : name) : null;
      return [rect, label];
    };

    const draw = () => {
      const root = svg("svg", { viewBox: "0 0 " + width + " " + height, role: "img",
        "aria-label": "Timeline of the step across ranks, " + t.lanes.length + " lanes" });
      if (focus) {
        const a = Math.max(x(focus.begin), gutter), b = Math.min(x(focus.end), width);
        if (b > a) add(root, [svg("rect", { class: "stepmark", x: a, y: top - 6, width: b - a, height: height - top - 10 })]);
      }
      const tick = niceStep(to - from, 8);
      for (let at = Math.ceil(from / tick) * tick; at <= to; at += tick) {
        add(root, [svg("line", { class: "grid", x1: x(at), x2: x(at), y1: top - 6, y2: height - 16 }),
          svg("text", { class: "tick", x: x(at), y: 13, "text-anchor": "middle" }, Math.abs(at) < tick / 2 ? "0" : duration(Math.round(at)))]);
      }
      let y = top, process = null;
      for (const lane of t.lanes) {
        if (lane.process !== process) add(root, [svg("line", { class: "grid", x1: 0, x2: width, y1: y - 6, y2: y - 6 })]);
        const fit = (text, n) => (text.length > n ? text.slice(0, n - 1) + "\u2026" : text);
        const fresh = lane.process !== process;
        add(root, [fresh ? svg("text", { class: "lane", x: 0, y: y + 11 }, fit(lane.process, 24)) : null,
          fresh && lane.rows < 2 ? null : svg("text", { class: "sub", x: 0, y: y + (fresh ? 26 : 11) }, fit(lane.track, 26)),
          lane.spans.map((s) => drawSpan(lane, s, y))]);
        process = lane.process;
        y += lane.rows * rowHeight + 12;
      }
      for (const log of view.logs.records) {
        if (log.at === null || log.at < from || log.at > to) continue;
        const dot = svg("circle", { class: "log-" + levelClass(log.level), cx: x(log.at), cy: height - 9, r: log.evidence.length ? 5 : 3.5 },
          svg("title", {}, log.message.slice(0, 300)));
        add(root, [dot]);
      }
      add(root, [svg("text", { class: "sub", x: 0, y: height - 5 }, "log lines")]);
      box.replaceChildren(root);
    };

    const zoom = (factor, at) => {
      const middle = at === undefined ? (from + to) / 2 : at;
      const span = Math.min((to - from) * factor, (home[1] - home[0]) * 4);
      if (span < 200) return;
      const part = (middle - from) / (to - from);
      from = middle - span * part;
      to = from + span;
      draw();
    };
    const move = (part) => { const by = (to - from) * part; from += by; to += by; draw(); };
    const atPointer = (event) => {
      const r = box.getBoundingClientRect();
      return from + ((event.clientX - r.left) / r.width * width - gutter) / (width - gutter) * (to - from);
    };
    box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, atPointer(event));
    }, { passive: false });
    let drag = null;
    box.addEventListener("pointerdown", (event) => { drag = { at: event.clientX, from, to }; });
    window.addEventListener("pointerup", () => { drag = null; });
    window.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const by = (drag.at - event.clientX) / box.getBoundingClientRect().width * width / (width - gutter) * (drag.to - drag.from);
      if (Math.abs(drag.at - event.clientX) < 4) return;
      from = drag.from + by;
      to = drag.to + by;
      draw();
    });
    const button = (text, label, act) => {
      const b = el("button", { type: "button", "aria-label": label }, text);
      b.addEventListener("click", act);
      return b;
    };
    draw();
    const title = focus ? "Step " + focus.index + " of " + focus.process + (focus.name ? " (" + focus.name + ")" : "") : "Time of the finding";
    return [el("h2", {}, "Timeline"),
      el("section", { class: "card" },
        el("div", { class: "bar" }, el("h3", {}, title),
          focus ? el("span", { class: "soft small" }, duration(focus.end - focus.begin) + (focus.gap > 0 ? ", gap before it " + duration(focus.gap) : "")) : null,
          el("span", { class: "grow" }),
          button("\u2212", "Zoom out", () => zoom(1.6)), button("+", "Zoom in", () => zoom(0.625)),
          button("\u2190", "Earlier", () => move(-0.3)), button("\u2192", "Later", () => move(0.3)),
          button("Reset", "Show the whole step", () => { [from, to] = home; draw(); })),
        el("div", { class: "legend" }, legendItems.map(([k, text]) => el("span", {}, el("i", { class: "k-" + k }), text))),
        box, detail,
        t.hidden_spans || t.hidden_lanes ? el("p", { class: "soft small" }, plural(t.hidden_spans, "shorter or deeper span") + " and " +
          plural(t.hidden_lanes, "quieter lane") + " are not drawn.") : null)];
  };

  // ---- step durations ----

  const steps = () => {
    const series = view.steps.series;
    if (!series.length) return null;
    const points = series.flatMap((s) => s.points);
    const width = 1120, height = 250, left = 74, bottom = 28, top = 12;
    const begin = Math.min(...points.map((p) => p[1])), end = Math.max(...points.map((p) => p[1] + p[2]));
    const longest = Math.max(...points.map((p) => p[2]), 1);
    const sorted = points.map((p) => p[2]).sort((a, b) => a - b);
    const median = Math.max(sorted[Math.floor(sorted.length / 2)], 1);
    const log = longest / median > 20;
    const low = log ? Math.max(sorted.find((v) => v > 0) || 1, longest / 1e6) : 0;
    const scale = (v) => log ? Math.log(Math.max(v, low) / low) / Math.log(longest / low || Math.E) : v / longest;
    const x = (at) => left + (at - begin) / Math.max(end - begin, 1) * (width - left - 12);
    const y = (v) => height - bottom - scale(v) * (height - bottom - top - 8);
    const root = svg("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": "Duration of every step over time" });
    const levels = [];
    if (log) for (let v = Math.pow(10, Math.ceil(Math.log10(low))); v <= longest; v *= 10) levels.push(v);
    else for (let v = niceStep(longest, 5), at = 0; at <= longest; at += v) levels.push(at);
    for (const v of levels) {
      add(root, [svg("line", { class: "grid", x1: left, x2: width - 10, y1: y(v), y2: y(v) }),
        svg("text", { class: "tick", x: left - 8, y: y(v) + 4, "text-anchor": "end" }, v === 0 ? "0" : duration(Math.round(v)))]);
    }
    const tick = niceStep(Math.max(end - begin, 1), 8);
    for (let at = 0; at <= end - begin; at += tick) {
      add(root, [svg("text", { class: "tick", x: x(begin + at), y: height - 8, "text-anchor": "middle" }, at === 0 ? clock(abs(begin)).slice(0, 12) : "+" + duration(Math.round(at)))]);
    }
    series.forEach((s, i) => {
      for (const p of s.points) {
        const abnormal = p[5] & 1, observer = p[5] & 2;
        add(root, [svg("circle", { class: "s" + (i % 8) + (abnormal ? " abnormal" : "") + (observer && !abnormal ? " observer" : ""),
          cx: x(p[1]).toFixed(1), cy: y(p[2]).toFixed(1), r: abnormal ? 5 : 3.2 },
        svg("title", {}, s.process + " step " + p[0] + " (" + p[4] + "): " + duration(p[2]) + (p[3] >= 0 ? ", gap before " + duration(p[3]) : "") +
          (abnormal ? ", abnormal" : "") + (observer ? ", touched by the profiler" : "")))]);
      }
    });
    return [el("h2", {}, "Step durations"),
      el("section", { class: "card", id: "steps" },
        el("div", { class: "legend" }, series.map((s, i) => el("span", {}, el("i", { class: "s" + (i % 8) }), s.process)),
          el("span", {}, el("i", { class: "k-proof" }), "abnormal"), log ? el("span", {}, "logarithmic scale") : null),
        root,
        view.steps.every > 1 ? el("p", { class: "soft small" }, "The longest of every " + view.steps.every + " steps is drawn, and every abnormal one.") : null)];
  };

  // ---- call tree ----

  const tree = () => {
    const t = view.tree;
    if (!t || !t.nodes.length) return null;
    const children = t.nodes.map(() => []);
    const tops = [];
    const open = new Set();
    t.nodes.forEach((n, i) => {
      if (n[0] < 0) tops.push(i);
      else children[n[0]].push(i);
      if (n.length > 8) for (let up = n[0]; up >= 0; up = t.nodes[up][0]) open.add(up);
    });
    if (!open.size) {
      for (let at = tops.slice().sort((a, b) => t.nodes[b][4] - t.nodes[a][4])[0]; at !== undefined;
        at = children[at].slice().sort((a, b) => t.nodes[b][4] - t.nodes[a][4])[0]) open.add(at);
    }
    const line = (tag, n, depth) => {
      const name = el("span", { class: "name" }, n[1], n.slice(8).map((id) => el("a", { class: "tag", href: "#" + id }, " [" + id + "]")));
      name.style.paddingLeft = depth * 16 + "px";
      return el(tag, { class: "row" + (n.length > 8 ? " hot" : "") },
        el("span", { class: "num" }, duration(n[4])), el("span", { class: "num soft" }, n[2] === "lane" ? "" : duration(n[5])),
        el("span", { class: "times" }, "\u00d7" + count(n[3])), name);
    };
    const build = (i, depth) => {
      const n = t.nodes[i];
      if (!children[i].length) return line("div", n, depth);
      const box = el("div");
      const details = el("details", open.has(i) ? { open: "" } : {}, line("summary", n, depth), box);
      const fill = () => { if (!box.firstChild) add(box, children[i].map((child) => build(child, depth + 1))); };
      if (open.has(i)) fill();
      else details.addEventListener("toggle", fill, { once: true });
      return details;
    };
    return [el("h2", {}, "Call tree of the step"),
      el("section", { class: "card tree", id: "tree" },
        el("div", { class: "heads" }, el("span", { class: "num" }, "total"), el("span", { class: "num" }, "self"),
          el("span", { class: "times" }, "calls"), el("span", {}, "Python, operators, CUDA API, GPU work")),
        tops.map((top) => build(top, 0)),
        t.hidden_calls ? el("p", { class: "soft small" }, plural(t.hidden_calls, "short call") + " left out.") : null)];
  };

  // ---- logs and tables ----

  const levelClass = (level) => (level === "error" || level === "fatal" ? "error" : level === "warning" ? "warning" : "info");

  // Tracebacks open on demand; their first and last line say the most.
  const message = (r) => {
    const lines = r.message.split("\n");
    if (lines.length <= 8) return r.message;
    return el("details", {}, el("summary", {}, lines[0] + "\n  \u2026 " + (lines.length - 2) + " lines \u2026\n" + (r.exception || lines[lines.length - 1])),
      lines.slice(1).join("\n"));
  };

  const logs = () => {
    const records = view.logs.records;
    if (!records.length) return null;
    return [el("h2", {}, "Log lines around it"),
      el("section", { class: "card scroll logs", id: "logs" },
        el("table", {}, el("thead", {}, el("tr", {}, ["time", "level", "from", "message"].map((h) => el("th", { scope: "col" }, h)))),
          el("tbody", {}, records.map((r) => el("tr", { class: levelClass(r.level) + (r.evidence.length ? " proof" : "") },
            el("td", { class: "nowrap mono" }, r.at === null ? "" : (r.inferred ? "~" : "") + clock(abs(r.at))),
            el("td", { class: "level" }, r.level === "unknown" ? "" : r.level),
            el("td", {}, [r.process, r.rank === null ? null : "rank " + r.rank].filter(Boolean).join(" "),
              el("div", { class: "soft small" }, (filePath(r.file) || "") + ":" + r.line)),
            el("td", { class: "msg" }, r.evidence.map((id) => el("a", { class: "tag", href: "#" + id }, "[" + id + "] ")), message(r)))))),
        view.logs.hidden ? el("p", { class: "soft small" }, plural(view.logs.hidden, "more line") + " near it are not shown.") : null)];
  };

  const table = (caption, heads, rows) => el("div", { class: "card scroll" }, el("table", {}, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads.map(([h, c]) => el("th", { scope: "col", class: c }, h)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) => el("td", { class: heads[i][1] }, cell)))))));

  const inputs = () => [
    el("h2", {}, "Input"),
    table("Files that were read", [["file", ""], ["kind", ""], ["rank", "num"], ["spans", "num"], ["log records", "num"], ["remarks", ""]],
      d.input.files.map((f) => [el("span", { class: "mono" }, f.path), f.kind, f.rank === null ? "" : f.rank, count(f.spans), count(f.log_records), f.note || ""]))];

  const diagnostics = () => d.diagnostics.length === 0 ? null : [
    el("h2", {}, "About the input"),
    table("What was odd, repaired or lost while reading", [["severity", ""], ["what", ""], ["count", "num"], ["file", ""]],
      d.diagnostics.map((r) => [r.severity, [el("div", {}, r.text), el("div", { class: "soft small mono" }, r.code + (r.at ? "  " + r.at : ""))],
        count(r.count), filePath(r.file) || ""]))];

  try {
    add(page, [header(), findings(), timeline(), steps(), tree(), logs(), suspects(), notes(), notGiven(), diagnostics(), inputs(),
      el("footer", {}, "Written by TELLER " + d.teller.version + ". This page is complete in itself and asks no network for anything.")]);
    document.documentElement.dataset.rendered = "yes";
  } catch (error) {
    document.documentElement.dataset.rendered = "failed";
    page.replaceChildren(el("p", {}, "This page could not be drawn: " + error.message));
  }
})();
