"""Clients of a real server that do all that they should not, and note what they hear in `Promises`.

They are late, deliver twice, out of order, with leases of others and secrets that they guess, change their results, fail,
return, ask again under an old key, and vanish with what they have; results of workflows that have ended come too.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from light_clients import PATIENCE, LightClient
from service_model import Given, Promises

RIGHT = "right"
Result = dict[str, Any]


@dataclass(eq=False)
class WickedClient(LightClient):
    """One of them; a task whose command is `false` fails, unless its workflow is *cured*."""

    promises: Promises = field(default_factory=lambda: Promises(0, 0))
    cured: Set[str] = frozenset()
    #: results that come later, by anybody's account too late; and what was delivered before
    hoard: list[Result] = field(default_factory=list)
    before: list[Result] = field(default_factory=list)

    async def post(self, path: str, words: Mapping[str, Any], key: str = "") -> dict[str, Any]:
        """What is answered, tried again under the same key until somebody answers."""
        body, key = json.dumps(words).encode(), key or secrets.token_urlsafe(16)
        while True:
            try:
                head, said = await asyncio.wait_for(self.once("POST", path, body, key), PATIENCE)
            except (OSError, EOFError, TimeoutError):
                self.hang_up()
                await asyncio.sleep(self.chance.uniform(0, self.pause))
                continue
            self.ledger.codes[head.status] += 1
            if head.status in {429, 503}:
                if head.headers.get("connection") == "close":
                    self.hang_up()
                await asyncio.sleep(self.chance.uniform(0, self.pause))
                continue
            assert head.status < 300, f"{path}: {head.first} {said!r}"
            answer: dict[str, Any] = json.loads(said)
            return answer

    async def work(self, over: Callable[[], bool]) -> None:
        await self.enrol()
        while not over():
            await self._bring_all(await self._asked())
            with suppress(IndexError):
                await self._misbehave()
        self.hang_up()

    async def _asked(self) -> list[Result]:
        """What comes of the tasks that it gets."""
        asked, key = self.promises.now(), secrets.token_urlsafe(16)
        words = {"count": self.chance.randint(1, 4), "size": self.chance.randint(1, 4), "wait": 0.3}
        reply = await self.post("/v1/request", words, key)
        if self.chance.random() < 0.05:  # the same leases, or others where nothing of them is out any more
            reply["grants"] += (await self.post("/v1/request", words, key))["grants"]
        found = []
        for grant in reply["grants"]:
            for task in grant["tasks"]:
                given = Given(grant["workflow"], task["task"], self.id)
                self.promises.grant(task["lease"], given, asked)
                self.ledger.executed[task["task"]] += 1
                fails = task["command"] == "false" and given.workflow not in self.cured
                found.append(self._result(task["lease"], fails))
        return found

    def _result(self, lease: str, fails: bool) -> Result:
        chance = self.chance.random()
        if fails or chance < 0.02:
            return {"lease": lease, "outcome": "failed", "failure": "exit code 1", "code": 1, "tail": "failed"}
        if chance < 0.04:
            return {"lease": lease, "outcome": "returned", "tail": "returned"}
        return {"lease": lease, "outcome": "done", "code": 0, "tail": "lie" if chance < 0.05 else RIGHT}

    async def _bring_all(self, results: list[Result]) -> None:
        way = self.chance.random()
        if way < 0.03:
            return  # it vanishes with them
        if way < 0.08:
            self.hoard += results
        elif way < 0.16:
            for result in reversed(results):
                await self.bring([result])
        elif way < 0.3:
            self.chance.shuffle(results)
            await self.bring(results)
            await self.bring(results)
        elif results:
            await self.bring(results)

    async def _misbehave(self) -> None:
        way = self.chance.random()
        if way < 0.06 and self.hoard:
            late, self.hoard = self.hoard, []
            await self.bring(late)
        elif way < 0.12:
            await self.bring([self.chance.choice(self.before)])
        elif way < 0.16:
            await self.bring([self.chance.choice(self.before) | {"outcome": "done", "code": 0, "tail": "another"}])
        elif way < 0.2:
            await self._steal()

    async def _steal(self) -> None:
        """Bring a result of a lease that is another's, or whose secret is not known."""
        lease = self.chance.choice(list(self.promises.given)[-200:])
        if self.promises.given[lease].client == self.id:
            lease = lease.rpartition(".")[0] + ".0123456789abcdef"
        await self.bring([{"lease": lease, "outcome": "done", "tail": "stolen"}], mine=False)

    async def bring(self, results: list[Result], mine: bool = True) -> None:
        for result in results:
            if mine:
                self.promises.send(result["lease"], result["tail"])
        answers = (await self.post("/v1/deliver", {"results": results}))["answers"]
        for result, answer in zip(results, answers, strict=True):
            key = (self.id if not mine else "", result["outcome"], result["tail"])
            self.promises.hear(result["lease"], key, answer, mine)
        if mine:
            self.before = (self.before + results)[-300:]
