//! Aggregates against plain recomputation: random changes, every way of emitting, restarts in between.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion_common::{Result as Outcome, ScalarValue};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, Volatility, create_udaf};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::changelog::ChangeBatch;
use crate::operators::testing::{call, changes, emitted, folded, saved, schema, type_of};
use crate::operators::{GroupAggregate, GroupAggregateParameters, Operator, Output};
use crate::state::KeyGroupRange;
use crate::types::{AggregateCall, AggregateFunction, MiniBatch, ProgramAggregate, SortColumn};

/// A row of the input: key, whole number, decimal, text, filter.
type Row = (i64, Option<i64>, Option<i64>, Option<char>, bool);

fn input() -> SchemaRef {
    schema("k BIGINT, i BIGINT, d DEC, t TEXT, f BOOL, x DOUBLE")
}

fn line(kind: &str, row: &Row) -> String {
    let cell = |cell: Option<String>| cell.unwrap_or_else(|| "_".to_string());
    let number = cell(row.1.map(|i| i.to_string()));
    let decimal = cell(row.2.map(|d| format!("{}.{:02}", d / 100, d % 100)));
    let text = cell(row.3.map(|t| t.to_string()));
    format!("{kind} {} {number} {decimal} {text} {} {number}\n", row.0, row.4)
}

fn with(mut call: AggregateCall, distinct: bool, filter: bool) -> AggregateCall {
    call.distinct = distinct;
    call.filter = filter.then_some(4);
    call
}

/// The values in the order of column 1 from the greatest down.
fn descending(mut call: AggregateCall, distinct: bool) -> AggregateCall {
    call.distinct = distinct;
    call.order = vec![SortColumn { column: 1, descending: true, nulls_first: false }];
    call
}

/// The bits of all numbers: takes any of them back.
#[derive(Debug, Default)]
struct Parity(i64);

