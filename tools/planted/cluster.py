"""Defects of rows on a cluster: in the clear, out of order, noise on workers, rows that change or leave."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import Mutant

HERE = ("estimators/cluster/test_fit_here.py",)
THERE = ("estimators/cluster/test_cluster.py",)
PARTS = ("estimators/cluster/test_partition.py",)
SUMS = ("solvers/test_summed.py",)
SERVED = ("server/test_training_on_cluster.py",)


# fmt: off
MUTANTS = [
    Mutant("cluster: rows in the clear", "privlearn.estimators.cluster.workers:check_address", "not (address.startswith('tls://') or is_local(address))", "False", SERVED),
    Mutant("cluster: every host is this machine", "privlearn.estimators.cluster.workers:is_local", "ipaddress.ip_address(parts.hostname or '').is_loopback", "True", SERVED),
    Mutant("cluster: a worker in the clear reads", "privlearn.estimators.cluster.partition:_load", "check_address(address)", "", PARTS),
    Mutant("cluster: only the first workers are looked at", "privlearn.estimators.cluster.remote_rows:RemoteRows._load", "self._check_workers()", "pass", HERE),
    Mutant("cluster: no certificate of one's own", "privlearn.estimators.cluster.rows:Cluster.__init__", "address.startswith('tls://') and None in files.values()", "False", THERE),
    Mutant("cluster: any version", "privlearn.estimators.cluster.workers:WorkerProperties.check", "self.version != version", "False", (*PARTS, *HERE)),
    Mutant("cluster: rows on a worker's disk", "privlearn.estimators.cluster.workers:WorkerProperties.here", "not isinstance(get_worker().data, dict)", "False", HERE),
    Mutant("cluster: places are told the linear term", "privlearn.solvers.summed:_Summed.sums", "value, gradient = self._partitions.total(PartitionRows.sums, coefficients)", """
        self._partitions.total(PartitionRows.mass)
        value, gradient = self._partitions.total(PartitionRows.sums, coefficients)
        self._partitions.total(PartitionRows.sums, self.linear)
    """, SUMS),
    Mutant("cluster: sums as they come", "privlearn.solvers.summed:sums_in_order", "pairwise_sum(column, column[0].shape)", "np.sum(np.array(column), axis=0) + 0.0", SUMS),
    Mutant("cluster: any number of partitions", "privlearn.solvers.summed:check_partitions", "len(rows) > MAX_PARTITIONS or max(rows, default=0) > MAX_PARTITION_ROWS", "False", SUMS),
    Mutant("cluster: a partition travels with its rows", "privlearn.estimators.cluster.partition:Partition.__reduce__", "Receipt, (self.receipt.rows, self.receipt.digest, self.receipt.worker, self.receipt.token)", "Partition, (self.receipt, self._cells, self._targets, self._owners)", PARTS),
    Mutant("cluster: a partition that was read again unasked answers", "privlearn.estimators.cluster.partition:answer_query", "partition.receipt.token != token", "False", PARTS),
    Mutant("cluster: rows of persons without weights", "privlearn.estimators.cluster.partition:Partition.prepare", "self._owners is not None and self._weights is None", "False", PARTS),
    Mutant("cluster: the digest forgets answers", "privlearn.estimators.cluster.partition:_digest", "[column for column in columns_of_numbers if column is not None]", "[]", PARTS),
    Mutant("cluster: rows may change", "privlearn.estimators.cluster.remote_rows:RemoteRows._check_receipt", "expected is not None and expected != receipt.digest", "False", THERE),
    Mutant("cluster: a worker's error quotes a cell", "privlearn.estimators.cluster.partition:or_refusal", "f'a worker failed with {type(error).__name__}: its memory may be too small'", "f'a worker failed with {error}'", PARTS),
    Mutant("cluster: a person weighs once in each partition", "privlearn.estimators.cluster.partition:_count_persons", "shares[person]", "1.0 / np.concatenate(sums[0])", (*PARTS, *HERE)),
    Mutant("cluster: identifiers without the secret", "privlearn.estimators.cluster.partition:Owners.of", "key=secret", "", PARTS),
    Mutant("cluster: rows stay after the fit", "privlearn.estimators.cluster.remote_rows:RemoteRows.release_rows", "self._forget(range(len(self._futures)))", "pass", HERE),
    Mutant("cluster: what was paid is not said", "privlearn.budget.charge:Charge._run", "f'{error}. {self.cost.guarantee} {recorded}: this failure may reveal something about the rows'", "str(error)", THERE),
]  # fmt: skip
