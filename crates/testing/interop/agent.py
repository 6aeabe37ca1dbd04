"""An agent with the three skills of the workshop, written with the public Python SDK: agent.py JSONRPC|HTTP+JSON.

It tests, and commit 9f3c2e1 fails; it reviews a diff once it was told a base branch; it deploys what is approved at
POST /approve/TASK. GET /deploys lists what it has deployed.
"""

import asyncio
import socket
import sys

import uvicorn
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

SKILLS = ['run-tests', 'review-diff', 'deploy']

waiting = {}
deploys = []


def data(json):
    return [a2a.Part(data=ParseDict(json, Value()))]


class Agent(AgentExecutor):
    async def execute(self, context, event_queue):
        events = TaskUpdater(event_queue, context.task_id, context.context_id)

        def words(text):
            return events.new_agent_message([a2a.Part(text=text)])

        text = context.get_user_input()
        task = context.current_task
        if task and task.status.state == a2a.TASK_STATE_INPUT_REQUIRED:
            findings = [{'severity': 'low', 'text': 'A name could be shorter.'}]
            await events.add_artifact(data({'base': text, 'findings': findings}), artifact_id='review')
            await events.complete(words('1 finding'))
            return
        status = a2a.TaskStatus(state=a2a.TASK_STATE_WORKING)
        task = a2a.Task(id=context.task_id, context_id=context.context_id, status=status, history=[context.message])
        await event_queue.enqueue_event(task)
        match text.split(' ')[0]:
            case 'Run':
                failed = int(text.endswith('9f3c2e1'))
                await events.add_artifact(data({'passed': 13 - failed, 'failed': failed}), artifact_id='summary')
                await events.complete(words('The tests have run.'))
            case 'Review' if any(part.raw for part in context.message.parts):
                await events.requires_input(words('Which base branch is this diff against?'))
            case 'Deploy':
                approved = waiting[context.task_id] = asyncio.Event()
                await events.requires_auth(words('A person has to approve this deploy.'))
                await approved.wait()
                deploys.append(text.split(' ')[2])
                await events.complete(words('It is live.'))
            case _:
                await events.reject(words('I have no skill for that.'))

    async def cancel(self, context, event_queue):
        waiting.pop(context.task_id, None)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


async def approve(request):
    approved = waiting.pop(request.path_params['task'], None)
    if approved:
        approved.set()
    return JSONResponse({'approved': approved is not None}, status_code=200 if approved else 404)


async def deployed(_):
    return JSONResponse(deploys)


def main():
    binding = sys.argv[1]
    listener = socket.create_server(('127.0.0.1', 0))
    url = f'http://127.0.0.1:{listener.getsockname()[1]}'
    card = a2a.AgentCard(
        name='python-sdk',
        description='Tests, reviews and deploys',
        version='1',
        supported_interfaces=[a2a.AgentInterface(url=f'{url}/a2a', protocol_binding=binding, protocol_version='1.0')],
        capabilities=a2a.AgentCapabilities(streaming=True),
        default_input_modes=['text/plain', 'text/x-diff'],
        default_output_modes=['application/json'],
        skills=[a2a.AgentSkill(id=id, name=id, description=id, tags=['work']) for id in SKILLS],
    )
    handler = DefaultRequestHandler(agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=card)
    if binding == 'JSONRPC':
        calls = create_jsonrpc_routes(handler, '/a2a')
    else:
        calls = create_rest_routes(handler, path_prefix='/a2a')
    # The routes of HTTP+JSON take anything for a tenant, so they come last.
    own = [Route('/approve/{task}', approve, methods=['POST']), Route('/deploys', deployed)]
    app = Starlette(routes=own + create_agent_card_routes(card) + calls)
    print('ready', url, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level='critical')).run(sockets=[listener])


main()
