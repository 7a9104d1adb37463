"""Defects of rows on a cluster: in the clear, out of order, noise on workers, rows that change or leave."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

HERE = ("estimators/cluster/test_fit_here.py",)
THERE = ("estimators/cluster/test_cluster.py",)
PARTS = ("estimators/cluster/test_partition.py",)
SUMS = ("erm/test_summed.py",)
SERVED = ("service/test_training_on_cluster.py",)

SUMMED = "erm/summed.py"
WORKERS = "estimators/cluster/workers.py"
PARTITION = "estimators/cluster/partition.py"
HELD = "estimators/cluster/held.py"
ROWS = "estimators/cluster/rows.py"

# fmt: off
MUTANTS = [
    Mutant("cluster: rows in the clear", WORKERS, 'if not (address.startswith("tls://") or is_local(address)):', "if False:", SERVED),
    Mutant("cluster: every host is this machine", WORKERS, "ipaddress.ip_address(parts.hostname or \"\").is_loopback", "True", SERVED),
    Mutant("cluster: a worker in the clear reads", PARTITION, "    check_address(address)\n", "", PARTS),
    Mutant("cluster: only the first workers are looked at", HELD, "            self._check_workers()\n", "            pass\n", HERE),
    Mutant("cluster: no certificate of one's own", ROWS, 'if address.startswith("tls://") and None in files.values():', "if False:", THERE),
    Mutant("cluster: any version", WORKERS, "if self.version != version:", "if False:", (*PARTS, *HERE)),
    Mutant("cluster: rows on a worker's disk", WORKERS, "not isinstance(get_worker().data, dict)", "False", HERE),
    Mutant("cluster: places are told the linear term", SUMMED, "value, gradient = self._places.total(RowsAt.sums, coefficients)", "self._places.total(RowsAt.mass); value, gradient = self._places.total(RowsAt.sums, coefficients); self._places.total(RowsAt.sums, self.linear)", SUMS),
    Mutant("cluster: sums as they come", SUMMED, "return [pairwise_sum(column, column[0].shape) for column in columns]", "return [np.sum(np.array(column), axis=0) + 0.0 for column in columns]", SUMS),
    Mutant("cluster: any number of partitions", SUMMED, "if len(rows) > MOST_PLACES or max(rows, default=0) > MOST_ROWS_OF_A_PLACE:", "if False:", SUMS),
    Mutant("cluster: a partition travels with its rows", PARTITION, "        return Receipt, (self.receipt.rows, self.receipt.digest, self.receipt.worker, self.receipt.token)\n", "        return Partition, (self.receipt, self._cells, self._goal, self._owners)\n", PARTS),
    Mutant("cluster: a partition that was read again unasked answers", PARTITION, "if partition.receipt.token != token:", "if False:", PARTS),
    Mutant("cluster: rows of persons without weights", PARTITION, "if self._owners is not None and self._weights is None:", "if False:", PARTS),
    Mutant("cluster: the digest forgets answers", PARTITION, "[answers] if owners is None else [answers, owners.of_row, owners.keys]", "[] if owners is None else [owners.of_row, owners.keys]", PARTS),
    Mutant("cluster: rows may change", HELD, "if known is not None and known != receipt.digest:", "if False:", THERE),
    Mutant("cluster: a worker's error quotes a cell", PARTITION, 'f"a worker failed with {type(error).__name__}: its memory may be too small"', 'f"a worker failed with {error}"', PARTS),
    Mutant("cluster: a person weighs once in each partition", PARTITION, "np.split((1.0 / rows)[person.ravel()], ends)", "np.split(1.0 / np.concatenate(counts), ends)", (*PARTS, *HERE)),
    Mutant("cluster: identifiers without the secret", PARTITION, "hashlib.blake2b(name.encode(), digest_size=16, key=secret)", "hashlib.blake2b(name.encode(), digest_size=16)", PARTS),
    Mutant("cluster: rows stay after the fit", HELD, "        self._forget(range(len(self._futures)))\n", "        pass\n", HERE),
    Mutant("cluster: what was paid is not said", "ledger/charge.py", 'message = f"{error}. {self.cost.guarantee} {recorded}: whoever saw this may have learnt something"', 'message = str(error)', THERE),
]
