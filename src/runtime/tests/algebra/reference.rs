//! What a query over tables at rest gives, computed in the plainest way.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::query::{
    Call, FrameEnd, Function, JoinKind, Order, OverFunction, Predicate, Ranking, Relation, Row, Scalar, SemiKind, Value,
};

/// The rows of the relation, in no order.
pub fn evaluate(relation: &Relation, tables: &[Vec<Row>]) -> Vec<Row> {
    let rows = |relation: &Relation| evaluate(relation, tables);
    match relation {
        Relation::Table(table, _) => tables[*table].clone(),
        Relation::Select { input, columns, filter, distinct } => {
            let kept = rows(input).into_iter().filter(|row| holds(filter, row));
            let project = |row: Row| columns.iter().map(|(of, _)| scalar(of, &row)).collect();
            let projected = kept.map(project).collect();
            if *distinct { unique(projected) } else { projected }
        }
        Relation::Aggregate { input, keys, sets, calls, having } => {
            let input = rows(input);
            let sets = if sets.is_empty() { vec![vec![true; keys.len()]] } else { sets.clone() };
            let groups = sets.iter().flat_map(|set| aggregate(&input, keys, set, calls));
            groups.filter(|row| holds(having, row)).collect()
        }
        Relation::Set { operation, all, left, right } => set(operation, *all, rows(left), rows(right)),
        Relation::Join { kind, left, right, pairs, condition } => {
            let widths = [left.types().len(), right.types().len()];
            join(*kind, &rows(left), &rows(right), widths, |l, r| matches(pairs, condition, l, r))
        }
        Relation::Semi { kind, anti, left, right } => {
            let right = rows(right);
            let keep = |row: &Row| {
                let found = match kind {
                    SemiKind::Exists { pairs, condition } => {
                        Some(right.iter().any(|other| matches(pairs, condition, row, other)))
                    }
                    SemiKind::In { left, right: column } => {
                        let equal =
                            right.iter().map(|other| compare(&row[*left], &other[*column]).map(Ordering::is_eq));
                        equal.fold(Some(false), or)
                    }
                };
                found == Some(!anti)
            };
            rows(left).into_iter().filter(keep).collect()
        }
        Relation::Subquery { left, right, function, column, pair } => {
            let right = rows(right);
            let with_result = |mut row: Row| {
                let matching =
                    |other: &&Row| pair.is_none_or(|(l, r)| compare(&row[l], &other[r]).is_some_and(Ordering::is_eq));
                let found: Vec<&Row> = right.iter().filter(matching).collect();
                // As in every streaming engine of this dialect, a global aggregate has no row before its first one.
                let nothing_yet = pair.is_none() && right.is_empty();
                let value = if nothing_yet { Value::Null } else { call(*function, *column, false, &found) };
                row.push(value);
                row
            };
            rows(left).into_iter().map(with_result).collect()
        }
        Relation::Rank { input, ranking, partition, order, range, shown } => {
            let partitions = partitioned(rows(input), partition);
            let ranked = partitions.into_values().flat_map(|rows| rank(*ranking, order, rows));
            let wanted = ranked.filter(|(rank, _)| (range.0..=range.1).contains(rank));
            let show = |(rank, mut row): (u64, Row)| {
                if *shown {
                    row.push(Value::Int(rank as i64));
                }
                row
            };
            wanted.map(show).collect()
        }
        Relation::Over { input, partition, order, range, frame, calls } => {
            let partitions = partitioned(rows(input), partition).into_values();
            partitions.flat_map(|rows| over(rows, order, *range, *frame, calls)).collect()
        }
        Relation::Limit { input, order, limit, offset } => {
            let mut rows = rows(input);
            rows.sort_by(|left, right| in_order(order, left, right));
            rows.into_iter().skip(*offset as usize).take(*limit as usize).collect()
        }
    }
}

fn partitioned(rows: Vec<Row>, partition: &[usize]) -> BTreeMap<Row, Vec<Row>> {
    let mut partitions: BTreeMap<Row, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let key = partition.iter().map(|column| row[*column].clone()).collect();
        partitions.entry(key).or_default().push(row);
    }
    partitions
}