impl Accumulator for Parity {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Outcome<()> {
        values[0].as_primitive::<Int64Type>().iter().flatten().for_each(|value| self.0 ^= value);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Outcome<()> {
        self.update_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Outcome<ScalarValue> {
        Ok(ScalarValue::Int64(Some(self.0)))
    }

    fn state(&mut self) -> Outcome<Vec<ScalarValue>> {
        // As the trait allows, what was told is gone.
        Ok(vec![ScalarValue::Int64(Some(std::mem::take(&mut self.0)))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Outcome<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of::<Parity>()
    }
}

/// All texts in a row: takes none of them back.
#[derive(Debug, Default)]
struct Chained(String);

impl Accumulator for Chained {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Outcome<()> {
        values[0].as_string::<i32>().iter().flatten().for_each(|value| self.0.push_str(value));
        Ok(())
    }

    fn evaluate(&mut self) -> Outcome<ScalarValue> {
        Ok(ScalarValue::from(self.0.as_str()))
    }

    fn state(&mut self) -> Outcome<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Outcome<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        self.0.len()
    }
}

fn of_program<A: Accumulator + Default + 'static>(name: &str, data_type: DataType) -> AggregateFunction {
    let make = Arc::new(|_: AccumulatorArgs<'_>| Ok(Box::<A>::default() as Box<dyn Accumulator>));
    let types = (vec![data_type.clone()], Arc::new(data_type.clone()), Arc::new(vec![data_type]));
    let function = create_udaf(name, types.0, types.1, Volatility::Immutable, make, types.2);
    AggregateFunction::Program(ProgramAggregate(Arc::new(function)))
}

fn calls(append_only: bool) -> Vec<AggregateCall> {
    use AggregateFunction::*;
    let mut calls = vec![
        call(Count, &[], "BIGINT"),
        call(Count, &[1], "BIGINT"),
        with(call(Count, &[1], "BIGINT"), true, false),
        with(call(Count, &[1], "BIGINT"), true, true),
        with(call(Count, &[3], "BIGINT"), true, false),
        call(Sum, &[1], "BIGINT"),
        with(call(Sum, &[1], "BIGINT"), true, true),
        with(call(SumZero, &[1], "BIGINT"), false, true),
        call(Avg, &[1], "BIGINT"),
        call(Min, &[1], "BIGINT"),
        with(call(Max, &[3], "TEXT"), false, true),
        call(Max, &[5], "DOUBLE"),
        call(Sum, &[2], "DEC38"),
        call(Avg, &[2], "DEC6"),
        call(Min, &[2], "DEC"),
        call(Variance { sample: false }, &[2], "DEC6"),
        descending(call(ListAgg { separator: "+".to_string() }, &[3], "TEXT"), false),
        descending(call(ListAgg { separator: "+".to_string() }, &[3], "TEXT"), true),
        descending(call(FirstValue, &[3], "TEXT"), false),
        descending(call(LastValue, &[3], "TEXT"), true),
        call(of_program::<Parity>("parity", DataType::Int64), &[1], "BIGINT"),
        with(call(of_program::<Parity>("parity", DataType::Int64), &[1], "BIGINT"), true, true),
        call(of_program::<Chained>("chained", DataType::Utf8), &[3], "TEXT"),
        call(ApproximateCountDistinct, &[1], "BIGINT"),
    ];
    if append_only {
        calls.extend([
            call(FirstValue, &[1], "BIGINT"),
            call(LastValue, &[3], "TEXT"),
            call(ListAgg { separator: "+".to_string() }, &[3], "TEXT"),
        ]);
    } else {
        calls.push(call(FirstValue, &[1], "BIGINT"));
        calls.push(call(ListAgg { separator: "+".to_string() }, &[3], "TEXT"));
    }
    calls
}

fn decimal(unscaled: i128, scale: u32) -> String {
    let power = 10_i128.pow(scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    let (whole, part) = (unscaled.abs() / power, unscaled.abs() % power);
    format!("{sign}{whole}.{part:0width$}", width = scale as usize)
}

fn rounded(numerator: i128, denominator: i128) -> i128 {
    (2 * numerator + denominator) / (2 * denominator)
}

/// What is left of a group: its rows, and the values of two columns in order of arrival. A retraction takes the first
/// equal value of each column, which need not be that of the row.
#[derive(Default)]
struct Group {
    rows: Vec<Row>,
    numbers: Vec<i64>,
    texts: Vec<char>,
    /// Texts with the number they are ordered by.
    ordered: Vec<(Option<i64>, char)>,
}

impl Group {
    fn add(&mut self, row: Row) {
        self.rows.push(row);
        self.numbers.extend(row.1);
        self.texts.extend(row.3);
        self.ordered.extend(row.3.map(|text| (row.1, text)));
    }

    fn retract(&mut self, row: Row) {
        fn remove<T: PartialEq>(values: &mut Vec<T>, value: T) {
            let first = values.iter().position(|other| *other == value).unwrap();
            values.remove(first);
        }
        remove(&mut self.rows, row);
        if let Some(number) = row.1 {
            remove(&mut self.numbers, number);
        }
        if let Some(text) = row.3 {
            remove(&mut self.texts, text);
            remove(&mut self.ordered, (row.1, text));
        }
    }
}

/// The result over a group, computed from scratch.
fn naive(group: &Group, append_only: bool) -> String {
    let (rows, texts) = (&group.rows, &group.texts);
    let null = || "NULL".to_string();
    let show = |value: Option<i64>| value.map_or_else(null, |v| v.to_string());
    let numbers: Vec<i64> = rows.iter().filter_map(|row| row.1).collect();
    let passing: Vec<i64> = rows.iter().filter(|row| row.4).filter_map(|row| row.1).collect();
    let set = |values: &[i64]| values.iter().copied().collect::<std::collections::BTreeSet<i64>>();
    let sum = |values: &[i64]| (!values.is_empty()).then(|| values.iter().sum::<i64>());
    let decimals: Vec<i128> = rows.iter().filter_map(|row| row.2).map(i128::from).collect();
    let (total, n) = (decimals.iter().sum::<i128>(), decimals.len() as i128);
    let squares: i128 = decimals.iter().map(|d| d * d).sum();
    let distinct: Vec<i64> = set(&passing).into_iter().collect();
    let of_decimals = |value: &dyn Fn() -> String| if n == 0 { null() } else { value() };
    let mut cells = vec![
        rows.len().to_string(),
        numbers.len().to_string(),
        set(&numbers).len().to_string(),
        set(&passing).len().to_string(),
        texts.iter().collect::<std::collections::BTreeSet<_>>().len().to_string(),
        show(sum(&numbers)),
        show(sum(&distinct)),
        passing.iter().sum::<i64>().to_string(),
        show(sum(&numbers).map(|sum| sum / numbers.len() as i64)),
        show(numbers.iter().copied().min()),
        rows.iter().filter(|row| row.4).filter_map(|row| row.3).max().map_or_else(null, |t| t.to_string()),
        numbers.iter().max().map_or_else(null, |v| format!("{v}.0")),
        of_decimals(&|| decimal(total, 2)),
        of_decimals(&|| decimal(rounded(total * 10_000, n), 6)),
        of_decimals(&|| decimal(*decimals.iter().min().unwrap(), 2)),
        of_decimals(&|| decimal(rounded((squares * n - total * total) * 100, n * n), 6)),
    ];
    // None is the least, and so the last from the greatest down.
    let mut ordered = group.ordered.clone();
    ordered.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let ordered: Vec<String> = ordered.into_iter().map(|(_, text)| text.to_string()).collect();
    let mut once: Vec<String> = Vec::new();
    ordered.iter().for_each(|text| {
        if !once.contains(text) {
            once.push(text.clone())
        }
    });
    let or_null = |text: String| if text.is_empty() { null() } else { text };
    cells.push(or_null(ordered.join("+")));
    cells.push(or_null(once.join("+")));
    cells.push(ordered.first().cloned().unwrap_or_else(null));
    cells.push(ordered.last().cloned().unwrap_or_else(null));
    cells.push(numbers.iter().fold(0, |bits, number| bits ^ number).to_string());
    cells.push(distinct.iter().fold(0, |bits, number| bits ^ number).to_string());
    cells.push(texts.iter().collect());
    cells.push(set(&numbers).len().to_string());
    let joined = texts.iter().map(char::to_string).collect::<Vec<_>>().join("+");
    cells.push(show(group.numbers.first().copied()));
    if append_only {
        cells.push(texts.last().map_or_else(null, |t| t.to_string()));
    }
    cells.push(if texts.is_empty() { null() } else { joined });
    cells.join(", ")
}

fn operator(append_only: bool, mini_batch: Option<MiniBatch>) -> GroupAggregate {
    let aggregates = calls(append_only);
    let mut fields = vec![Field::new("k", DataType::Int64, true)];
    fields.extend(aggregates.iter().map(|call| Field::new("result", call.output.data_type().clone(), true)));
    GroupAggregate::new(GroupAggregateParameters {
        input: input(),
        output: Arc::new(Schema::new(fields)),
        keys: vec![0],
        aggregates,
        append_only_input: append_only,
        emit_update_before: true,
        mini_batch,
        ttl_ms: 0,
        key_groups: KeyGroupRange::ALL,
    })
    .unwrap()
}

/// Random changes and what they leave of each group.
fn random_changes(seed: u64, append_only: bool) -> (ChangeBatch, BTreeMap<i64, Group>) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut live: BTreeMap<i64, Group> = BTreeMap::new();
    let mut text = String::new();
    for _ in 0..400 {
        let key = random.random_range(0..6);
        let group = live.entry(key).or_default();
        if !append_only && !group.rows.is_empty() && random.random_range(0..100) < 48 {
            let row = group.rows[random.random_range(0..group.rows.len())];
            group.retract(row);
            text += &line(if random.random() { "-D" } else { "-U" }, &row);
        } else {
            let some = |random: &mut StdRng| random.random_range(0..4) > 0;
            let number = some(&mut random).then(|| random.random_range(-3..4));
            let fixed = some(&mut random).then(|| random.random_range(0..1_000));
            let letter = some(&mut random).then(|| char::from(b'a' + random.random_range(0..4_u8)));
            let row = (key, number, fixed, letter, random.random());
            group.add(row);
            text += &line(if append_only || random.random() { "+I" } else { "+U" }, &row);
        }
    }
    live.retain(|_, group| !group.rows.is_empty());
    (changes(&input(), &text), live)
}

#[test]
fn every_way_of_emitting_and_restarting_folds_to_the_recomputed_table() {
    for seed in 0..24 {
        let append_only = seed % 3 == 0;
        let (batch, live) = random_changes(seed, append_only);
        let expected: BTreeMap<String, i64> =
            live.iter().map(|(key, group)| (format!("[{key}, {}]", naive(group, append_only)), 1)).collect();
        let bundle = |size| Some(MiniBatch { size, latency_ms: 0 });
        for (mini_batch, size) in
            [(None, 1), (None, 400), (None, 7), (bundle(1), 400), (bundle(50), 33), (bundle(9999), 400)]
        {
            for restart_every in [usize::MAX, 90] {
                let found = run(append_only, mini_batch, &batch, size, restart_every);
                let what = format!("seed {seed}, {mini_batch:?}, batches of {size}, restart {restart_every}");
                assert_eq!(folded(&found), expected, "{what}");
            }
        }
    }
}

/// Runs the changes with a snapshot every 30 rows and a restart, from all deltas, every `restart_every`.
fn run(
    append_only: bool,
    mini_batch: Option<MiniBatch>,
    batch: &ChangeBatch,
    size: usize,
    restart_every: usize,
) -> Vec<String> {
    let mut aggregate = operator(append_only, mini_batch);
    let (mut out, mut found) = (Output::default(), Vec::new());
    let (mut from, mut next_snapshot, mut next_restart, mut snapshots) = (0, 30, restart_every, Vec::new());
    while from < batch.len() {
        let length = size.min(batch.len() - from);
        aggregate.on_changes(0, batch.slice(from, length), &mut out).unwrap();
        from += length;
        if restart_every != usize::MAX && from >= next_snapshot {
            next_snapshot = from + 30;
            aggregate.before_barrier(&mut out).unwrap();
            snapshots.push(aggregate.snapshot(snapshots.len() as u64).unwrap());
            if from >= next_restart {
                next_restart = from + restart_every;
                aggregate = operator(append_only, mini_batch);
                aggregate.restore(saved(&snapshots)).unwrap();
            }
        }
        found.extend(emitted(&mut out));
    }
    aggregate.on_end(0, &mut out).unwrap();
    found.extend(emitted(&mut out));
    found
}

#[test]
fn sums_wrap_in_their_own_type_and_decimals_beyond_their_digits_are_null() {
    let one = |column: &str, function: AggregateFunction, output: &str, text: &str| {
        let input = schema(&format!("v {column}"));
        let mut operator = GroupAggregate::new(GroupAggregateParameters {
            input: Arc::clone(&input),
            output: Arc::new(Schema::new(vec![Field::new("result", type_of(output), true)])),
            keys: Vec::new(),
            aggregates: vec![call(function, &[0], output)],
            append_only_input: false,
            emit_update_before: false,
            mini_batch: None,
            ttl_ms: 0,
            key_groups: KeyGroupRange::ALL,
        })
        .unwrap();
        let mut out = Output::default();
        operator.on_changes(0, changes(&input, text), &mut out).unwrap();
        emitted(&mut out).pop().unwrap()
    };
    assert_eq!(one("TINYINT", AggregateFunction::Sum, "TINYINT", "+I 127\n+I 1"), "+U[-128]");
    assert_eq!(one("TINYINT", AggregateFunction::Avg, "TINYINT", "+I 127\n+I 1"), "+U[64]");
    assert_eq!(one("INT", AggregateFunction::Avg, "INT", "+I -2\n+I -1"), "+U[-1]");
    let nines = "999999999999999999999999999999999999.99";
    let beyond = format!("+I {nines}\n+I {nines}");
    assert_eq!(one("DEC38", AggregateFunction::Sum, "DEC38", &beyond), "+U[NULL]");
    assert_eq!(one("DEC38", AggregateFunction::Sum, "DEC38", &format!("{beyond}\n-D {nines}")), format!("+U[{nines}]"));
    let spread = AggregateFunction::Variance { sample: true };
    assert_eq!(one("INT", spread, "INT", "+I 5\n+I 7\n+I 5"), "+U[1]");
    let root = AggregateFunction::StandardDeviation { sample: false };
    assert_eq!(one("DOUBLE", root, "DOUBLE", "+I 5\n+I 7\n-D 5"), "+U[0.0]");
}
