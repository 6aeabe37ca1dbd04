// An agent with the three skills of the workshop, written with the public JavaScript SDK: agent.mjs JSONRPC|HTTP+JSON.
//
// It tests, and commit 9f3c2e1 fails; it reviews a diff once it was told a base branch; it deploys what is approved at
// POST /approve/TASK. GET /deploys lists what it has deployed.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { AGENT_CARD_PATH, Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express from 'express';

const binding = process.argv[2];
const waiting = new Map();
const deploys = [];

const part = ($case, value) => ({ content: { $case, value }, metadata: undefined, filename: '', mediaType: '' });

class Agent {
  async execute({ task, taskId, contextId, userMessage }, bus) {
    const status = (state, words) => {
      const message = {
        messageId: randomUUID(), taskId, contextId, role: Role.ROLE_AGENT, parts: [part('text', words)],
        metadata: undefined, extensions: [], referenceTaskIds: [],
      };
      const now = { state, message, timestamp: new Date().toISOString() };
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: now, metadata: undefined }));
    };
    const artifact = (artifactId, data) => {
      const parts = [part('data', data)];
      const made = { artifactId, name: artifactId, description: '', parts, metadata: undefined, extensions: [] };
      const update = { taskId, contextId, artifact: made, append: false, lastChunk: true, metadata: undefined };
      bus.publish(AgentEvent.artifactUpdate(update));
    };
    const text = userMessage.parts.find((part) => part.content?.$case === 'text')?.content.value ?? '';
    if (task?.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED) {
      artifact('review', { base: text, findings: [{ severity: 'low', text: 'A name could be shorter.' }] });
      status(TaskState.TASK_STATE_COMPLETED, '1 finding');
      return bus.finished();
    }
    const working = { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: new Date().toISOString() };
    const history = [userMessage];
    bus.publish(
      AgentEvent.task({ id: taskId, contextId, status: working, artifacts: [], history, metadata: undefined }),
    );
    const words = text.split(' ');
    if (words[0] === 'Run') {
      const failed = Number(text.endsWith('9f3c2e1'));
      artifact('summary', { passed: 13 - failed, failed });
      status(TaskState.TASK_STATE_COMPLETED, 'The tests have run.');
    } else if (words[0] === 'Review' && userMessage.parts.some((part) => part.content?.$case === 'raw')) {
      status(TaskState.TASK_STATE_INPUT_REQUIRED, 'Which base branch is this diff against?');
    } else if (words[0] === 'Deploy') {
      const approved = new Promise((approve) => waiting.set(taskId, approve));
      status(TaskState.TASK_STATE_AUTH_REQUIRED, 'A person has to approve this deploy.');
      await approved;
      deploys.push(words[2]);
      status(TaskState.TASK_STATE_COMPLETED, 'It is live.');
    } else {
      status(TaskState.TASK_STATE_REJECTED, 'I have no skill for that.');
    }
    return bus.finished();
  }

  async cancelTask(taskId, bus) {
    waiting.delete(taskId);
    bus.finished();
  }
}

function serve(url) {
  const skill = (id) => ({
    id, name: id, description: id, tags: [], examples: [], inputModes: [], outputModes: [], securityRequirements: [],
  });
  const card = {
    name: 'javascript-sdk', description: 'Tests, reviews and deploys', version: '1', provider: undefined,
    supportedInterfaces: [{ url: `${url}/a2a`, protocolBinding: binding, tenant: '', protocolVersion: '1.0' }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {}, securityRequirements: [],
    defaultInputModes: ['text/plain', 'text/x-diff'], defaultOutputModes: ['application/json'],
    skills: ['run-tests', 'review-diff', 'deploy'].map(skill), documentationUrl: '', signatures: [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Agent());
  const calls = binding === 'JSONRPC' ? jsonRpcHandler : restHandler;
  const app = express();
  app.post('/approve/:task', (request, response) => {
    const approve = waiting.get(request.params.task);
    waiting.delete(request.params.task);
    approve?.();
    response.status(approve ? 200 : 404).json({ approved: approve !== undefined });
  });
  app.get('/deploys', (_, response) => response.json(deploys));
  app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/a2a', calls({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  return app;
}

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  server.on('request', serve(url));
  console.log('ready', url);
});
