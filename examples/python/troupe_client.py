#!/usr/bin/env python3
"""Drives troupe from Python with nothing but the standard library.

The wire is JSON-RPC 2.0 in frames (`Content-Length: n`, an empty line, n bytes of JSON) on the standard input and
output of `troupe --headless --stdio`; docs/reference/server.md describes it. This file is a client small enough to read:
it starts a server, makes a session with a tool of its own, answers what the session asks, and prints the answer.

    python3 examples/python/troupe_client.py "What is the temperature in Oslo?"
    python3 examples/python/troupe_client.py --base-url http://127.0.0.1:11434/v1 --model llama3.2 "…"
"""
import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class RpcError(Exception):
    """The server's answer to a request was an error."""


class Server:
    """A troupe process and the frames to and from it. Requests may be made while others are under way."""

    def __init__(self, command, on_notification, on_request):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.on_notification = on_notification
        self.on_request = on_request
        self.pending = {}
        self.last_id = 0
        self.lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def request(self, method, params, timeout=60):
        answer = queue.Queue(1)
        with self.lock:
            self.last_id += 1
            number = self.last_id
            self.pending[number] = answer
        self._write({"id": number, "method": method, "params": params})
        message = answer.get(timeout=timeout)
        if "error" in message:
            raise RpcError(message["error"]["message"])
        return message.get("result")

    def close(self):
        """Asks the server to end, then closes its input; it must be gone soon after."""
        self.request("runtime.shutdown", {})
        self.process.stdin.close()
        self.process.wait(timeout=10)

    def _write(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.lock:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.process.stdin.flush()

    def _read(self):
        while True:
            length = 0
            while True:
                line = self.process.stdout.readline()
                if not line:
                    return self._ended()
                if line == b"\r\n":
                    break
                name, _, value = line.decode().partition(":")
                if name.lower() == "content-length":
                    length = int(value)
            message = json.loads(self.process.stdout.read(length))
            if "method" not in message:
                self.pending.pop(message["id"]).put(message)
            elif "id" in message:
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()
            else:
                self.on_notification(message["method"], message.get("params", {}))

    def _answer(self, message):
        try:
            self._write({"id": message["id"], "result": self.on_request(message["method"], message.get("params", {}))})
        except Exception as error:  # whatever went wrong is the answer
            self._write({"id": message["id"], "error": {"code": -32603, "message": str(error)}})

    def _ended(self):
        for answer in list(self.pending.values()):
            answer.put({"error": {"message": "the server ended"}})


class Conversation:
    """One session: its tools run here, and `ask` returns the main agent's last words."""

    def __init__(self, command, tools, **options):
        self.tools = {tool["name"]: tool for tool in tools}
        self.idle = threading.Event()
        self.answer = None
        self.error = None
        self.server = Server(command, self._hear, self._asked)
        greeting = self.server.request("connect", {})
        if greeting["protocolVersion"] != 3:
            raise RpcError(f"the server speaks version {greeting['protocolVersion']} of the protocol")
        self.session_id = str(uuid.uuid4())
        described = [{key: value for key, value in tool.items() if key != "run"} for tool in tools]
        self._call("session.create", tools=described, requestPermission=True, **options)

    def ask(self, prompt, timeout=600):
        self.idle.clear()
        self._call("session.send", prompt=prompt)
        if not self.idle.wait(timeout):
            raise TimeoutError("the session was not idle in time")
        if self.error:
            raise RpcError(self.error)
        return self.answer

    def close(self):
        self._call("session.destroy")
        self.server.close()

    def _call(self, method, **params):
        return self.server.request(method, {"sessionId": self.session_id, **params})

    def _hear(self, method, params):
        if method != "session.event":
            return
        event = params["event"]
        kind, data = event["type"], event["data"]
        print(f"  {kind}", file=sys.stderr)
        if kind == "assistant.message" and "agentId" not in event:
            self.answer = data["content"]
        elif kind == "session.error":
            self.error = data["message"]
        elif kind == "external_tool.requested":
            threading.Thread(target=self._run_tool, args=(data,), daemon=True).start()
        elif kind == "permission.requested":
            decide = {"requestId": data["requestId"], "result": {"kind": "approve-once"}}
            name = "session.permissions.handlePendingPermissionRequest"
            threading.Thread(target=self._call, args=(name,), kwargs=decide, daemon=True).start()
        elif kind == "session.idle":
            self.idle.set()

    def _run_tool(self, call):
        answer = {"requestId": call["requestId"]}
        try:
            answer["result"] = self.tools[call["toolName"]]["run"](**call.get("arguments", {}))
        except Exception as error:
            answer["error"] = str(error)
        self._call("session.tools.handlePendingToolCall", **answer)

    def _asked(self, method, params):
        raise RpcError(f"Unhandled method {method}")


THERMOMETER = {
    "name": "read_temperature",
    "description": "The temperature in a city now, in degrees Celsius.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "run": lambda city: f"It is {len(city)} degrees in {city}.",
}


def main():
    parser = argparse.ArgumentParser(description="Ask troupe one question.")
    parser.add_argument("prompt")
    parser.add_argument("--base-url", help="a server that speaks chat completions; without it troupe's own choice")
    parser.add_argument("--model")
    parser.add_argument("--troupe", nargs="+", default=["node", os.path.join(ROOT, "bin", "troupe.js")])
    given = parser.parse_args()
    options = {}
    if given.model:
        options["model"] = given.model
    if given.base_url:
        options["provider"] = {"type": "openai", "baseUrl": given.base_url, "modelId": given.model or "default"}
    conversation = Conversation([*given.troupe, "--headless", "--stdio"], [THERMOMETER], **options)
    try:
        print(conversation.ask(given.prompt))
    finally:
        conversation.close()


if __name__ == "__main__":
    main()
