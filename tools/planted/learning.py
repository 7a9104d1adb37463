"""Defects between a table and a released model: encoding, solving, certificates; and of audits."""
# ruff: noqa: E501 - one line per mutant reads as a table

from __future__ import annotations

from tools.planted.mutant import (
    AUDIT,
    BOUGHT,
    CALLERS,
    DEFECTS,
    LABELS,
    PERSONS,
    REACHED,
    RELEASE,
    ROWS,
    WEAK,
    Mutant,
)

REGULARIZERS = ("estimators/test_regularizers.py",)
ALONE = ("data/test_row_local.py",)
FACTS = ("solvers/test_loss_checks.py",)
EQUAL = ("features/test_equal_blocks.py",)
STORED = ("data/test_addresses.py", "data/test_stored_tables.py")
RESOLUTION = ("data/test_resolution.py", "estimators/test_column_bounds.py")
TABLES = ("data/test_lookup_rows.py",)

WEIGHTS = ("estimators/test_weights.py",)

MUTANTS = [
    Mutant("storage: a key in an address", "privlearn.data.sources.addresses:table_path", "'@' in host or _OPTIONS_IN_ADDRESS.search(rest)", "False", STORED),
    Mutant("storage: rows in the clear", "privlearn.data.sources.addresses:check_endpoint", "parts.scheme == 'http' and (not is_loopback(parts.hostname))", "False", STORED),
    Mutant("storage: written again unnoticed", "privlearn.data.sources.addresses:StoredPath.state", "'Last-Modified', 'ETag'", "", STORED),
    Mutant("class weight not in the task", "privlearn.estimators.training_rows:ClassTargets.weight_bound", "float(self.class_weights.max())", "1.0", DEFECTS),
    Mutant("rows per person not in the task", "privlearn.estimators.learner:Learner.task_of", "rows_per_person=rows.rows_per_person", "", DEFECTS),
    Mutant("classes from the data", "privlearn.estimators.target_readers:ClassReader.read_array", "private and self.classes is None", "False", DEFECTS),
    Mutant("norm bound from the data", "privlearn.estimators.learner:Learner._check_arrays", "private and self.norm_bound is None and (self.column_bounds is None)", "False", DEFECTS),
    Mutant("clip removed", "privlearn.data.encoding.arrays:ArrayEncoder._factors", "np.maximum(np.sqrt(squares), self.clip_bound / divisor)", "self.clip_bound / divisor", DEFECTS),
    Mutant("intercept outside the norm bound", "privlearn.data.encoding.arrays:ArrayEncoder.__init__", "whole * self.row_bound", "whole", DEFECTS),
    Mutant("fine rows: not divided by their norm", "privlearn.data.encoding.expansion:RowExpander._expand_resolved", "rescale_sparse(encoded)", "", RESOLUTION),
    Mutant("fine rows: a period's last slots in falling order", "privlearn.data.encoding.feature_groups:HatFunctions.entries", """
        if self._is_cyclic:
            ...
    """, """
        if False:
            ...
    """, ALONE),
    Mutant("blocks: a last part is left out", "privlearn.data.sources.row_source:_parts", "range(0, rows, size)", "range(0, rows - size + 1, size)", ("data/test_sources.py",)),
    Mutant("blocks: some rows come in another order", "privlearn.data.encoding.packed_cells:PackedCells.take", "_stack([part[name] for part in parts])[back]", "_stack([part[name] for part in parts])", ("data/test_packed_cells.py",)),
    Mutant("blocks: cells beyond memory are lost", "privlearn.data.encoding.packed_cells:PackedCells._pack_waiting", "self._blocks.append(self._write(block) if self._bytes > MEMORY_LIMIT else block)", "if self._bytes > MEMORY_LIMIT: return; self._blocks.append(block)", ("data/test_packed_cells.py",)),
    Mutant("blocks: cells in the file stay in memory", "privlearn.data.encoding.packed_cells:PackedBlock.without_arrays", "[np.broadcast_to(np.zeros(1, array.dtype), array.shape) for array in arrays]", "arrays", ("data/test_packed_cells.py",)),
    Mutant("tables: a gap counts as the last bin", "privlearn.data.encoding.lookup_rows:_ColumnValues.__init__", "np.where(cells.present, cells.bins(layout.grid), layout.grid)", "cells.bins(layout.grid)", TABLES),
    Mutant("tables: a missing cell fills a bin", "privlearn.data.encoding.lookup_rows:_ColumnValues.bin_product", "coefficients.take(self._bins) * self._present", "coefficients.take(self._bins)", TABLES),
    Mutant("tables: a missing cell is counted in its bin", "privlearn.data.encoding.lookup_rows:_ColumnValues.add_sums", "fine * self._present", "fine", TABLES),
    Mutant("tables: gaps take their share of the norm", "privlearn.data.encoding.lookup_rows:LookupRows._squares", "not all((column.is_complete for column in self._columns))", "False", TABLES),
    Mutant("tables: bins are not divided by the norm", "privlearn.data.encoding.lookup_rows:LookupRows.__matmul__", "self._fine_factor * fine", "fine", TABLES),
    Mutant("tables: the intercept is forgotten", "privlearn.data.encoding.lookup_rows:LookupRows._coarse_product", "product += coefficients[-1]", "pass", TABLES),
    Mutant("tables: every table begins at the first cell", "privlearn.data.encoding.lookup_rows:LookupTables.__init__", "starts[:-1] - starts[0]", "0 * starts[:-1]", TABLES),
    Mutant("tables: a pair is told by two tables", "privlearn.data.encoding.table_cover:cover_pairs", "[pair for pair in left if pair not in tables[table]]", "left[1:]", TABLES),
    Mutant("tables: more roundings than are certified", "privlearn.solvers.problem:_tables_of", "tables.product_depth > product_chain(features.shape[1])", "False", TABLES),
    Mutant("tables: longer sums than are certified", "privlearn.solvers.problem:_tables_of", "tables if tables.sum_depth <= SPARSE_BLOCK else None", "tables", TABLES),
    Mutant("tables: blocks of any length", "privlearn.data.sources.row_source:EncodedRows.map_blocks", "tables.max_rows", "BLOCK", TABLES),
    Mutant("blocks: margins in the file are another row's", "privlearn.data.sources.passes:NumbersInFile.__getitem__", "range(start, stop, stride)", "range(start, stop, stride - 1)", ("data/test_spill.py",)),
    Mutant("fine rows: a missing cell fills a bin", "privlearn.data.encoding.expansion:RowExpander._fill", "values[rows, entry] = 0.0", "pass", RESOLUTION),
    Mutant("fine rows: an empty bin takes its share of the norm", "privlearn.data.encoding.expansion:RowExpander._fine_squares", "count - sum(lost)", "count", RESOLUTION),
    Mutant("fine rows: noise that grows with the features is not reckoned with", "privlearn.data.encoding.resolution:choose_resolution", "if grows:\n    return Resolution(knots=knots)", "pass", RESOLUTION),
    Mutant("knots do not follow the noise", "privlearn.data.encoding.resolution:_choose_knots", "KNOTS if best >= math.sqrt(FEW_KNOTS * KNOTS) else FEW_KNOTS", "KNOTS", RESOLUTION),
    Mutant("fine rows: a release forgets its resolution", "privlearn.release.encoders:_schema_encoder", "'resolution' in record", "False", RESOLUTION),
    Mutant("plain cells: numbers beyond floats", "privlearn.data.encoding.readers:plain_number", "type(cell) in (int, float) and -EXACT < cell < EXACT", "type(cell) in (int, float)", ALONE),
    Mutant("plain cells: equal values of another type", "privlearn.data.encoding.readers:ValueIndex.find", "self._indices.get(cell) if type(cell) is self._type else None", "self._indices.get(cell)", ALONE),
    Mutant("plain cells: many rows read as one", "privlearn.data.encoding.readers:single_row", "len(data[name]) == 1", "data[name]", ALONE),
    Mutant("plain cells: minus zero has bits of its own", "privlearn.data.encoding.readers:plain_number", "float(cell) + 0.0", "float(cell)", ALONE),
    Mutant("features: a last block as short as it is", "privlearn.features.feature_map:_block", "len(block) == size", "True", EQUAL),
    Mutant("features: a user's kernel in blocks", "privlearn.features.landmarks:LandmarkFeatures.kernel_values", "self._block_size if self.kernel.is_row_local else 1", "self._block_size", EQUAL),
    Mutant("digest without the names of columns", "privlearn.data.schema.schema:Schema.properties", """
        if self.file.names:
            ...
    """, """
        if False:
            ...
    """, ("data/test_file_formats.py",)),
    Mutant("features: places not tried", "privlearn.features.feature_map:block_size", "ROWS if all(map(treats_rows_alike, matrices)) else 1", "ROWS", EQUAL),
    Mutant("features: columns at an edge", "privlearn.features.feature_map:with_whole_groups", "np.pad(matrix, ((0, 0), (0, lacking))) if lacking else matrix", "np.pad(matrix, ((0, 0), (0, lacking))) if False else matrix", EQUAL),
    Mutant("cell by cell: the thirtieth of February", "privlearn.data.sources.read_columns:_parse_days", "pc.and_(_matches(text, cell_grammar.DATE), pc.fill_null(same, False))", "_matches(text, cell_grammar.DATE)", ("data/test_dates_and_orders.py",)),
    Mutant("NaN rows accepted", "privlearn.data.encoding.arrays:_refuse_non_finite", "not np.isfinite(entries).all()", "False", DEFECTS),
    Mutant("cell by cell: type of a column found by all of its cells", "privlearn.data.sources.table:_arrow", """
        if not _is_uniform(values):
            return _mixed_array(values)
    """, "", ROWS),
    Mutant("cell by cell: listed integers that floats cannot tell apart", "privlearn.data.schema.public:distinct_values", "abs(value) >= EXACT", "abs(value) >= 2 ** 64", ROWS),
    Mutant("cell by cell: decimals rounded by their column's scale", "privlearn.data.sources.read_columns:floats", """
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.string())
    """, "", ROWS),
    Mutant("cell by cell: integers counted beyond floats", "privlearn.data.encoding.column_cells:_listable", "np.abs(cells) < EXACT", "np.abs(cells) < 2.0 ** 62", (*ROWS, "statistics/discovery/test_discover.py")),
    Mutant("cell by cell: persons that floats cannot tell apart", "privlearn.data.encoding.column_cells:_digits", "(np.abs(values[present]) < EXACT) & (values[present] == np.rint(values[present]))", "values[present] == np.rint(values[present])", ROWS),
    Mutant("cell by cell: persons told apart by spelling", "privlearn.data.encoding.column_cells:people", r"pc.replace_substring_regex(spellings, _SPELLED_WHOLE, '\\1\\2')", "spellings", ROWS),
    Mutant("cell by cell: unreadable cells count as missing", "privlearn.data.sources.read_columns:_parts", "[(None, column)] if UNREADABLE in present else []", "[]", ROWS),
    Mutant("cell by cell: text among numbers counts as missing", "privlearn.data.sources.read_columns:_numbers_from_text", "raise _unreadable(rules, label)", "return pa.nulls(len(text), pa.float64())", ("data/test_cells.py",)),
    Mutant("cell by cell: line breaks read by where a block ends", "privlearn.data.sources.csv_lines:_split", """form.line_breaks and b'"' in text""", "False", ("data/test_read_right_or_refused.py",)),
    Mutant("files: a code for a gap is a cell", "privlearn.data.schema.cell_grammar:CellRules.__init__", "*(codes_without_blanks if self.strips else codes)", "", ("data/test_file_formats.py",)),
    Mutant("files: how a table is written changes its digest", "privlearn.data.schema.schema:Schema.properties", "content.pop('file', None)", "", ("data/test_file_formats.py",)),
    Mutant("labels: merged ones are not one class", "privlearn.data.encoding.encoder:SchemaEncoder.encode_labels", "np.array(target.class_indices)[indices]", "np.minimum(indices, 1)", ("data/test_merged_classes.py",)),
    Mutant("weights: a schema's do not count", "privlearn.estimators.reading:class_weights_of", "None if target.class_weights is None else np.array(target.class_weights)", "None", ("estimators/test_schema_forms.py",)),
    Mutant("weights: a candidate inherits those of another", "privlearn.estimators.target_readers:ClassReader.apply_weights", "weights = check_class_weight(self.class_weight, targets.classes)", """
        weights = check_class_weight(self.class_weight, targets.classes)
        if weights is None:
            return rows
    """, ("estimators/selection/test_private_search.py",)),
    Mutant("cell by cell: labels made one type by numpy", "privlearn.estimators.reading:as_answers", "dtype=object", "", LABELS),
    Mutant("cell by cell: classes that floats cannot tell apart", "privlearn.estimators.target_readers:_are_labels", "(array == np.rint(array)) & (array > -EXACT) & (array < EXACT)", "array == np.rint(array)", LABELS),
    Mutant("cell by cell: scikit-learn looks at the labels", "privlearn.estimators.target_readers:ClassReader.read_array", "check_same_length(X, answers)", """
        check_same_length(X, answers)
        __import__('sklearn.utils.multiclass').utils.multiclass.check_classification_targets(answers)
    """, LABELS),
    Mutant("persons: nobody asks what a person is", "privlearn.data.sources.schema_columns:refuse_unclear_persons", """
        if identifiers:
            ...
    """, """
        if False:
            ...
    """, PERSONS),
    Mutant("gaps: codes of a table in memory are cells", "privlearn.data.encoding.encoder:SchemaEncoder.cells", "read_block(block, list(self.schema.columns), self.schema)", "as_table(block, list(self.schema.columns))", ("data/test_gaps.py",)),
    Mutant("persons: a feature is never an identifier", "privlearn.data.sources.schema_columns:possible_person_columns", "not isinstance(kind, NumberColumn | TextColumn)", "", PERSONS),
    Mutant("persons: estimators do not ask what a person is", "privlearn.estimators.reading:read_columns", "open_table(X, schema, names)", "as_source(X, names)", PERSONS),
    Mutant("persons: files do not ask what a person is", "privlearn.data.sources.files:open_records", "refuse_unclear_persons(schema, [*names_in(file, schema.file), *partition(file, root)])", "pass", PERSONS),
    Mutant("persons: silence about persons changes the digest", "privlearn.data.schema.schema:Schema", "('one_row_per_person', 'weight', 'private_bounds', 'pairs', 'file')", "('weight', 'private_bounds', 'pairs', 'file')", PERSONS),
    Mutant("losses: facts of an added one are not measured", "privlearn.solvers.losses:_refuse_unfit", "check_properties(loss)", "", ("extension/test_guests.py", *FACTS)),
    Mutant("losses: facts are not measured at other parameters", "privlearn.solvers.losses:loss_from_name", "check_properties(kind(width=width))", "kind(width=width)", ("extension/test_guests.py",)),
    Mutant("losses: a sign that is not known", "privlearn.solvers.loss_checks:_claims", "loss.monotone", "False", FACTS),
    Mutant("kernels: an added one need not state its bound", "privlearn.features.kernels:register_kernel", "('name', 'bound')", "('name',)", ("extension/test_guests.py",)),
    Mutant("kernels: an added one may be abstract", "privlearn.imports:register", "missing += sorted(getattr(kind, '__abstractmethods__', ()))", "", ("extension/test_guests.py",)),
    Mutant("solver returns what it has", "privlearn.solvers.descent:descend", "certified <= tolerance", "certified <= max(tolerance, 0.0001)", DEFECTS),
    Mutant("solver: a long text makes it fail", "privlearn.solvers.problem:_sparse_products", "np.max(lengths, initial=0) <= PIECE", "True", REACHED),
    Mutant("solver: margins err more than stated", "privlearn.solvers.certifiable:product_chain", "dimension if dimension <= PIECE else PIECE + -(-dimension // PIECE)", "1", ("solvers/test_solve.py", *REACHED)),
    Mutant("solver: public tolerance forgets the linear term", "privlearn.solvers.certifiable:minimiser_norm_bound", "linear_norm / (2.0 * regularization)", "0.0", REACHED),
    Mutant("solver: no room over the rounding errors", "privlearn.solvers.certifiable:min_tolerance", "SOLVER_MARGIN * rounding.bound(max_norm)", "0.25 * rounding.bound(max_norm)", REACHED),
    Mutant("solver: no regularization is too small", "privlearn.solvers.certifiable:min_tolerance", "growth < MAX_GROWTH", "True", (*REACHED, *DEFECTS)),
    Mutant("solver: gives up where values look alike", "privlearn.solvers.descent:_step", "after.value < point.value - rounding", "True", REACHED),
    Mutant("solver: jumps across corners for ever", "privlearn.solvers.objective:Objective.second_derivatives_between.mean_derivative", "np.clip(mean, local, self.loss.smoothness)", "local", REACHED),
    Mutant("solver: the hinge has one attempt", "privlearn.solvers.hinge:TO_THE_BOUNDARY", "(0.995, 0.9, 0.5, 0.7)", "(0.995,)", REACHED),
    Mutant("solver: the hinge divides by any weight", "privlearn.solvers.hinge:_InteriorPoint.__init__", "weights > NEGLIGIBLE", "weights > 0.0", ("solvers/test_hinge.py",)),
    Mutant("solver: the hinge's public gap ignores rounding", "privlearn.solvers.certifiable:min_gap", "GAP_MARGIN * rounding.bound(max_norm)", "0.01 * rounding.bound(max_norm)", REACHED),
    Mutant("solver: the kernel machine has one attempt", "privlearn.solvers.kernel.dual:_minimise_smooth", "_newton(gram, losses, total, gap, linear_start(gram, losses, total), progress)", "found", REACHED),
    Mutant("solver: the kernel's public gap ignores the Gram matrix's error", "privlearn.solvers.kernel.gap:min_kernel_gap", "(wide_gamma(rows + 2) * max_entry + gram_error) * dual_sum + gamma(1) * margin", "wide_gamma(rows + 2) * max_entry * dual_sum * 1e-06", REACHED),
    Mutant("solver is asked for another tolerance than the task states", "privlearn.estimators.memory_oracle:MemoryOracle._minimiser", "task.tolerance", "1000.0 * task.tolerance", DEFECTS),
    Mutant("kernel machine claims the gap it steers by", "privlearn.solvers.kernel.hinge:HingeDual.minimise", "provable and reached <= gap", "reached <= gap", ("solvers/test_dual.py",)),
    Mutant("classes in another order than the schema's", "privlearn.release.model:_read_classes", "list(schema.target.classes) != labels", "set(schema.target.classes) != set(labels)", RELEASE),
    Mutant("a class named twice", "privlearn.release.model:_read_classes", "len(set(labels)) < max(len(labels), 2)", "False", RELEASE),
    Mutant("coefficients whose scores overflow", "privlearn.release.model:_has_coefficients", "bool(np.isfinite(2.0 * np.abs(model.coefficients).sum()))", "True", RELEASE),
    Mutant("certificate not checked", "privlearn.release.base_certificate:BaseCertificate.from_dict", "certificate._check(record)", "", RELEASE),
    Mutant("claim not recomputed", "privlearn.release.base_certificate:BaseCertificate._check", "mechanism.guarantee.is_private and (not mechanism.spends() <= mechanism.guarantee)", "False", RELEASE),
    Mutant("constants not compared", "privlearn.release.base_certificate:BaseCertificate._check", "not _same(mechanism.constants(), record['constants'])", "False", RELEASE),
    Mutant("words not compared", "privlearn.release.base_certificate:BaseCertificate._check", "not _same(self.to_dict(), record)", "False", RELEASE),
    Mutant("source of randomness not compared", "privlearn.release.base_certificate:BaseCertificate._check", "self.secure is not (self.randomness in SECURE_DESCRIPTIONS)", "False", RELEASE),
    Mutant("digests not checked", "privlearn.release.archive:SignedArchive._check_digests", "digest_of(members[name]) != digest", "False", RELEASE),
    Mutant("container not compared", "privlearn.release.archive:SignedArchive._read", "result.to_bytes() != raw", "False", RELEASE),
    Mutant("signature not checked", "privlearn.release.archive:SignedArchive._read", "result._check_signature()", "", RELEASE),
    Mutant("pickles allowed", "privlearn.release.archive:read_array", "allow_pickle=False", "allow_pickle=True", RELEASE),
    Mutant("bombs opened", "privlearn.release.archive:unpack", "not stored or sum((entry.file_size for entry in entries)) > len(raw)", "False", RELEASE),
    Mutant("certificate of another model", "privlearn.release.agreement:check_agreement", """
        if not agree:
            raise VerificationError('the certificate belongs to another model')
    """, "", RELEASE),
    Mutant("class weights beyond the certificate's", "privlearn.release.agreement:check_agreement", "model.is_weighted_by(task.weight_bound)", "", RELEASE),
    Mutant("landmark rows that waste their norm", "privlearn.features.landmarks:UnitLandmarkFeatures._fill", "math.sqrt(1.0 - INTERCEPT)", "0.5", ("features/test_unit_landmarks.py",)),
    Mutant("landmark rows not stretched before they are centred", "privlearn.features.landmarks:UnitLandmarkFeatures._fill", "rows *= self._stretch(rows)", "", ("features/test_unit_landmarks.py",)),
    Mutant("public mean of points that see themselves", "privlearn.features.landmarks:UnitLandmarkFeatures.__init__", "landmarks.leave_one_out_features()", "landmarks.transform(landmarks.public_points)", ("features/test_unit_landmarks.py",)),
    Mutant("public mean of the rows at hand", "privlearn.features.landmarks:UnitLandmarkFeatures._fill", "self.mean", "rows.mean(axis=0)", ("features/test_unit_landmarks.py", "features/test_feature_maps.py")),
    Mutant("wide rows of numbers are shrunk as classes are", "privlearn.estimators.calibration:_flat_balance", "task.centring is not None or task.dimension > task.total", "task.centring is not None", ("estimators/test_default_regularization.py",)),
    Mutant("softmax of few rows is shrunk as of many", "privlearn.estimators.calibration:_softmax_balance", "max(usual, float(usual ** (1.0 - _FLAT_WEIGHT) * flat**_FLAT_WEIGHT))", "usual", ("estimators/test_default_regularization.py",)),
    Mutant("a release forgets that its landmark rows have full length", "privlearn.release.encoders:encoder_from_dict", "record.get('unit', False) is True", "False", ("estimators/test_landmark_rows.py",)),
    Mutant("theorems about the kernel get other rows", "privlearn.estimators.kernel_features:_to_landmarks", "estimator.mechanism not in KERNEL_SPACE_MECHANISMS", "True", ("estimators/test_landmark_rows.py",)),
    Mutant("gamma from the rows", "privlearn.estimators.kernel_features:lift", """
        if estimator.public_points is not None:
            ...
    """, """
        object.__setattr__(kernel, 'gamma', float(1 + np.var(rows.features))) if hasattr(kernel, 'gamma') else None
        if estimator.public_points is not None:
            ...
    """, ("estimators/test_landmark_rows.py",)),
    Mutant("kernel above its bound accepted", "privlearn.features.kernel:Kernel._check_bound", "not np.all(diagonal <= self.bound * (1.0 + ROUNDING))", "False", ("features",)),
    Mutant("intercept not regularised", "privlearn.solvers.objective:SmoothObjective.at", "self.regularization * coefficients", "self.regularization * np.append(coefficients[:-1], 0.0)", DEFECTS),
    Mutant("equal bounds accepted", "privlearn.data.schema.public:check_bounds", "lower < upper", "lower <= upper", DEFECTS),
    Mutant("audit counts where it chose", "privlearn.audit.empirical:epsilon_bound", "event.count(first[chosen:]), event.count(second[chosen:])", "event.count(first[:-chosen]), event.count(second[:-chosen])", AUDIT),
    Mutant("audit ignores delta", "privlearn.audit.empirical:_bound", "at_least - delta", "at_least", AUDIT),
    Mutant("audit looks in one direction", "privlearn.audit.empirical:epsilon_bound", "(other, one)", "", AUDIT),
    Mutant("receipt not recomputed", "privlearn.release.base_certificate:BaseCertificate._check", "check_receipt(receipt)", "pass", BOUGHT),
    Mutant("receipt of other people", "privlearn.release.base_certificate:BaseCertificate._check", "receipt.check_covers(*self._rows_and_parties, self._counts_persons)", "", ("statistics/discovery",)),
    Mutant("receipt of fewer rows", "privlearn.data.schema.private_bounds:PrivateBounds.check_covers", "rows > self.rows_per_person", "", ("statistics/discovery",)),
    Mutant("receipt of other persons", "privlearn.data.schema.private_bounds:PrivateBounds.check_covers", "not is_same_column", "", ("statistics/discovery",)),
    Mutant("receipt of other neighbours", "privlearn.data.schema.private_bounds:add_private_bounds", "part.neighbours != guarantee.neighbours", "False", ("test_guarantee.py",)),
    Mutant("receipt of fewer parties", "privlearn.parties.run.agreement:Agreement.check_feasible", "self.parties_per_person, schema.person or False", "1, schema.person or False", ("parties/test_joint_discovery.py",)),
    Mutant("receipt silent about persons", "privlearn.statistics.discovery.measuring:_receipt", "draft.stand_in.person or False", "None", ("statistics/discovery",)),
    Mutant("seeded purchase called private", "privlearn.release.base_certificate:BaseCertificate.is_private", "all((part.secure for part in self.private_bounds))", "", BOUGHT),
    Mutant("weak: a large epsilon", "privlearn.guarantee:weakness", "guarantee.epsilon > MAX_EPSILON", "guarantee.epsilon > 2.0 * MAX_EPSILON", WEAK),
    Mutant("weak: a delta of 1/n", "privlearn.guarantee:weakness", "guarantee.delta >= 1.0 / records", "guarantee.delta > 1.0 / records", WEAK),
    Mutant("weak: no word needed", "privlearn.guarantee:check_strength", "weak and (not accepted)", "False", WEAK),
    Mutant("weak: any word will do", "privlearn.guarantee:check_strength", "not isinstance(accepted, bool)", "False", WEAK),
    Mutant("weak: a bought schema forgotten", "privlearn.budget.charge:Charge.guarantee", "add_private_bounds(self.cost.guarantee, () if self.schema is None else self.schema.private_bounds)", "self.cost.guarantee", WEAK),
    Mutant("weak: a certificate that keeps silent", "privlearn.release.base_certificate:BaseCertificate.to_dict", "{'weakness': self.weakness} if self.weakness else {}", "{}", WEAK),
    Mutant("weak: a certificate without its purchases", "privlearn.release.base_certificate:BaseCertificate.weakness", "self.together", "self.guarantee", WEAK),
    Mutant("epsilon that nobody stated", "privlearn.estimators.classifiers:PrivateLinearClassifier.__init__", "locals()", "locals() | {'epsilon': 1.0 if epsilon is None else epsilon}", WEAK),
    Mutant("callers: not looked at", "privlearn.estimators.estimator:PrivateEstimator._prepare_charge", """
        if guarantee.is_private and randomness.secure:
            check_callers(charging=self.ledger is not None)
    """, "", CALLERS),
    Mutant("callers: a fitted step", "privlearn.estimators.scikit_learn:_reads_rows", "bool(get_tags(step).requires_fit)", "False", CALLERS),
    Mutant("callers: a search in other processes", "privlearn.estimators.scikit_learn:check_callers", "searching or not _is_harmless(module)", "not _is_harmless(module)", CALLERS),
    Mutant("callers: a tool that seeds the noise", "privlearn.estimators.estimator:PrivateEstimator.set_params", "self.random_state is None", "False", CALLERS),
    Mutant("unlisted labels weigh something", "privlearn.estimators.training_rows:ClassTargets.weights", "(~self.ignored).astype(np.float64)", "np.ones(len(self.ignored))", BOUGHT),
    Mutant("regularizer: the public model's scores with the wrong sign", "privlearn.estimators.memory_oracle:MemoryOracle._offsets", "-scores if own is None else own - scores", "scores if own is None else own - scores", REGULARIZERS),
    Mutant("regularizer: the public model is forgotten in the release", "privlearn.estimators.training_rows:TrainingRows.model", "released, prior", "released, None", REGULARIZERS),
    Mutant("regularizer: rounding forgets the public model", "privlearn.mechanisms.task:Task._with_reachable_tolerance", "self.prior_norm + self.offset_bound", "self.offset_bound", REGULARIZERS),
    Mutant("offsets: rounding forgets them", "privlearn.mechanisms.task:Task._with_reachable_tolerance", "self.prior_norm + self.offset_bound", "self.prior_norm", ("estimators/test_offsets.py",)),
    Mutant("regularizer: weights below 1", "privlearn.estimators.regularizer:divide_by_weights", "given >= 1.0", "given > 0.0", REGULARIZERS),
    Mutant("regularizer: weights make rows longer", "privlearn.estimators.regularizer:divide_by_weights", "np.minimum(1.0 / np.sqrt(np.append(given, np.ones(encoder.dimension - len(given)))), 1.0)", "np.maximum(np.sqrt(np.append(given, np.ones(encoder.dimension - len(given)))), 1.0)", REGULARIZERS),
    Mutant("regularizer: coefficients of scaled rows leave", "privlearn.estimators.training_rows:TrainingRows.model", "MechanismOutput(released, prior, self.scales)", "MechanismOutput(released, prior, None)", REGULARIZERS),
    Mutant("regularizer: intervals of another regularizer", "privlearn.mechanisms.statistics.curvature:_loss_refusal", "task.prior_norm or task.largest_ridge != 1.0", "False", REGULARIZERS),
    Mutant("regularizer: C multiplies the mean", "privlearn.estimators.learner:Learner.regularization_for", "total * float(self.C)", "float(self.C)", REGULARIZERS),
    Mutant("weights: the cap is not in the noise", "privlearn.mechanisms.task:Task.max_weight", "self.weight_bound * self.row_weight_bound", "self.weight_bound", WEIGHTS),
    Mutant("weights: beyond the cap", "privlearn.data.encoding.row_weights:relative_weights", "np.minimum(clipped / cap, 1.0)", "weights / cap", WEIGHTS),
    Mutant("weights: a person's shares are rounded up", "privlearn.data.encoding.row_weights:row_shares", "masses * (1.0 + (rows + 2.0) * 2.0**-52)", "masses", WEIGHTS),
    Mutant("weights: the schema's cap is not compared", "privlearn.release.agreement:check_agreement", "_weighs_rows_like(model.encoder, task)", "", WEIGHTS),
    Mutant("weights: missing ones count", "privlearn.data.encoding.row_weights:read_weights", "weight.missing == 'refuse' and np.isnan(cells).any()", "False", WEIGHTS),
    Mutant("weights: mistakes are not weighed", "privlearn.estimators.training_rows:TrainingRows.counted", "product(self.person_weights, self.relative_weights)", "None", WEIGHTS),
    Mutant("persons: spellings of an identifier are persons", "privlearn.data.encoding.column_cells:_normalised", "_plain_text(text)", "text", PERSONS),
]  # fmt: skip
