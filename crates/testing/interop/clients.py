"""What a client written with the public Python SDK sees of the agents, as one JSON object: a member for each group of
facts, of which sdk_clients.rs checks each.

    clients.py BINDING TEST_RUNNER CODE_REVIEWER DEPLOYER SLOW

BINDING is JSONRPC, HTTP+JSON or GRPC; then the agents' URLs. SLOW is a test-runner that never comes to its first word.
"""

import asyncio
import json
import sys
import threading
import traceback
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

import grpc
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, CredentialService
from a2a.types import a2a_pb2 as a2a
from a2a.utils.signing import create_agent_card_signer, create_signature_verifier
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.json_format import MessageToDict, Parse
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm

BINDING, TEST_RUNNER, CODE_REVIEWER, DEPLOYER, SLOW = sys.argv[1:]
TOKEN = 'dpl_test_7c1e4b'
TESTS = 'Run the unit tests for payments-api at commit 9f3c2e1'
DIFF = '-    net = amount - fee(charge)\n+    net = int(amount) - fee(charge)\n'


class Bearer(CredentialService):
    """Whatever scheme is asked for: the token."""

    async def get_credentials(self, security_scheme_name, context):
        return TOKEN


def http():
    return httpx.AsyncClient(timeout=30)


async def asking(url, streaming=False, known=True):
    config = ClientConfig(
        streaming=streaming,
        httpx_client=http(),
        grpc_channel_factory=grpc.aio.insecure_channel,
        supported_protocol_bindings=[BINDING],
    )
    return await ClientFactory(config).create_from_url(url, [AuthInterceptor(Bearer())] if known else [])


def say(*parts, task=None, context='', immediately=False, hook=None):
    message = a2a.Message(
        message_id=str(uuid.uuid4()),
        role=a2a.ROLE_USER,
        parts=[part if isinstance(part, a2a.Part) else a2a.Part(text=part) for part in parts],
        context_id=task.context_id if task else context,
        task_id=task.id if task else '',
    )
    request = a2a.SendMessageRequest(message=message)
    request.configuration.return_immediately = immediately
    if hook:
        request.configuration.task_push_notification_config.CopyFrom(hook)
    return request


async def events(stream):
    return [event async for event in stream]


async def task_of(client, request):
    (event,) = await events(client.send_message(request))
    return event.task


def shown(value):
    return [shown(item) for item in value] if isinstance(value, list) else MessageToDict(value)


async def refusal(awaitable):
    """The name of the error that the SDK makes of a refusal."""
    try:
        answer = await awaitable
    except Exception as error:
        return type(error).__name__
    return f'no error: {answer}'


async def card():
    found = {}
    for name, url in [('testRunner', TEST_RUNNER), ('codeReviewer', CODE_REVIEWER), ('deployer', DEPLOYER)]:
        async with http() as client:
            found[name] = shown(await A2ACardResolver(client, url).get_agent_card())
    return found


async def message():
    (event,) = await events((await asking(CODE_REVIEWER)).send_message(say('What languages can you review?')))
    return shown(event)


async def task():
    return shown(await task_of(await asking(TEST_RUNNER), say(TESTS)))


async def stream():
    return shown(await events((await asking(TEST_RUNNER, streaming=True)).send_message(say(TESTS))))


async def poll():
    client = await asking(TEST_RUNNER)
    first = await task_of(client, say(TESTS, immediately=True))
    last = first
    while last.status.state != a2a.TASK_STATE_COMPLETED:
        await asyncio.sleep(0.02)
        last = await client.get_task(a2a.GetTaskRequest(id=first.id))
    trimmed = await client.get_task(a2a.GetTaskRequest(id=first.id, history_length=0))
    return {'first': shown(first), 'last': shown(last), 'trimmed': shown(trimmed)}


async def question():
    client = await asking(CODE_REVIEWER)
    diff = a2a.Part(raw=DIFF.encode(), filename='refunds.diff', media_type='text/x-diff')
    asked = await task_of(client, say('Review this diff of payments-api.', diff))
    answered = await task_of(client, say('main', task=asked))
    return {'asked': shown(asked), 'answered': shown(answered)}


async def approval():
    client = await asking(DEPLOYER)
    streaming = await asking(DEPLOYER, streaming=True)
    waiting = await task_of(client, say('Deploy build 2026.10.06-1 to staging'))
    seen = []
    async for event in streaming.subscribe(a2a.SubscribeToTaskRequest(id=waiting.id)):
        if not seen:
            approve = urllib.request.Request(
                f'{DEPLOYER}/approve/{waiting.id}', method='POST', headers={'Authorization': f'Bearer {TOKEN}'}
            )
            await asyncio.to_thread(urllib.request.urlopen, approve)
        seen.append(event)
    return {'waiting': shown(waiting), 'seen': shown(seen)}


async def cancel():
    client = await asking(SLOW)
    running = await task_of(client, say(TESTS, immediately=True))
    canceled = await client.cancel_task(a2a.CancelTaskRequest(id=running.id))
    again = await refusal(client.cancel_task(a2a.CancelTaskRequest(id=running.id)))
    return {'running': shown(running), 'canceled': shown(canceled), 'again': again}


async def subscribe():
    client = await asking(SLOW)
    streaming = await asking(SLOW, streaming=True)
    running = await task_of(client, say(TESTS, immediately=True))
    seen = []
    async for event in streaming.subscribe(a2a.SubscribeToTaskRequest(id=running.id)):
        if not seen:
            await client.cancel_task(a2a.CancelTaskRequest(id=running.id))
        seen.append(event)
    after = await refusal(events(streaming.subscribe(a2a.SubscribeToTaskRequest(id=running.id))))
    return {'seen': shown(seen), 'after': after}