/// The rows of a partition with the results of functions over their frames.
fn over(
    mut rows: Vec<Row>,
    order: &[Order],
    range: bool,
    frame: (FrameEnd, FrameEnd),
    calls: &[(OverFunction, usize, super::query::Type)],
) -> Vec<Row> {
    rows.sort_by(|left, right| in_order(order, left, right));
    let count = rows.len() as i64;
    let same = |left: &Row, right: &Row| in_order(order, left, right).is_eq();
    // How far behind `row` the value of `other` is, along the order; between NULLs, nothing; otherwise there is no telling.
    let distance = |row: &Row, other: &Row| match (&row[order[0].column], &other[order[0].column]) {
        (Value::Int(row), Value::Int(other)) if order[0].descending => Some(row - other),
        (Value::Int(row), Value::Int(other)) => Some(other - row),
        (Value::Null, Value::Null) => Some(0),
        _ => None,
    };
    let with_results = |(at, row): (usize, &Row)| {
        let in_frame = |(place, other): &(usize, &Row)| {
            let (after, before) = (*place >= at || same(row, other), *place <= at || same(row, other));
            let inside = |end: FrameEnd, start: bool| match end {
                None => true,
                Some(0) if range && start => after,
                Some(0) if range => before,
                // A NULL has no distance but its place at one end of the order.
                Some(end) if range => match distance(row, other) {
                    Some(distance) if row[order[0].column] != Value::Null => {
                        if start {
                            distance >= end
                        } else {
                            distance <= end
                        }
                    }
                    Some(_) => true,
                    None => {
                        if start {
                            after
                        } else {
                            before
                        }
                    }
                },
                Some(end) if start => *place as i64 - at as i64 >= end,
                Some(end) => *place as i64 - at as i64 <= end,
            };
            inside(frame.0, true) && inside(frame.1, false)
        };
        let frame: Vec<&Row> = rows.iter().enumerate().filter(in_frame).map(|(_, row)| row).collect();
        let first_peer = rows.iter().position(|other| same(row, other)).unwrap_or(0);
        let values = 1 + rows[..first_peer].chunk_by(|left, right| same(left, right)).count();
        let results = calls.iter().map(|(function, column, _)| {
            let value = |row: Option<&&Row>| row.map_or(Value::Null, |row| row[*column].clone());
            let known = |row: &&&Row| row[*column] != Value::Null;
            match function {
                OverFunction::Aggregate(function) => call(*function, *column, false, &frame),
                OverFunction::RowNumber => Value::Int(at as i64 + 1),
                OverFunction::Rank => Value::Int(first_peer as i64 + 1),
                OverFunction::DenseRank => Value::Int(values as i64),
                OverFunction::Ntile(parts) => {
                    let sizes = (0..*parts).map(|part| count / parts + i64::from(part < count % parts));
                    let ends = sizes.scan(0, |sum, size| {
                        *sum += size;
                        Some(*sum)
                    });
                    Value::Int(1 + ends.filter(|end| *end <= at as i64).count() as i64)
                }
                OverFunction::Lead(rows_on) => {
                    let place = usize::try_from(at as i64 + rows_on).ok();
                    place.and_then(|place| rows.get(place)).map_or(Value::Null, |row| row[*column].clone())
                }
                OverFunction::First => value(frame.iter().find(known)),
                OverFunction::Last => value(frame.iter().rev().find(known)),
                OverFunction::Nth(number) => value(frame.get(*number as usize - 1)),
            }
        });
        row.iter().cloned().chain(results).collect()
    };
    rows.iter().enumerate().map(with_results).collect()
}

fn unique(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows.dedup();
    rows
}

fn aggregate(rows: &[Row], keys: &[usize], set: &[bool], calls: &[Call]) -> Vec<Row> {
    let mut groups: BTreeMap<Row, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let key = |(at, column): (usize, &usize)| if set[at] { row[*column].clone() } else { Value::Null };
        groups.entry(keys.iter().enumerate().map(key).collect()).or_default().push(row);
    }
    let results = groups.into_iter().map(|(mut key, rows)| {
        key.extend(calls.iter().map(|one| {
            let rows: Vec<&Row> = rows.iter().copied().filter(|row| holds(&one.filter, row)).collect();
            call(one.function, one.column, one.distinct, &rows)
        }));
        key
    });
    results.collect()
}

fn call(function: Function, column: usize, distinct: bool, rows: &[&Row]) -> Value {
    if function == Function::CountRows {
        return Value::Int(rows.len() as i64);
    }
    let mut values: Vec<&Value> = rows.iter().map(|row| &row[column]).filter(|value| **value != Value::Null).collect();
    if distinct {
        values.sort();
        values.dedup();
    }
    let numbers = values.iter().map(|value| match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is no number"),
    });
    match function {
        Function::CountRows | Function::Count => Value::Int(values.len() as i64),
        _ if values.is_empty() => Value::Null,
        Function::Sum => Value::Int(numbers.sum()),
        Function::Average => Value::Int(numbers.sum::<i64>() / values.len() as i64),
        Function::Min => values.into_iter().min().cloned().unwrap_or(Value::Null),
        Function::Max => values.into_iter().max().cloned().unwrap_or(Value::Null),
    }
}

fn set(operation: &str, all: bool, left: Vec<Row>, right: Vec<Row>) -> Vec<Row> {
    let count = |rows: &[Row]| {
        let mut counts: BTreeMap<Row, usize> = BTreeMap::new();
        rows.iter().for_each(|row| *counts.entry(row.clone()).or_default() += 1);
        counts
    };
    let (lefts, rights) = (count(&left), count(&right));
    let rows = unique([left, right].concat()).into_iter().flat_map(|row| {
        let (l, r) = (lefts.get(&row).copied().unwrap_or(0), rights.get(&row).copied().unwrap_or(0));
        let times = match (operation, all) {
            ("UNION", true) => l + r,
            ("UNION", false) => 1,
            ("INTERSECT", true) => l.min(r),
            ("INTERSECT", false) => l.min(r).min(1),
            (_, true) => l.saturating_sub(r),
            (_, false) => usize::from(l > 0 && r == 0),
        };
        std::iter::repeat_n(row, times)
    });
    rows.collect()
}

