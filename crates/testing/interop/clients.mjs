// What a client written with the public JavaScript SDK sees of the agents, as one JSON object: a member for each group
// of facts, of which sdk_clients.rs checks each. The groups and the arguments are those of clients.py.

import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as jose from 'jose';
import * as sdk from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';

// The SDK logs here too; what is printed is the facts alone.
for (const level of ['debug', 'info', 'log']) console[level] = console.error;

const [binding, testRunner, codeReviewer, deployer, slow] = process.argv.slice(2);
const TOKEN = 'dpl_test_7c1e4b';
const TESTS = 'Run the unit tests for payments-api at commit 9f3c2e1';
const DIFF = '-    net = amount - fee(charge)\n+    net = int(amount) - fee(charge)\n';

const transport = {
  JSONRPC: () => new JsonRpcTransportFactory(),
  'HTTP+JSON': () => new RestTransportFactory(),
  GRPC: () => new GrpcTransportFactory(),
}[binding];

const withToken = {
  before: async (args) => {
    args.options = { ...args.options, serviceParameters: { ...args.options?.serviceParameters, authorization: `Bearer ${TOKEN}` } };
  },
  after: async () => {},
};

// The base ends in a slash: without it the SDK would drop a path.
const asking = (url, known = true) =>
  new ClientFactory({ transports: [transport()], clientConfig: { interceptors: known ? [withToken] : [] } }).createFromUrl(`${url}/`);

const cardOf = (url) => new DefaultAgentCardResolver().resolve(`${url}/`);

function say(parts, { task, contextId, immediately, hook } = {}) {
  return sdk.SendMessageRequest.fromJSON({
    message: {
      messageId: randomUUID(),
      role: 'ROLE_USER',
      parts: parts.map((part) => (typeof part === 'string' ? { text: part } : part)),
      ...(task ? { taskId: task.id, contextId: contextId ?? task.contextId } : { contextId }),
    },
    configuration: { returnImmediately: immediately ?? false, taskPushNotificationConfig: hook },
  });
}

const task = (value) => sdk.Task.toJSON(value);
const frame = (value) => sdk.StreamResponse.toJSON(value);

async function events(stream) {
  const seen = [];
  for await (const event of stream) seen.push(frame(event));
  return seen;
}

/** The name of the error that the SDK makes of a refusal, without the binding that each name begins with. */
async function refusal(promise) {
  try {
    return `no error: ${JSON.stringify(await promise)}`;
  } catch (error) {
    return error.name.replace(/^(JsonRpc|Rest|Grpc)/, '');
  }
}

class Receiver {
  took = [];
  done = new Promise((resolve) => (this.completed = resolve));