async def listing():
    client = await asking(TEST_RUNNER)
    context = str(uuid.uuid4())
    made = [(await task_of(client, say(TESTS, context=context))).id for _ in range(3)]
    first = await client.list_tasks(a2a.ListTasksRequest(context_id=context, page_size=2))
    token = first.next_page_token
    second = await client.list_tasks(a2a.ListTasksRequest(context_id=context, page_size=2, page_token=token))
    return {'made': made, 'first': shown(first), 'second': shown(second)}


class Receiver:
    """Takes webhooks until one says that its task is completed, and reads them with the SDK's own types."""

    def __init__(self):
        self.took, self.done = [], threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                event = Parse(body, a2a.StreamResponse())
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.took.append({'event': MessageToDict(event), 'headers': headers})
                self.send_response(204)
                self.end_headers()
                if event.status_update.status.state == a2a.TASK_STATE_COMPLETED:
                    receiver.done.set()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def config(self, **more):
        return a2a.TaskPushNotificationConfig(
            url=f'http://127.0.0.1:{self.server.server_port}/hook',
            token='webhook-token',
            authentication=a2a.AuthenticationInfo(scheme='Bearer', credentials='webhook-secret'),
            **more,
        )


async def push():
    receiver = Receiver()
    told = await task_of(await asking(TEST_RUNNER), say(TESTS, immediately=True, hook=receiver.config()))
    completed = await asyncio.to_thread(receiver.done.wait, 20)
    client = await asking(SLOW)
    slow = (await task_of(client, say(TESTS, immediately=True))).id
    made = await client.create_task_push_notification_config(receiver.config(task_id=slow, id='mine'))
    read = await client.get_task_push_notification_config(
        a2a.GetTaskPushNotificationConfigRequest(task_id=slow, id='mine')
    )
    several = a2a.ListTaskPushNotificationConfigsRequest(task_id=slow)
    before = await client.list_task_push_notification_configs(several)
    taken = a2a.DeleteTaskPushNotificationConfigRequest(task_id=slow, id='mine')
    await client.delete_task_push_notification_config(taken)
    after = await client.list_task_push_notification_configs(several)
    return {
        'task': told.id,
        'completed': completed,
        'webhooks': receiver.took,
        'made': shown(made),
        'read': shown(read),
        'before': shown(before),
        'after': shown(after),
    }


async def extended():
    request = a2a.GetExtendedAgentCardRequest()
    known = await (await asking(DEPLOYER)).get_extended_agent_card(request)
    unknown = await refusal((await asking(DEPLOYER, known=False)).get_extended_agent_card(request))
    return {'known': shown(known), 'unknown': unknown}


async def errors():
    runner, reviewer = await asking(TEST_RUNNER), await asking(CODE_REVIEWER)
    ended = await task_of(runner, say(TESTS))
    elsewhere = say('more', task=ended)
    elsewhere.message.context_id = 'another'
    config = a2a.TaskPushNotificationConfig(task_id='no-such-task', url='http://127.0.0.1:9/hook')
    odd = a2a.Part(raw=b'x', media_type='image/png')
    return {
        'unknownTask': await refusal(runner.get_task(a2a.GetTaskRequest(id='no-such-task'))),
        'cancelEnded': await refusal(runner.cancel_task(a2a.CancelTaskRequest(id=ended.id))),
        'messageToEnded': await refusal(task_of(runner, say('more', task=ended))),
        'otherContext': await refusal(task_of(runner, elsewhere)),
        'pageSize': await refusal(runner.list_tasks(a2a.ListTasksRequest(page_size=101))),
        'mediaType': await refusal(task_of(reviewer, say(odd))),
        'noPush': await refusal(reviewer.create_task_push_notification_config(config)),
    }


async def signatures():
    """Their card verified by the SDK with the key that its signature names; a card that the SDK signed, and its key."""
    fetched = []

    def published(kid, jku):
        if not jku:  # The demonstration's shared secret, which nobody publishes.
            return PyJWK.from_dict({'kty': 'oct', 'k': 'AA', 'alg': 'HS256'})
        fetched.append(jku)
        with urllib.request.urlopen(jku) as answer:
            keys = json.load(answer)['keys']
        return PyJWK.from_dict(next(key for key in keys if key['kid'] == kid))

    async with http() as client:
        resolver = A2ACardResolver(client, DEPLOYER)
        theirs = await resolver.get_agent_card(signature_verifier=create_signature_verifier(published, ['ES256']))
        changed = a2a.AgentCard()
        changed.CopyFrom(theirs)
        changed.description += '!'
        try:
            create_signature_verifier(published, ['ES256'])(changed)
            tampered = 'no error'
        except Exception as error:
            tampered = type(error).__name__
        ours = await A2ACardResolver(client, CODE_REVIEWER).get_agent_card()
    ours.description += ' Prüft auch Umlaute.'
    key = ec.generate_private_key(ec.SECP256R1())
    create_agent_card_signer(key, {'kid': 'sdk', 'alg': 'ES256', 'jku': None, 'typ': 'JOSE'})(ours)
    public = ECAlgorithm.to_jwk(key.public_key(), as_dict=True) | {'kid': 'sdk', 'alg': 'ES256'}
    return {'verifiedWith': fetched, 'tampered': tampered, 'signed': shown(ours), 'keys': {'keys': [public]}}


async def main():
    groups = [card, message, task, stream, poll, question, approval, cancel, subscribe, listing, push, extended]
    facts = {}
    for group in [*groups, errors, signatures]:
        try:
            facts[group.__name__] = await asyncio.wait_for(group(), 60)
        except Exception:
            facts[group.__name__] = {'broke': traceback.format_exc()}
    print(json.dumps(facts))


asyncio.run(main())
