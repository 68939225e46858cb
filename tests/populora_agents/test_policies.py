"""A LoRA policy in a seat."""

from __future__ import annotations

from collections.abc import Sequence

from populora_agents.policies import LoraPolicy
from populora_agents.types import AdapterVersion, Completion, Request
from populora_env.types import Message, Observation, Policy, Role, Task


class Echo:
    """A backend that repeats the prompt and keeps the requests."""

    name = "echo"

    def __init__(self) -> None:
        """Begin with no requests."""
        self.seen: list[Request] = []

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer with the prompt."""
        self.seen += requests
        return [
            Completion(
                request=request,
                prompt_ids=(),
                token_ids=(),
                logprobs=(),
                text=request.messages[0].content,
                finish_reason="stop",
            )
            for request in requests
        ]

    def close(self) -> None:
        """Hold nothing."""


def observation(role: Role) -> Observation:
    return Observation(
        role=role, task=Task.DEDUCTION, prompt="hello", messages=(Message(role="user", content="hello"),)
    )


def test_it_asks_the_backend_for_its_adapter_with_the_roles_limit() -> None:
    backend = Echo()
    adapter = AdapterVersion(member_id="student_0", version=3)
    policy: Policy = LoraPolicy(backend, adapter, max_new_tokens={Role.PROPOSER: 7, Role.SOLVER: 5}, temperature=0.5)
    assert policy(observation(Role.PROPOSER)) == "hello"
    policy(observation(Role.SOLVER))
    assert [request.max_new_tokens for request in backend.seen] == [7, 5]
    assert {request.adapter for request in backend.seen} == {adapter}
    assert {request.temperature for request in backend.seen} == {0.5}


def test_calls_draw_from_different_streams_and_a_new_policy_repeats_them() -> None:
    seeds = []
    for seed in (0, 0, 1):
        backend = Echo()
        policy = LoraPolicy(backend, None, seed=seed)
        policy(observation(Role.SOLVER))
        policy(observation(Role.SOLVER))
        seeds.append([request.seed for request in backend.seen])
    assert seeds[0] == seeds[1]
    assert len({*seeds[0], *seeds[2]}) == 4