  async open() {
    this.server = createServer(async (request, response) => {
      let body = '';
      for await (const piece of request) body += piece;
      const event = frame(sdk.StreamResponse.fromJSON(JSON.parse(body)));
      this.took.push({ event, headers: request.headers });
      response.writeHead(204).end();
      if (event.statusUpdate?.status.state === 'TASK_STATE_COMPLETED') this.completed(true);
    });
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  config(more) {
    return {
      url: `http://127.0.0.1:${this.server.address().port}/hook`,
      token: 'webhook-token',
      authentication: { scheme: 'Bearer', credentials: 'webhook-secret' },
      ...more,
    };
  }
}

const groups = {
  async card() {
    const found = {};
    for (const [name, url] of Object.entries({ testRunner, codeReviewer, deployer })) {
      found[name] = sdk.AgentCard.toJSON(await cardOf(url));
    }
    return found;
  },

  async message() {
    const answer = await (await asking(codeReviewer)).sendMessage(say(['What languages can you review?']));
    return 'messageId' in answer ? { message: sdk.Message.toJSON(answer) } : { task: task(answer) };
  },

  async task() {
    return task(await (await asking(testRunner)).sendMessage(say([TESTS])));
  },

  async stream() {
    return await events((await asking(testRunner)).sendMessageStream(say([TESTS])));
  },

  async poll() {
    const client = await asking(testRunner);
    const first = await client.sendMessage(say([TESTS], { immediately: true }));
    let last = first;
    while (task(last).status.state !== 'TASK_STATE_COMPLETED') {
      await sleep(20);
      last = await client.getTask(sdk.GetTaskRequest.fromJSON({ id: first.id }));
    }
    const trimmed = await client.getTask(sdk.GetTaskRequest.fromJSON({ id: first.id, historyLength: 0 }));
    return { first: task(first), last: task(last), trimmed: task(trimmed) };
  },

  async question() {
    const client = await asking(codeReviewer);
    const diff = { raw: Buffer.from(DIFF).toString('base64'), filename: 'refunds.diff', mediaType: 'text/x-diff' };
    const asked = await client.sendMessage(say(['Review this diff of payments-api.', diff]));
    const answered = await client.sendMessage(say(['main'], { task: asked }));
    return { asked: task(asked), answered: task(answered) };
  },

  async approval() {
    const client = await asking(deployer);
    const waiting = await client.sendMessage(say(['Deploy build 2026.10.06-1 to staging']));
    const seen = [];
    for await (const event of client.resubscribeTask(sdk.SubscribeToTaskRequest.fromJSON({ id: waiting.id }))) {
      if (seen.length === 0) {
        await fetch(`${deployer}/approve/${waiting.id}`, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } });
      }
      seen.push(frame(event));
    }
    return { waiting: task(waiting), seen };
  },

  async cancel() {
    const client = await asking(slow);
    const running = await client.sendMessage(say([TESTS], { immediately: true }));
    const cancel = () => client.cancelTask(sdk.CancelTaskRequest.fromJSON({ id: running.id }));
    const canceled = await cancel();
    return { running: task(running), canceled: task(canceled), again: await refusal(cancel()) };
  },

  async subscribe() {
    const client = await asking(slow);
    const running = await client.sendMessage(say([TESTS], { immediately: true }));
    const request = sdk.SubscribeToTaskRequest.fromJSON({ id: running.id });
    const seen = [];
    for await (const event of client.resubscribeTask(request)) {
      if (seen.length === 0) await client.cancelTask(sdk.CancelTaskRequest.fromJSON({ id: running.id }));
      seen.push(frame(event));
    }
    return { seen, after: await refusal(events(client.resubscribeTask(request))) };
  },

  async listing() {
    const client = await asking(testRunner);
    const contextId = randomUUID();
    const made = [];
    for (let count = 0; count < 3; count++) made.push((await client.sendMessage(say([TESTS], { contextId }))).id);
    const page = (pageToken) => client.listTasks(sdk.ListTasksRequest.fromJSON({ contextId, pageSize: 2, pageToken }));
    const first = await page();
    const second = await page(first.nextPageToken);
    return { made, first: sdk.ListTasksResponse.toJSON(first), second: sdk.ListTasksResponse.toJSON(second) };
  },

  async push() {
    const receiver = await new Receiver().open();
    const told = await (await asking(testRunner)).sendMessage(say([TESTS], { immediately: true, hook: receiver.config() }));
    const completed = await Promise.race([receiver.done, sleep(20_000, false, { ref: false })]);
    const client = await asking(slow);
    const taskId = (await client.sendMessage(say([TESTS], { immediately: true }))).id;
    const config = sdk.TaskPushNotificationConfig;
    const made = await client.createTaskPushNotificationConfig(config.fromJSON(receiver.config({ taskId, id: 'mine' })));
    const mine = { taskId, id: 'mine' };
    const read = await client.getTaskPushNotificationConfig(sdk.GetTaskPushNotificationConfigRequest.fromJSON(mine));
    const list = async () => {
      const request = sdk.ListTaskPushNotificationConfigsRequest.fromJSON({ taskId });
      return sdk.ListTaskPushNotificationConfigsResponse.toJSON(await client.listTaskPushNotificationConfig(request));
    };
    const before = await list();
    await client.deleteTaskPushNotificationConfig(sdk.DeleteTaskPushNotificationConfigRequest.fromJSON(mine));
    const after = await list();
    receiver.server.close();
    return {
      task: told.id, completed, webhooks: receiver.took, made: config.toJSON(made), read: config.toJSON(read), before, after,
    };
  },

  async extended() {
    const known = sdk.AgentCard.toJSON(await (await asking(deployer)).getAgentCard());
    return { known, unknown: await refusal((await asking(deployer, false)).getAgentCard()) };
  },

  async errors() {
    const [runner, reviewer] = [await asking(testRunner), await asking(codeReviewer)];
    const ended = await runner.sendMessage(say([TESTS]));
    const config = sdk.TaskPushNotificationConfig.fromJSON({ taskId: 'no-such-task', url: 'http://127.0.0.1:9/hook' });
    const id = (message, value) => message.fromJSON({ id: value });
    const version = { serviceParameters: { 'A2A-Version': '1.0' } };
    return {
      unknownTask: await refusal(runner.getTask(id(sdk.GetTaskRequest, 'no-such-task'))),
      cancelEnded: await refusal(runner.cancelTask(id(sdk.CancelTaskRequest, ended.id))),
      messageToEnded: await refusal(runner.sendMessage(say(['more'], { task: ended }))),
      otherContext: await refusal(runner.sendMessage(say(['more'], { task: ended, contextId: 'another' }))),
      pageSize: await refusal(runner.listTasks(sdk.ListTasksRequest.fromJSON({ pageSize: 101 }))),
      mediaType: await refusal(reviewer.sendMessage(say([{ raw: 'eA==', mediaType: 'image/png' }]))),
      // The client would refuse by itself, seeing the card; its transport asks, but adds no version.
      noPush: await refusal(reviewer.transport.createTaskPushNotificationConfig(config, version)),
    };
  },

  async signatures() {
    const verifiedWith = [];
    const published = async (kid, jku) => {
      if (!jku) throw new Error("the demonstration's shared secret, which nobody publishes");
      verifiedWith.push(jku);
      const { keys } = await (await fetch(jku)).json();
      return jose.importJWK(keys.find((key) => key.kid === kid), 'ES256');
    };
    // Not the parsed card: its canonical text would lose the security schemes.
    const theirs = await (await fetch(`${deployer}/.well-known/agent-card.json`)).json();
    await sdk.verifyAgentCardSignature(published)(theirs);
    const tampered = await refusal(sdk.verifyAgentCardSignature(published)({ ...theirs, description: 'another' }));
    const ours = await cardOf(codeReviewer);
    ours.description += ' Prüft auch Umlaute.';
    const { publicKey, privateKey } = await jose.generateKeyPair('ES256', { extractable: true });
    const signed = await sdk.generateAgentCardSignature(privateKey, { alg: 'ES256', kid: 'sdk', typ: 'JOSE' })(ours);
    const key = { ...(await jose.exportJWK(publicKey)), kid: 'sdk', alg: 'ES256' };
    return { verifiedWith, tampered, signed: sdk.AgentCard.toJSON(signed), keys: { keys: [key] } };
  },
};

const facts = {};
for (const [name, group] of Object.entries(groups)) {
  try {
    const late = sleep(60_000, null, { ref: false }).then(() => Promise.reject(new Error('a minute has passed')));
    facts[name] = await Promise.race([group(), late]);
  } catch (error) {
    facts[name] = { broke: error.stack };
  }
}
process.stdout.write(JSON.stringify(facts), () => process.exit(0));
