"use strict";
(async () => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  $("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  for (const box of document.querySelectorAll("[data-switch]"))
    box.addEventListener("click", (event) => {
      const way = event.target.closest("button")?.dataset.way;
      if (!way) return;
      for (const each of box.querySelectorAll("button[data-way]")) each.setAttribute("aria-pressed", String(each.dataset.way === way));
      for (const each of box.querySelectorAll("div[data-way]")) each.hidden = each.dataset.way !== way;
    });

  // The data: JSON, deflated, in base64. Everything in it is put into the page as text, never as markup.
  const bytes = Uint8Array.from(atob($("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = JSON.parse(await new Response(stream).text());
  const text = (number) => (number === null || number === undefined ? "" : data.texts[number]);
  const items = data.items;
  const place = new Map(items.map((item, at) => [item.id, at]));
  const scorers = new Map(data.scorers.map((each) => [each.n, each]));
  const shownText = (value) =>
    String(value).replace(/\r\n/g, "\n").replace(/[\x00-\x08\x0b-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0))).replace(/[\x7f-\x9f]/g, "\ufffd");

  // el("p.dim", {title: ""}, "text", node, …)
  const el = (what, attributes, ...parts) => {
    const [name, ...classes] = what.split(".");
    const made = document.createElement(name);
    if (classes.length) made.className = classes.join(" ");
    for (const [key, value] of Object.entries(attributes ?? {})) if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
    made.append(...parts.flat().filter((part) => part !== null && part !== undefined && part !== "").map((part) => (part instanceof Node ? part : shownText(part))));
    return made;
  };
  const svg = (name, attributes, ...parts) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...parts);
    return made;
  };
  const two = (value) => (value === null ? "–" : value.toFixed(2));
  const readable = (name) => name.replaceAll("_", " ");

  // --- the list ----------------------------------------------------------------------------------------------------
  const rows = [...$("rows").rows];
  const searched = items.map((item) => {
    const parts = [item.id, text(item.q), text(item.ref), text(item.out), ...Object.entries(item.meta).map(([k, v]) => k + "=" + v)];
    for (const score of item.s) {
      parts.push(score.n, score.st);
      for (const f of score.f) if (f.t !== null) parts.push(text(f.t));
    }
    for (const held of Object.values(item.sets)) for (const context of held) parts.push(context[1] ?? "", text(context[0]));
    return parts.join("\n").toLowerCase();
  });
  const moved = (item, way) =>
    Object.entries(item.change).some(([name, change]) => change * way * (scorers.get(name)?.less ? -1 : 1) > 0);
  const fits = {
    "": () => true,
    missing: (item) => item.miss > 0,
    low: (item) => item.s.some((s) => s.x !== null && (scorers.get(s.n)?.less ? 1 - s.x : s.x) < 0.5),
    worse: (item) => moved(item, -1),
    better: (item) => moved(item, 1),
    unscored: (item) => item.s.some((s) => s.x === null),
  };
  const orders = {
    low: (a, b) => a - b, // the rows come in this order
    at: (a, b) => items[a].at - items[b].at,
    ms: (a, b) => (items[b].ms ?? -1) - (items[a].ms ?? -1) || a - b,
    cost: (a, b) => (items[b].cost ?? -1) - (items[a].cost ?? -1) || a - b,
    miss: (a, b) => items[b].miss - items[a].miss || a - b,
  };
  let listed = items.map((_, at) => at);
  let ordered = "low";
  const list = () => {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const fit = fits[$("filter").value];
    const order = $("order").value;
    const all = items.map((_, at) => at).sort(orders[order]);
    listed = all.filter((at) => fit(items[at]) && words.every((word) => searched[at].includes(word)));
    const kept = new Set(listed);
    rows.forEach((row, at) => (row.hidden = !kept.has(at)));
    if (order !== ordered) $("rows").append(...all.map((at) => rows[at]));
    ordered = order;
    $("shown").textContent = `${listed.length} of ${items.length}`;
    $("none").hidden = listed.length > 0;
  };
  $("filters").addEventListener("input", list);
  $("filters").addEventListener("submit", (event) => event.preventDefault());
  $("clear").addEventListener("click", () => { $("search").value = ""; $("filter").value = ""; list(); $("search").focus(); });

  // --- one item ----------------------------------------------------------------------------------------------------
  // `whole` with the places of `marks` ([text, class, title]) marked; where two overlap, the earlier one stands.
  const marked = (whole, marks) => {
    const found = [];
    for (const [part, kind, title] of marks) {
      const words = part.trim().split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
      if (!words.length || words.length > 400) continue;
      const hit = new RegExp(words.join("\\s+")).exec(whole);
      if (hit) found.push([hit.index, hit.index + hit[0].length, kind, title]);
    }
    found.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    const out = document.createDocumentFragment();
    let at = 0;
    for (const [start, end, kind, title] of found) {
      if (start < at) continue;
      out.append(shownText(whole.slice(at, start)), el(kind ? "mark." + kind : "mark", { title }, whole.slice(start, end)));
      at = end;
    }
    out.append(shownText(whole.slice(at)));
    return out;
  };
  const tone = (f) => (f.good === null ? "" : f.good ? "yes" : "no");
  const sign = (f) => (f.good === null ? "?" : f.good ? "✓" : "✗");

  const claimLine = (f) =>
    el("li" + (tone(f) ? "." + tone(f) : ""), null,
      el("p", { dir: "auto" }, el("span.v", null, `${sign(f)} ${f.word} `), text(f.t)),
      f.why !== null && text(f.why) ? el("p.ev", { dir: "auto" }, text(f.why)) : null,
      ...f.quo.map((quote, at) => quote ? el("blockquote", { dir: "auto" }, f.src[at] ? `context #${f.src[at]}: ` : "", `“${quote}”`, f.ok === false ? " (unverified: not found in the contexts)" : "") : null),
      ...f.warn.map((warning) => el("p.ev", { dir: "auto" }, "! " + warning)));

  // The first line says the sum; the rest, which the lists below say better, is folded.
  const reason = (why) => {
    const [first, ...rest] = why.split("\n");
    return [
      first ? el("p.small", { dir: "auto" }, first) : null,
      rest.length ? el("details", null, el("summary", null, "The whole reason"), el("p.small.text", { dir: "auto" }, rest.join("\n"))) : null,
    ];
  };

  const scoreCard = (score) => {
    const scorer = scorers.get(score.n);
    const of = scorer && scorer.scale !== 1 ? `of ${scorer.scale}` : "";
    return el("div.card", { "data-score": score.n },
      el("h2", null, el("bdi", null, readable(score.n))),
      el("p.big", null, el("span.number", null, score.v === null ? "–" : two(score.v)), of ? el("span.of", null, of) : null, score.st === "ok" ? null : el("span.tag", null, readable(score.st))),
      ...reason(text(score.why)),
      score.error !== null ? el("p.note.bad", { dir: "auto" }, text(score.error)) : null);
  };

  // The judge's replies of this run, word for word, and the verdicts that were read from them or remembered.
  const verdict = (f) => {
    const told = { [f.k === "context" ? "context" : "claim"]: f.r, verdict: f.word };
    if (f.quo.length) Object.assign(told, { quotes: f.quo, contexts: f.src });
    if (f.why !== null && text(f.why)) told.why = text(f.why);
    if (f.conf !== null) told.confidence = Math.round(f.conf * 1000) / 1000;
    if (f.warn.length) told.warnings = f.warn;
    if (f.mem) told.remembered = true;
    return JSON.stringify(told);
  };
  const source = (score) => {
    if (data.hashed) return "This run keeps no words of the judge (store_text: hash): only what was decided.";
    if (!score.asked && !score.calls.length) return "No model was asked: this judge writes no reply. These are its verdicts and its explanations.";
    const known = score.f.filter((f) => f.mem).length;
    const from = `${known} of ${score.f.length} ${known === 1 ? "was" : "were"} remembered from an earlier reply`;
    if (known && !score.calls.length) return `Nothing was asked for this score: ${from}. These are the verdicts that were read from it.`;
    const told = spoken(score) ? "These are the verdicts that count." : "A reply that could be used is kept here as the verdicts that were read from it, not word for word.";
    return known ? `${told} ${from}.` : told;
  };
  const spoken = (score) => score.calls.some((call) => call.reply !== null || call.left);
  const replies = (score, elsewhere) => {
    const block = (label, whole) => el("pre", { tabindex: 0, role: "region", "aria-label": `${readable(score.n)}: ${label}`, dir: "auto" }, whole);
    const calls = score.calls.map((call, at) => {
      const cost = call.cost_usd === null ? "cost unknown" : "$" + call.cost_usd.toFixed(5);
      const tokens = call.prompt_tokens === null ? "" : `, ${call.prompt_tokens} + ${call.completion_tokens ?? "?"} tokens`;
      const ms = call.latency_ms === null ? "" : `, ${Math.round(call.latency_ms)} ms`;
      const reply = text(call.reply);
      return el("li", null, `${readable(call.task)}: ${call.outcome} (${call.model}, ${call.mode}${tokens}${ms}, ${cost})`,
        call.left ? el("p.dim", null, "Its reply is in the history; there was no room for it here: ", el("code", null, elsewhere)) : null,
        reply ? block(`reply ${at + 1}`, reply) : call.reply !== null ? el("p.dim", null, "The reply was empty.") : null);
    });
    const read = score.judged && score.f.length;
    const said = spoken(score);
    const raw = score.raw !== null && !said;
    if (!raw && !read && !calls.length) return null;
    const verdicts = read ? [el("p.small.dim", null, source(score)), block("verdicts", score.f.map(verdict).join("\n"))] : null;
    const asked = calls.length ? [el("p.small.dim", null, (calls.length === 1 ? "One call" : `${calls.length} calls`) + (said ? ", with what was replied, word for word:" : ":")), el("ul.small", null, ...calls)] : null;
    return el("details.card.fold", { "data-reply": score.n }, el("summary", null, `${readable(score.n)}: ${raw || read || said ? "the judge's reply" : "calls of the judge"}`),
      raw ? [el("p.small.dim", null, score.st === "ok" ? "Word for word:" : "The last reply, word for word; it could not be used:"), block("reply", text(score.raw))] : null,
      ...(said ? [asked, verdicts] : [verdicts, asked]).flat());
  };

  // May be higher than its box on a phone, and must then be scrolled by keyboard, too.
  const tall = (whole) => whole.length > 500 || whole.split("\n").length > 12;
  const contextBox = (context, rank, judged, quotes) => {
    const [number, id, value, repeats] = context;
    const whole = text(number);
    const said = judged.find((each) => each.f.good !== null) ?? judged[0];
    const kind = said ? tone(said.f) : "";
    return el("details.ctx" + (kind ? "." + kind : ""), { open: kind !== "no" && (kind === "yes" || quotes.length > 0), "data-rank": rank },
      el("summary", null,
        el("span.rank", null, "#" + rank),
        said ? el("span.v", null, `${sign(said.f)} ${said.f.word}`) : null,
        id !== null ? el("code", null, el("bdi", null, id)) : null,
        repeats ? el("span.tag", null, `repeats #${repeats}`) : null,
        value !== null ? el("span.dim.small", null, "retriever's score " + Number(value.toPrecision(4))) : null,
        el("span.peek", { dir: "auto" }, whole.slice(0, 120))),
      el("div.body", null,
        el("div.text", { dir: "auto", tabindex: tall(whole) ? 0 : null }, marked(whole, quotes)),
        ...judged.filter((each) => text(each.f.why)).map((each) => el("p.why", { dir: "auto" }, el("b", null, readable(each.n) + ": "), text(each.f.why)))));
  };

  const overTime = (item) => {
    const runs = data.time.runs;
    const of = data.time.of[item.id];
    if (!of || runs.length < 2) return null;
    const W = 520, H = 96, x = (at) => 14 + (W - 28) * (at / (runs.length - 1)), y = (v) => 10 + (1 - v) * (H - 36);
    const charts = Object.entries(of).map(([name, line]) => {
      const drawn = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "spark chart", role: "img", "aria-label": `${readable(name)} over ${runs.length} runs: ` + line.map((v) => two(v)).join(", ") });
      for (const v of [0, 1]) drawn.append(svg("line", { class: "grid", x1: 8, x2: W - 8, y1: y(v), y2: y(v) }));
      let path = "";
      line.forEach((v, at) => (path += v === null ? "" : `${path && line[at - 1] !== null ? "L" : "M"}${x(at).toFixed(1)} ${y(v).toFixed(1)}`));
      drawn.append(svg("path", { class: "line", d: path || "M0 0" }));
      line.forEach((v, at) => {
        if (v === null) return;
        const title = svg("title", {}, shownText(`${runs[at].v} ${runs[at].d}: ${two(v)}`));
        drawn.append(svg("g", { class: "mark" }, title, svg("circle", { cx: x(at).toFixed(1), cy: y(v).toFixed(1), r: 4.5 })));
      });
      const ends = [[0, "start"], [runs.length - 1, "end"]];
      for (const [at, anchor] of ends) drawn.append(svg("text", { x: x(at) + (at ? 6 : -6), y: H - 4, "text-anchor": anchor }, shownText(`${runs[at].v} · ${runs[at].d}`)));
      return el("div", null, el("h3.minor", null, readable(name), el("span.dim", null, "  0 to 1")), drawn);
    });
    return el("div.card", null, el("h2", null, "Over the last runs"), el("div.pair", null, ...charts));
  };

  const about = (item) => {
    const rows = Object.entries(item.meta).map(([key, value]) => el("div", null, el("dt", null, el("bdi", null, key)), el("dd", { dir: "auto" }, value)));
    if (item.ms !== null) rows.push(el("div", null, el("dt", null, "the target took"), el("dd", null, `${Math.round(item.ms)} ms`)));
    return rows.length ? el("div.card", null, el("h2", null, "About this item"), el("dl.facts.rows", null, ...rows)) : "";
  };

  const show = (at) => {
    const item = items[at];
    const claims = item.s.map((score) => [score, score.f.filter((f) => f.k !== "context")]).filter(([, own]) => own.length);
    const recall = claims.find(([, own]) => own[0].k === "claim")?.[1] ?? [];
    const sets = Object.entries(item.sets);
    const here = listed.indexOf(at);
    const near = (step) => { const next = listed[here + step]; return here < 0 || next === undefined ? null : "#item=" + encodeURIComponent(items[next].id); };
    const link = (href, label, key) => href ? el("a", { href, "aria-keyshortcuts": key }, label) : null;
    const heading = el("h1", { tabindex: -1, dir: "auto" }, text(item.q) || item.id);
    $("item").replaceChildren(
      el("div.bar2", null, el("a", { href: "#items", "aria-keyshortcuts": "Escape" }, "← All items"), el("span", null, link(near(-1), "‹ Previous", "k"), link(near(1), "Next ›", "j"))),
      el("p.id", null, el("bdi", null, item.id)), heading,
      item.ans ? "" : el("p.note", null, "Marked as not answerable from the corpus."),
      item.err !== null ? el("p.note.bad", { dir: "auto" }, el("b", null, "The target failed: "), text(item.err)) : "",
      el("div.scores", null, ...item.s.map(scoreCard)),
      item.ref !== null ? el("div.card", null, el("h2", null, "Reference"), el("p.text.answer", { dir: "auto" }, marked(text(item.ref), recall.map((f) => [text(f.t), tone(f), f.word]))),
        recall.length ? el("ul.claims", null, ...recall.map(claimLine)) : null) : "",
      ...claims.filter(([, own]) => own !== recall).map(([score, own]) => el("details.card", null, el("summary", null, `${readable(score.n)}: ${own.length} decided`), el("ul.claims", null, ...own.map(claimLine)))),
      item.out !== null ? el("div.card", null, el("h2", null, "Output of the target"), el("p.text.answer", { dir: "auto" }, text(item.out))) : "",
      ...sets.map(([name, held]) => {
        const on = item.s.filter((score) => score.set === name);
        return el("div", { class: "contexts" }, el("h2", null, `Contexts, best first `, el("span.dim.small", null, `${held.length} · ${name}`)),
          ...held.map((context, index) => {
            const rank = index + 1;
            const judged = on.flatMap((score) => score.f.filter((f) => f.k === "context" && f.r === rank).map((f) => ({ n: score.n, f })));
            const quotes = on.flatMap((score) => score.f.flatMap((f) => f.src.map((source, n) => (source === rank && f.quo[n] ? [f.quo[n], f.k === "claim" ? "yes" : "", f.t === null ? readable(score.n) : text(f.t)] : null)))).filter(Boolean);
            return contextBox(context, rank, judged, quotes);
          }));
      }),
      sets.length ? "" : el("p.note", null, "No contexts were retrieved."),
      overTime(item) ?? "",
      about(item),
      ...item.s.map((score) => replies(score, item.more) ?? ""));
    heading.focus({ preventScroll: true });
  };

  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // its address is not an item's, and would close the one that is open
    ($("item").hidden ? $("main") : $("item").querySelector("h1")).focus();
  });

  let last = null;
  let scrolled = 0;
  const route = () => {
    const wanted = /^#item=(.*)$/s.exec(location.hash);
    let id = null;
    try { id = wanted && decodeURIComponent(wanted[1]); } catch { id = wanted[1]; }
    const at = id === null ? undefined : place.get(id);
    const one = id !== null;
    if (one && $("item").hidden) scrolled = scrollY;
    $("main").hidden = one;
    $("item").hidden = !one;
    if (one) {
      if (at === undefined) $("item").replaceChildren(el("div.bar2", null, el("a", { href: "#items" }, "← All items")), el("h1", { tabindex: -1 }, "No such item"), el("p", { dir: "auto" }, `This report has no item “${id}”.`));
      else { show(at); last = at; }
      scrollTo(0, 0);
    } else if (last !== null) {
      const row = rows[last];
      if (location.hash === "#items") { scrollTo(0, scrolled); row?.querySelector("a")?.focus({ preventScroll: scrolled > 0 }); }
      else document.getElementById(location.hash.slice(1))?.scrollIntoView();
      last = null;
    }
  };
  addEventListener("hashchange", route);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === "/" && $("item").hidden) { event.preventDefault(); $("search").focus(); }
    if ($("item").hidden) return;
    if (event.key === "Escape") location.hash = "#items";
    const link = $("item").querySelector(`[aria-keyshortcuts="${event.key}"]`);
    if (link && /^[jk]$/.test(event.key)) link.click();
  });
  // Paper cannot be unfolded.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of folded) each.open = false; });
  list();
  route();
  root.dataset.ready = "yes";
})();
