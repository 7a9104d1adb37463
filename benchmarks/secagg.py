"""One round of the secure sum against Flower's SecAgg+: processor time and bytes, same vector, same parties.

    python benchmarks/secagg.py [--parties 10] [--numbers 10000] [--rounds 1 13] [--repeats 5]

Both in one process, all parties and the coordinator together; nobody is missing, and everybody shares secrets with
everybody (SecAgg+ with as many shares as parties). Flower's own workflow and client code run behind a grid that only
hands messages over. Bytes are those of all messages as each party gets or sends them; of Flower's, the records of
SecAgg+ alone, without the model that travels beside them. Ours sets up once for a number of rounds, which --rounds
names; a round's cost has its part of the set-up in it. Vectors are encoded (Flower: quantised) within the time. The
noise, which Flower's sum does not have, is a line of its own. Processor time is the least of the repeats.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS
from flwr.common.serde import config_record_to_proto
from flwr.compat.common import recorddict_compat as compat
from flwr.server.client_manager import SimpleClientManager
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.supercore.task_identity import TaskIdentity

from privlearn.arrays import Array
from privlearn.parties.secure_sum.noise_share import NoiseShare
from privlearn.parties.secure_sum.session import Cohort, Step
from privlearn.randomness import SecureRandomness
from tests.support.secure_sum import SecureSum

STEP_PLACE = 4  # in a message: after four bytes that name the format
FROM_COORDINATOR = {Step.ROSTER, Step.INBOX, Step.SURVIVORS}


class Proxy:
    """A client as Flower's strategy sees it."""

    def __init__(self, node: int) -> None:
        self.node_id = node
        self.cid = str(node)


class HandedOver:
    """Flower's grid without a network: every message goes to the client's code and back."""

    def __init__(self, vectors: dict[int, Array]) -> None:
        self._vectors = vectors
        self._contexts = {
            node: Context(
                run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={}, series_id=1
            )
            for node in vectors
        }
        self.sent = 0
        self.counting = 0.0

    def send_and_receive(self, messages: Iterable[Message], **_: Any) -> list[Message]:
        return [self._answered(message) for message in messages]

    def _answered(self, message: Message) -> Message:
        node = message.metadata.dst_node_id
        self._count(message)
        # the workflow gives several clients one record, which the client's code empties
        configs = ConfigRecord(dict(message.content.config_records[RECORD_KEY_CONFIGS]))
        message.content = RecordDict({**message.content, RECORD_KEY_CONFIGS: configs})
        reply = secaggplus_mod(message, self._contexts[node], self._fit)
        self._count(reply)
        return reply

    def _fit(self, message: Message, context: Context) -> Message:
        result = FitRes(
            status=Status(Code.OK, ""),
            parameters=ndarrays_to_parameters([self._vectors[context.node_id]]),
            num_examples=1,
            metrics={},
        )
        return Message(compat.fitres_to_recorddict(result, False), reply_to=message)

    def _count(self, message: Message) -> None:
        began = time.process_time()
        record = message.content.config_records[RECORD_KEY_CONFIGS]
        self.sent += config_record_to_proto(record).ByteSize()
        self.counting += time.process_time() - began


def flower(vectors: list[Array], threshold: int) -> tuple[float, int, Array]:
    """Processor seconds, bytes and the mean of the vectors."""
    manager, count = SimpleClientManager(), len(vectors)
    for node in range(1, count + 1):
        manager.register(Proxy(node))  # type: ignore[arg-type]
    strategy = FedAvg(min_fit_clients=count, min_available_clients=count)
    plain = Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config={}, series_id=1)
    context = LegacyContext(plain, strategy=strategy, client_manager=manager)
    context.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: 1})
    start = ndarrays_to_parameters([np.zeros(1)])
    context.state.array_records[MAIN_PARAMS_RECORD] = compat.parameters_to_arrayrecord(start, False)
    grid = HandedOver(dict(enumerate(vectors, 1)))
    # all examples weigh 1; a clipping range of 1 holds the vectors
    workflow = SecAggPlusWorkflow(1.0, threshold, max_weight=1.0, clipping_range=1.0)
    began = time.process_time()
    workflow(grid, context)  # type: ignore[arg-type]
    spent = time.process_time() - began - grid.counting
    summed = compat.arrayrecord_to_parameters(context.state.array_records[MAIN_PARAMS_RECORD], True)
    return spent, grid.sent, parameters_to_ndarrays(summed)[0]


def ours(vectors: list[Array], cohort: Cohort, rounds: int) -> tuple[float, int, Array]:
    """The same for a round of ours, with its part of the set-up."""
    sent: list[bytes] = []
    encoding = NoiseShare(1.0, cohort).encoding(bound=1.0)
    began = time.process_time()
    summation = SecureSum(cohort, vectors[0].size, rounds, sent.append)
    for _ in range(rounds):
        words = {number: encoding.encode(vector) for number, vector in enumerate(vectors)}
        total = encoding.decode(summation.total(words))
    spent = time.process_time() - began
    return spent / rounds, sum(map(_travelled(cohort), sent)) // rounds, total / len(vectors)


def _travelled(cohort: Cohort) -> Any:
    """Bytes of a message on all its ways: what the coordinator tells everybody goes out to each party."""

    def travelled(message: bytes) -> int:
        step = Step(message[STEP_PLACE])
        everybody = step in FROM_COORDINATOR and step != Step.INBOX
        return len(message) * (cohort.parties if everybody else 1)

    return travelled


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--numbers", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 13])
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 0, 1  # Flower's messages bear them
    cohort = Cohort(chosen.parties, dropouts=min(2, (chosen.parties - 2) // 4))
    generator = np.random.default_rng(0)
    vectors = [generator.uniform(-1.0, 1.0, chosen.numbers) for _ in range(chosen.parties)]
    mean = np.mean(vectors, axis=0)
    seconds, sent, found = min(
        (flower(vectors, cohort.threshold) for _ in range(chosen.repeats)), key=lambda each: each[0]
    )
    np.testing.assert_allclose(found, mean, atol=1e-4)
    print(
        f"{chosen.parties} parties, {chosen.numbers:,} numbers, any {cohort.threshold} open a secret; all parties and "
        "the coordinator together, per round"
    )
    print(f"Flower's SecAgg+:      {seconds * 1e3:8.1f} ms {sent:>12,} bytes")
    for rounds in chosen.rounds:
        own_seconds, own_sent, found = min(
            (ours(vectors, cohort, rounds) for _ in range(chosen.repeats)), key=lambda each: each[0]
        )
        np.testing.assert_allclose(found, mean, atol=1e-8)
        print(
            f"ours, {rounds:>3} rounds a run: {own_seconds * 1e3:7.1f} ms {own_sent:>12,} bytes; "
            f"ratio {own_seconds / seconds:.2f} in time, {own_sent / sent:.2f} in bytes"
        )
    noise, source = NoiseShare(1.0, cohort), SecureRandomness()
    began = time.process_time()
    for _ in vectors:
        noise.draw(chosen.numbers, source)
    print(f"noise of all parties:  {(time.process_time() - began) * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
