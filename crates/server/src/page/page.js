// The operators' page. What an agent or a caller said is put in as text, never as HTML. The token stands in this
// module's memory and nowhere else: no cookie carries it, so no other page can send it, and no storage keeps it, so
// nobody finds it who opens the browser later.

const POLL = 3000;
const READ_LIMIT = 10_000;
// A decision is answered when the agent's first words about it are kept.
const DECIDE_LIMIT = 30_000;

const named = document.documentElement.dataset.operators === 'named';
const at = (id) => document.getElementById(id);
/** What is shown, by task and the moment since which it waits. */
const shown = new Map();
let token = null;
let next;

/** Makes a call of this agent. Paths are relative, so that a proxy may serve the agent below a path of its own. */
async function call(path, limit, body) {
  const headers = {};
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (body) headers['Content-Type'] = 'application/json';
  const answer = await fetch(path, {
    method: body ? 'POST' : 'GET',
    headers,
    body: body && JSON.stringify(body),
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    signal: AbortSignal.timeout(limit),
  });
  return { status: answer.status, said: await answer.json().catch(() => ({})) };
}

/** Text in which nothing acts unseen: control characters, and those that turn the direction of what follows. */
const plain = (text) =>
  String(text ?? '').replace(/(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);

function tell(words, good = true) {
  at('outcome').textContent = words;
  at('outcome').dataset.kind = good ? 'good' : 'bad';
}

/** For what takes away the place where the keyboard was. */
function tellAndFocus(words, good) {
  tell(words, good);
  at('outcome').focus();
}

function since(time) {
  const moment = new Date(time);
  if (Number.isNaN(moment.getTime())) return plain(time);
  const minutes = Math.max(0, Math.round((Date.now() - moment) / 60_000));
  const ago = minutes < 60 ? `${minutes} min` : minutes < 2880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} days`;
  return `${moment.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })} (${minutes === 0 ? 'just now' : ago})`;
}

/** What is to be decided, in one line. */
function title({ taskId, about = [] }) {
  const value = (name) => about.find((one) => one.name === name)?.value;
  const [action, build, environment] = ['action', 'build', 'environment'].map(value);
  if (!build || !environment) return plain(`Task ${taskId}`);
  return plain(action === 'rollback' ? `Take ${environment} back to build ${build}` : `Deploy build ${build} to ${environment}`);
}

function row(list, name, value, digest) {
  const [dt, dd] = [document.createElement('dt'), document.createElement('dd')];
  dt.textContent = plain(name);
  dd.textContent = plain(value);
  if (digest) dd.className = 'digest';
  list.append(dt, dd);
  return dd;
}

function make(waiting) {
  const item = at('one').content.firstElementChild.cloneNode(true);
  const part = (selector) => item.querySelector(selector);
  const what = title(waiting);
  part('h3').textContent = what;
  part('.words').textContent = plain(waiting.text);
  const facts = part('dl');
  if (named) row(facts, 'asked by', waiting.asker ?? 'somebody without a name');
  const time = row(facts, 'waits since', '');
  for (const { name, value } of waiting.about ?? []) {
    if (name !== 'asked by' && name !== 'action') row(facts, name, value, /^[0-9a-f]{64}$/.test(value));
  }
  row(facts, 'task', waiting.taskId);
  const [approve, refuse, why] = [part('.approve'), part('.refuse'), part('.why')];
  const [first, reason] = [approve.parentElement, why.elements.reason];
  approve.setAttribute('aria-label', `Approve: ${what}`);
  refuse.setAttribute('aria-label', `Refuse: ${what}`);
  const open = (is) => {
    [why.hidden, first.hidden] = [!is, is];
    refuse.setAttribute('aria-expanded', String(is));
    (is ? reason : refuse).focus();
    item.scrollIntoView({ block: 'nearest' });
  };
  approve.addEventListener('click', () => decide(item, waiting, what, 'approve'));
  refuse.addEventListener('click', () => open(true));
  part('.back').addEventListener('click', () => open(false));
  why.addEventListener('keydown', (event) => event.key === 'Escape' && open(false));
  why.addEventListener('submit', (event) => {
    event.preventDefault();
    decide(item, waiting, what, 'refuse', reason.value);
  });
  return { item, what, update(now) {
    time.textContent = since(now.since);
    const may = now.mayDecide !== false;
    part('.may-not').hidden = may;
    if (!may) [first.hidden, why.hidden] = [true, true];
    // Without operators there is nobody who could refuse.
    refuse.hidden = !named;
  } };
}

async function decide(item, waiting, what, act, reason) {
  const article = item.firstElementChild;
  if (article.ariaBusy === 'true') return;
  article.ariaBusy = 'true';
  try {
    const { status, said } = await call(`${act}/${encodeURIComponent(waiting.taskId)}`, DECIDE_LIMIT, {
      reason,
      since: waiting.since,
    });
    const words = plain(said.error?.message ?? `The agent answers with ${status}.`);
    if (status === 200) tellAndFocus(`${act === 'approve' ? 'Approved' : 'Refused'}: ${what}`, true);
    else if (status === 401) leave('No operator has this token any more. Nothing was decided.', false);
    else if (status === 404 && !named) tellAndFocus(`${what} does not wait any more.`, false);
    else tellAndFocus(`${what}: ${words}. Nothing was decided.`, false);
  } catch {
    tellAndFocus(`${what}: no answer came, so it may have been decided or not. What still waits is listed here.`, false);
  }
  article.ariaBusy = 'false';
  await refresh();
}

function list({ operator, approvals }) {
  const now = new Set();
  for (const waiting of approvals) {
    const key = `${waiting.taskId} ${waiting.since}`;
    now.add(key);
    if (!shown.has(key)) {
      shown.set(key, make(waiting));
      at('list').append(shown.get(key).item);
    }
    shown.get(key).update(waiting);
  }
  for (const [key, { item, what }] of shown) {
    if (now.has(key)) continue;
    const was = item.contains(document.activeElement);
    item.remove();
    shown.delete(key);
    if (was) tellAndFocus(`${what} does not wait any more.`, false);
  }
  const count = now.size === 0 ? 'Nothing waits' : now.size === 1 ? '1 task waits' : `${now.size} tasks wait`;
  if (at('count').textContent !== count) at('count').textContent = count;
  document.title = (now.size ? `(${now.size}) ` : '') + ['Approvals', at('agent').textContent].filter(Boolean).join(' · ');
  at('name').textContent = plain(operator);
  at('who').hidden = !operator;
  [at('enter').hidden, at('waiting').hidden] = [true, false];
}

/** Reads what waits. Gives whether the agent took the token. */
async function refresh() {
  clearTimeout(next);
  if (named && token === null) return false;
  const shows = token;
  let taken = true;
  try {
    const { status, said } = await call('approvals', READ_LIMIT);
    if (shows !== token) return false;
    if (status === 401) {
      taken = false;
    } else if (status !== 200) {
      throw new Error(`status ${status}`);
    } else {
      list(said);
    }
    at('trouble').textContent = '';
  } catch {
    at('trouble').textContent = 'The agent does not answer. This page asks again.';
  }
  if (!taken) {
    leave('No operator has this token.', false);
    return false;
  }
  clearTimeout(next);
  next = setTimeout(refresh, POLL);
  return true;
}

function leave(words, good) {
  token = null;
  clearTimeout(next);
  shown.clear();
  at('list').replaceChildren();
  [at('enter').hidden, at('waiting').hidden, at('who').hidden] = [false, true, true];
  at('token').value = '';
  tell(words, good);
  at('token').focus();
}

at('enter').addEventListener('submit', (event) => {
  event.preventDefault();
  const typed = at('token').value.trim();
  // Nothing else can stand in a header, and so be a token.
  if (!/^[!-~]+$/.test(typed)) {
    leave('No operator has this token.', false);
    return;
  }
  token = typed;
  at('token').value = '';
  tell('');
  refresh().then((taken) => taken && token !== null && !at('waiting').hidden && at('count').focus());
});
at('leave').addEventListener('click', () => leave('Signed out. The token is forgotten.', true));
document.addEventListener('visibilitychange', () => (document.hidden ? clearTimeout(next) : refresh()));
// A page that is shown again from the browser's cache has no business with an old token.
addEventListener('pagehide', () => named && leave('', true));

fetch('.well-known/agent-card.json', { credentials: 'omit' })
  .then((answer) => answer.json())
  .then((card) => (at('agent').textContent = plain(card.name)))
  .catch(() => {});
if (named) at('enter').hidden = false;
else refresh();