fn join(
    kind: JoinKind,
    left: &[Row],
    right: &[Row],
    widths: [usize; 2],
    matches: impl Fn(&Row, &Row) -> bool,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut met = vec![false; right.len()];
    for l in left {
        let mut lonely = true;
        for (r, met) in right.iter().zip(&mut met) {
            if matches(l, r) {
                rows.push([l.clone(), r.clone()].concat());
                (lonely, *met) = (false, true);
            }
        }
        if lonely && matches!(kind, JoinKind::Left | JoinKind::Full) {
            rows.push([l.clone(), vec![Value::Null; widths[1]]].concat());
        }
    }
    if matches!(kind, JoinKind::Right | JoinKind::Full) {
        let lonely = right.iter().zip(met).filter(|(_, met)| !met);
        rows.extend(lonely.map(|(r, _)| [vec![Value::Null; widths[0]], r.clone()].concat()));
    }
    rows
}

fn matches(pairs: &[(usize, usize)], condition: &Option<Predicate>, left: &Row, right: &Row) -> bool {
    pairs.iter().all(|(l, r)| compare(&left[*l], &right[*r]).is_some_and(Ordering::is_eq))
        && condition
            .as_ref()
            .is_none_or(|condition| predicate(condition, &[left.clone(), right.clone()].concat()) == Some(true))
}

fn in_order(order: &[Order], left: &Row, right: &Row) -> Ordering {
    let by = |order: &Order| {
        let ordering = left[order.column].cmp(&right[order.column]);
        if order.descending { ordering.reverse() } else { ordering }
    };
    order.iter().map(by).find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

fn rank(ranking: Ranking, order: &[Order], mut rows: Vec<Row>) -> Vec<(u64, Row)> {
    rows.sort_by(|left, right| in_order(order, left, right));
    let (mut rank, mut dense) = (1, 1);
    let mut ranked = Vec::new();
    for at in 0..rows.len() {
        if at > 0 && in_order(order, &rows[at - 1], &rows[at]).is_ne() {
            rank = at as u64 + 1;
            dense += 1;
        }
        let number = match ranking {
            Ranking::RowNumber => at as u64 + 1,
            Ranking::Rank => rank,
            Ranking::DenseRank => dense,
        };
        ranked.push((number, rows[at].clone()));
    }
    ranked
}

fn holds(condition: &Option<Predicate>, row: &[Value]) -> bool {
    condition.as_ref().is_none_or(|condition| predicate(condition, row) == Some(true))
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    (*left != Value::Null && *right != Value::Null).then(|| left.cmp(right))
}

fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}

fn predicate(of: &Predicate, row: &[Value]) -> Option<bool> {
    match of {
        Predicate::Compare(left, operator, right) => {
            let ordering = compare(&scalar(left, row), &scalar(right, row))?;
            Some(match *operator {
                "=" => ordering.is_eq(),
                "<>" => ordering.is_ne(),
                "<" => ordering.is_lt(),
                "<=" => ordering.is_le(),
                ">" => ordering.is_gt(),
                _ => ordering.is_ge(),
            })
        }
        Predicate::IsNull(of) => Some(scalar(of, row) == Value::Null),
        Predicate::Distinct(left, right) => Some(scalar(left, row) != scalar(right, row)),
        Predicate::In(of, list) => {
            let value = scalar(of, row);
            let equal = list.iter().map(|item| compare(&value, &scalar(item, row)).map(Ordering::is_eq));
            equal.fold(Some(false), or)
        }
        Predicate::And(left, right) => {
            let not = |value: Option<bool>| value.map(|value| !value);
            not(or(not(predicate(left, row)), not(predicate(right, row))))
        }
        Predicate::Or(left, right) => or(predicate(left, row), predicate(right, row)),
        Predicate::Not(of) => predicate(of, row).map(|value| !value),
    }
}

fn scalar(of: &Scalar, row: &[Value]) -> Value {
    match of {
        Scalar::Column(column) => row[*column].clone(),
        Scalar::Literal(_, value) => value.clone(),
        Scalar::Add(left, right) => match (scalar(left, row), scalar(right, row)) {
            (Value::Int(left), Value::Int(right)) => Value::Int(left + right),
            _ => Value::Null,
        },
        Scalar::Concat(left, right) => match (scalar(left, row), scalar(right, row)) {
            (Value::Text(left), Value::Text(right)) => Value::Text(left + &right),
            _ => Value::Null,
        },
        Scalar::Coalesce(left, right) => match scalar(left, row) {
            Value::Null => scalar(right, row),
            value => value,
        },
        Scalar::Case(when, then, otherwise) => {
            scalar(if predicate(when, row) == Some(true) { then } else { otherwise }, row)
        }
    }
}
