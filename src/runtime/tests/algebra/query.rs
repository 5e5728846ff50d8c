//! Queries as trees, small enough to be evaluated naively, and their SQL.

use std::fmt::Write as _;

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    Null,
    Int(i64),
    Text(String),
}

/// A cell's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Int,
    Text,
}

/// A row.
pub type Row = Vec<Value>;

#[derive(Debug, Clone)]
pub enum Scalar {
    Column(usize),
    Literal(Type, Value),
    Add(Box<Scalar>, Box<Scalar>),
    Concat(Box<Scalar>, Box<Scalar>),
    Coalesce(Box<Scalar>, Box<Scalar>),
    Case(Box<Predicate>, Box<Scalar>, Box<Scalar>),
}

#[derive(Debug, Clone)]
pub enum Predicate {
    Compare(Scalar, &'static str, Scalar),
    IsNull(Scalar),
    Distinct(Scalar, Scalar),
    In(Scalar, Vec<Scalar>),
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Not(Box<Predicate>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    CountRows,
    Count,
    Sum,
    Average,
    Min,
    Max,
}

#[derive(Debug, Clone)]
pub struct Call {
    pub function: Function,
    pub column: usize,
    pub distinct: bool,
    pub filter: Option<Predicate>,
    pub result: Type,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

/// How a row of the left side is kept by the rows of the right side.
#[derive(Debug, Clone)]
pub enum SemiKind {
    /// `EXISTS (…)`: equal columns, and perhaps a condition over both.
    Exists { pairs: Vec<(usize, usize)>, condition: Option<Predicate> },
    /// `column IN (…)`.
    In { left: usize, right: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    RowNumber,
    Rank,
    DenseRank,
}

/// A column of an order; NULL is the least.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    pub column: usize,
    pub descending: bool,
}

/// The end of a frame: so many rows or units before (negative) or after; `None`: the partition's edge.
pub type FrameEnd = Option<i64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverFunction {
    Aggregate(Function),
    RowNumber,
    Rank,
    DenseRank,
    Ntile(i64),
    /// `LAG` if negative.
    Lead(i64),
    First,
    Last,
    Nth(i64),
}

/// A relation.
#[derive(Debug, Clone)]
pub enum Relation {
    Table(usize, Vec<Type>),
    Select {
        input: Box<Relation>,
        columns: Vec<(Scalar, Type)>,
        filter: Option<Predicate>,
        distinct: bool,
    },
    Aggregate {
        input: Box<Relation>,
        keys: Vec<usize>,
        /// Which of the keys each set groups by; empty: all.
        sets: Vec<Vec<bool>>,
        calls: Vec<Call>,
        having: Option<Predicate>,
    },
    /// `UNION`, `INTERSECT`, `EXCEPT`.
    Set {
        operation: &'static str,
        all: bool,
        left: Box<Relation>,
        right: Box<Relation>,
    },
    Join {
        kind: JoinKind,
        left: Box<Relation>,
        right: Box<Relation>,
        pairs: Vec<(usize, usize)>,
        condition: Option<Predicate>,
    },
    Semi {
        kind: SemiKind,
        anti: bool,
        left: Box<Relation>,
        right: Box<Relation>,
    },
    /// A scalar subquery, `(SELECT MAX(column) FROM right [WHERE left.a = right.b])`, as a further column.
    Subquery {
        left: Box<Relation>,
        right: Box<Relation>,
        function: Function,
        column: usize,
        pair: Option<(usize, usize)>,
    },
    Rank {
        input: Box<Relation>,
        ranking: Ranking,
        partition: Vec<usize>,
        order: Vec<Order>,
        range: (u64, u64),
        shown: bool,
    },
    /// Functions of a column over one window, as further columns.
    Over {
        input: Box<Relation>,
        partition: Vec<usize>,
        order: Vec<Order>,
        range: bool,
        frame: (FrameEnd, FrameEnd),
        calls: Vec<(OverFunction, usize, Type)>,
    },
    Limit {
        input: Box<Relation>,
        order: Vec<Order>,
        limit: u64,
        offset: u64,
    },
}

impl Relation {
    pub fn types(&self) -> Vec<Type> {
        match self {
            Relation::Table(_, types) => types.clone(),
            Relation::Select { columns, .. } => columns.iter().map(|(_, of)| *of).collect(),
            Relation::Aggregate { input, keys, calls, .. } => {
                let types = input.types();
                keys.iter().map(|key| types[*key]).chain(calls.iter().map(|call| call.result)).collect()
            }
            Relation::Set { left, .. } | Relation::Semi { left, .. } => left.types(),
            Relation::Join { left, right, .. } => [left.types(), right.types()].concat(),
            Relation::Subquery { left, right, function, column, .. } => {
                let result = match function {
                    Function::Min | Function::Max => right.types()[*column],
                    _ => Type::Int,
                };
                [left.types(), vec![result]].concat()
            }
            Relation::Rank { input, shown, .. } => {
                [input.types(), if *shown { vec![Type::Int] } else { Vec::new() }].concat()
            }
            Relation::Over { input, calls, .. } => {
                input.types().into_iter().chain(calls.iter().map(|(_, _, of)| *of)).collect()
            }
            Relation::Limit { input, .. } => input.types(),
        }
    }

    /// The relation as SQL; its columns are called `c0`, `c1` …
    pub fn sql(&self) -> String {
        Writer::default().relation(self)
    }

    fn inputs(&self) -> Vec<&Relation> {
        match self {
            Relation::Table(..) => Vec::new(),
            Relation::Select { input, .. }
            | Relation::Aggregate { input, .. }
            | Relation::Rank { input, .. }
            | Relation::Over { input, .. }
            | Relation::Limit { input, .. } => vec![input],
            Relation::Set { left, right, .. }
            | Relation::Join { left, right, .. }
            | Relation::Semi { left, right, .. }
            | Relation::Subquery { left, right, .. } => vec![left, right],
        }
    }

    fn inputs_mut(&mut self) -> Vec<&mut Relation> {
        match self {
            Relation::Table(..) => Vec::new(),
            Relation::Select { input, .. }
            | Relation::Aggregate { input, .. }
            | Relation::Rank { input, .. }
            | Relation::Over { input, .. }
            | Relation::Limit { input, .. } => vec![input],
            Relation::Set { left, right, .. }
            | Relation::Join { left, right, .. }
            | Relation::Semi { left, right, .. }
            | Relation::Subquery { left, right, .. } => vec![left, right],
        }
    }

    /// Relations with something left out, for shrinking a failure.
    pub fn smaller(&self) -> Vec<Relation> {
        let mut all: Vec<Relation> = self.inputs().into_iter().cloned().collect();
        let mut with = |change: &dyn Fn(&mut Relation)| {
            let mut relation = self.clone();
            change(&mut relation);
            all.push(relation);
        };
        match self {
            Relation::Select { filter, distinct, .. } => {
                if filter.is_some() {
                    with(&|relation| {
                        if let Relation::Select { filter, .. } = relation {
                            *filter = None;
                        }
                    });
                }
                if *distinct {
                    with(&|relation| {
                        if let Relation::Select { distinct, .. } = relation {
                            *distinct = false;
                        }
                    });
                }
            }
            Relation::Aggregate { having, calls, sets, .. } => {
                if having.is_some() {
                    with(&|relation| {
                        if let Relation::Aggregate { having, .. } = relation {
                            *having = None;
                        }
                    });
                }
                if calls.len() > 1 && having.is_none() {
                    for gone in 0..calls.len() {
                        with(&|relation| {
                            if let Relation::Aggregate { calls, .. } = relation {
                                calls.remove(gone);
                            }
                        });
                    }
                }
                for gone in 0..sets.len().saturating_sub(1) {
                    with(&|relation| {
                        if let Relation::Aggregate { sets, .. } = relation {
                            sets.remove(gone);
                        }
                    });
                }
            }
            Relation::Over { calls, .. } if calls.len() > 1 => {
                for gone in 0..calls.len() {
                    with(&|relation| {
                        if let Relation::Over { calls, .. } = relation {
                            calls.remove(gone);
                        }
                    });
                }
            }
            Relation::Join { condition: Some(_), .. } => with(&|relation| {
                if let Relation::Join { condition, .. } = relation {
                    *condition = None;
                }
            }),
            _ => {}
        }
        // An input is put in the place of its own parent where the columns stay the same, or made smaller in place.
        for index in 0..self.inputs().len() {
            let input = self.inputs()[index];
            for small in input.smaller() {
                if small.types() == input.types() {
                    let mut relation = self.clone();
                    *relation.inputs_mut()[index] = small;
                    all.push(relation);
                }
            }
        }
        all
    }
}

#[derive(Default)]
struct Writer {
    aliases: usize,
}

impl Writer {
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("a{}", self.aliases)
    }

    /// A relation as an item of FROM.
    fn from(&mut self, relation: &Relation, alias: &str) -> String {
        match relation {
            Relation::Table(table, _) => format!("t{table} AS {alias}"),
            other => format!("({}) AS {alias}", self.relation(other)),
        }
    }

    fn relation(&mut self, relation: &Relation) -> String {
        let width = relation.types().len();
        let alias = self.alias();
        match relation {
            Relation::Table(table, _) => format!("SELECT {} FROM t{table} AS {alias}", columns(&alias, 0..width)),
            Relation::Select { input, columns, filter, distinct } => {
                let items: Vec<String> = columns
                    .iter()
                    .enumerate()
                    .map(|(at, (scalar, _))| format!("{} AS c{at}", scalar_sql(scalar, &[(&alias, usize::MAX)])))
                    .collect();
                let distinct = if *distinct { "DISTINCT " } else { "" };
                let from = self.from(input, &alias);
                let filter = clause(" WHERE ", filter, &[(&alias, usize::MAX)]);
                format!("SELECT {distinct}{} FROM {from}{filter}", items.join(", "))
            }
            Relation::Aggregate { input, keys, sets, calls, having } => {
                let from = self.from(input, &alias);
                let names = [(alias.as_str(), usize::MAX)];
                let mut items: Vec<String> =
                    keys.iter().enumerate().map(|(at, key)| format!("{alias}.c{key} AS c{at}")).collect();
                let texts: Vec<String> = calls.iter().map(|call| call_sql(call, &names)).collect();
                for (at, text) in texts.iter().enumerate() {
                    items.push(format!("{text} AS c{}", keys.len() + at));
                }
                let key = |at: usize| format!("{alias}.c{}", keys[at]);
                let all: Vec<String> = (0..keys.len()).map(key).collect();
                let group = match (keys.is_empty(), sets.is_empty()) {
                    (true, _) => String::new(),
                    (false, true) => format!(" GROUP BY {}", all.join(", ")),
                    (false, false) => {
                        let set = |set: &Vec<bool>| {
                            let keys = (0..set.len()).filter(|at| set[*at]).map(key);
                            format!("({})", keys.collect::<Vec<_>>().join(", "))
                        };
                        let sets: Vec<String> = sets.iter().map(set).collect();
                        format!(" GROUP BY GROUPING SETS ({})", sets.join(", "))
                    }
                };
                // HAVING is written over the calls themselves.
                let having = having.as_ref().map_or(String::new(), |having| {
                    let column = |column: usize| {
                        if column < keys.len() { key(column) } else { texts[column - keys.len()].clone() }
                    };
                    format!(" HAVING {}", predicate_text(having, &column))
                });
                format!("SELECT {} FROM {from}{group}{having}", items.join(", "))
            }
            Relation::Set { operation, all, left, right } => {
                let all = if *all { " ALL" } else { "" };
                format!("({}) {operation}{all} ({})", self.relation(left), self.relation(right))
            }
            Relation::Join { kind, left, right, pairs, condition } => {
                let other = self.alias();
                let (from, to) = (self.from(left, &alias), self.from(right, &other));
                let lefts = left.types().len();
                let mut on: Vec<String> = pairs.iter().map(|(l, r)| format!("{alias}.c{l} = {other}.c{r}")).collect();
                if let Some(condition) = condition {
                    on.push(predicate_sql(condition, &[(&alias, lefts), (&other, usize::MAX)]));
                }
                if on.is_empty() {
                    on.push("TRUE".to_owned());
                }
                let word = match kind {
                    JoinKind::Inner => "INNER",
                    JoinKind::Left => "LEFT",
                    JoinKind::Right => "RIGHT",
                    JoinKind::Full => "FULL",
                };
                let mut items = vec![columns(&alias, 0..lefts)];
                items.extend((lefts..width).map(|at| format!("{other}.c{} AS c{at}", at - lefts)));
                format!("SELECT {} FROM {from} {word} JOIN {to} ON {}", items.join(", "), on.join(" AND "))
            }
            Relation::Semi { kind, anti, left, right } => {
                let other = self.alias();
                let (from, to) = (self.from(left, &alias), self.from(right, &other));
                let not = if *anti { "NOT " } else { "" };
                let filter = match kind {
                    SemiKind::In { left, right } => {
                        format!("{alias}.c{left} {not}IN (SELECT {other}.c{right} FROM {to})")
                    }
                    SemiKind::Exists { pairs, condition } => {
                        let mut on: Vec<String> =
                            pairs.iter().map(|(l, r)| format!("{alias}.c{l} = {other}.c{r}")).collect();
                        if let Some(condition) = condition {
                            on.push(predicate_sql(condition, &[(&alias, left.types().len()), (&other, usize::MAX)]));
                        }
                        let filter = if on.is_empty() { String::new() } else { format!(" WHERE {}", on.join(" AND ")) };
                        format!("{not}EXISTS (SELECT 1 FROM {to}{filter})")
                    }
                };
                format!("SELECT {} FROM {from} WHERE {filter}", columns(&alias, 0..width))
            }
            Relation::Subquery { left, right, function, column, pair } => {
                let other = self.alias();
                let (from, to) = (self.from(left, &alias), self.from(right, &other));
                let call = match function {
                    Function::CountRows => "COUNT(*)".to_owned(),
                    other_function => format!("{}({other}.c{column})", function_name(*other_function)),
                };
                let filter = pair.map_or(String::new(), |(l, r)| format!(" WHERE {other}.c{r} = {alias}.c{l}"));
                let mine = columns(&alias, 0..width - 1);
                format!("SELECT {mine}, (SELECT {call} FROM {to}{filter}) AS c{} FROM {from}", width - 1)
            }
            Relation::Rank { input, ranking, partition, order, range, shown } => {
                let outer = self.alias();
                let from = self.from(input, &alias);
                let word = match ranking {
                    Ranking::RowNumber => "ROW_NUMBER",
                    Ranking::Rank => "RANK",
                    Ranking::DenseRank => "DENSE_RANK",
                };
                let width = input.types().len();
                let by: Vec<String> = partition.iter().map(|column| format!("{alias}.c{column}")).collect();
                let by = if by.is_empty() { String::new() } else { format!("PARTITION BY {} ", by.join(", ")) };
                let order = order_sql(&alias, order);
                let range = match range {
                    (1, last) => format!("{outer}.r <= {last}"),
                    (first, last) => format!("{outer}.r >= {first} AND {outer}.r <= {last}"),
                };
                let mut items = columns(&outer, 0..width);
                if *shown {
                    let _ = write!(items, ", {outer}.r AS c{width}");
                }
                format!(
                    "SELECT {items} FROM (SELECT {}, {word}() OVER ({by}ORDER BY {order}) AS r FROM {from}) AS {outer} \
                     WHERE {range}",
                    columns(&alias, 0..width)
                )
            }
            Relation::Over { input, partition, order, range, frame, calls } => {
                let from = self.from(input, &alias);
                let own = input.types().len();
                let by: Vec<String> = partition.iter().map(|column| format!("{alias}.c{column}")).collect();
                let by = if by.is_empty() { String::new() } else { format!("PARTITION BY {} ", by.join(", ")) };
                let end = |end: FrameEnd, edge: &str| match end {
                    None => format!("UNBOUNDED {edge}"),
                    Some(0) => "CURRENT ROW".to_owned(),
                    Some(distance) if distance < 0 => format!("{} PRECEDING", -distance),
                    Some(distance) => format!("{distance} FOLLOWING"),
                };
                let units = if *range { "RANGE" } else { "ROWS" };
                let frame = format!("{units} BETWEEN {} AND {}", end(frame.0, "PRECEDING"), end(frame.1, "FOLLOWING"));
                let order = order_sql(&alias, order);
                let mut items = vec![columns(&alias, 0..own)];
                for (at, (function, column, _)) in calls.iter().enumerate() {
                    let argument = format!("{alias}.c{column}");
                    let call = match function {
                        OverFunction::Aggregate(Function::CountRows) => "COUNT(*)".to_owned(),
                        OverFunction::Aggregate(function) => format!("{}({argument})", function_name(*function)),
                        OverFunction::RowNumber => "ROW_NUMBER()".to_owned(),
                        OverFunction::Rank => "RANK()".to_owned(),
                        OverFunction::DenseRank => "DENSE_RANK()".to_owned(),
                        OverFunction::Ntile(parts) => format!("NTILE({parts})"),
                        OverFunction::Lead(rows) if *rows < 0 => format!("LAG({argument}, {})", -rows),
                        OverFunction::Lead(rows) => format!("LEAD({argument}, {rows})"),
                        OverFunction::First => format!("FIRST_VALUE({argument})"),
                        OverFunction::Last => format!("LAST_VALUE({argument})"),
                        OverFunction::Nth(number) => format!("NTH_VALUE({argument}, {number})"),
                    };
                    // The frame stands with every function, so that all are over one window: rows that are equal in
                    // the order may stand one way in one window and another way in the next.
                    items.push(format!("{call} OVER ({by}ORDER BY {order} {frame}) AS c{}", own + at));
                }
                format!("SELECT {} FROM {from}", items.join(", "))
            }
            Relation::Limit { input, order, limit, offset } => {
                let from = self.from(input, &alias);
                let offset = if *offset == 0 { String::new() } else { format!(" OFFSET {offset}") };
                let items = columns(&alias, 0..width);
                format!("SELECT {items} FROM {from} ORDER BY {} LIMIT {limit}{offset}", order_sql(&alias, order))
            }
        }
    }
}

fn columns(alias: &str, range: std::ops::Range<usize>) -> String {
    range.map(|at| format!("{alias}.c{at} AS c{at}")).collect::<Vec<_>>().join(", ")
}

fn order_sql(alias: &str, order: &[Order]) -> String {
    let item = |order: &Order| format!("{alias}.c{}{}", order.column, if order.descending { " DESC" } else { "" });
    order.iter().map(item).collect::<Vec<_>>().join(", ")
}

fn function_name(function: Function) -> &'static str {
    match function {
        Function::CountRows | Function::Count => "COUNT",
        Function::Sum => "SUM",
        Function::Average => "AVG",
        Function::Min => "MIN",
        Function::Max => "MAX",
    }
}

fn call_sql(call: &Call, names: &[(&str, usize)]) -> String {
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    let argument = match call.function {
        Function::CountRows => "*".to_owned(),
        _ => name(names, call.column),
    };
    let filter = match &call.filter {
        None => String::new(),
        Some(filter) => format!(" FILTER (WHERE {})", predicate_sql(filter, names)),
    };
    format!("{}({distinct}{argument}){filter}", function_name(call.function))
}

/// The name of a column over several relations, each with how many columns it and those before it have.
fn name(names: &[(&str, usize)], column: usize) -> String {
    let mut first = 0;
    for (alias, end) in names {
        if column < *end {
            return format!("{alias}.c{}", column - first);
        }
        first = *end;
    }
    unreachable!("the last relation has all further columns")
}

fn clause(word: &str, predicate: &Option<Predicate>, names: &[(&str, usize)]) -> String {
    predicate.as_ref().map_or(String::new(), |predicate| format!("{word}{}", predicate_sql(predicate, names)))
}

fn predicate_sql(predicate: &Predicate, names: &[(&str, usize)]) -> String {
    predicate_text(predicate, &|column| name(names, column))
}

fn scalar_sql(scalar: &Scalar, names: &[(&str, usize)]) -> String {
    scalar_text(scalar, &|column| name(names, column))
}

fn predicate_text(predicate: &Predicate, name: &dyn Fn(usize) -> String) -> String {
    let scalar = |scalar: &Scalar| scalar_text(scalar, name);
    match predicate {
        Predicate::Compare(left, operator, right) => format!("{} {operator} {}", scalar(left), scalar(right)),
        Predicate::IsNull(of) => format!("{} IS NULL", scalar(of)),
        Predicate::Distinct(left, right) => format!("{} IS DISTINCT FROM {}", scalar(left), scalar(right)),
        Predicate::In(of, list) => {
            format!("{} IN ({})", scalar(of), list.iter().map(scalar).collect::<Vec<_>>().join(", "))
        }
        Predicate::And(left, right) => format!("({} AND {})", predicate_text(left, name), predicate_text(right, name)),
        Predicate::Or(left, right) => format!("({} OR {})", predicate_text(left, name), predicate_text(right, name)),
        Predicate::Not(of) => format!("NOT ({})", predicate_text(of, name)),
    }
}

fn scalar_text(scalar: &Scalar, name: &dyn Fn(usize) -> String) -> String {
    let text = |scalar: &Scalar| scalar_text(scalar, name);
    match scalar {
        Scalar::Column(column) => name(*column),
        Scalar::Literal(Type::Int, Value::Int(number)) => format!("CAST({number} AS BIGINT)"),
        Scalar::Literal(Type::Text, Value::Text(text)) => format!("CAST('{text}' AS STRING)"),
        Scalar::Literal(Type::Int, _) => "CAST(NULL AS BIGINT)".to_owned(),
        Scalar::Literal(Type::Text, _) => "CAST(NULL AS STRING)".to_owned(),
        Scalar::Add(left, right) => format!("({} + {})", text(left), text(right)),
        Scalar::Concat(left, right) => format!("({} || {})", text(left), text(right)),
        Scalar::Coalesce(left, right) => format!("COALESCE({}, {})", text(left), text(right)),
        Scalar::Case(when, then, otherwise) => {
            format!("CASE WHEN {} THEN {} ELSE {} END", predicate_text(when, name), text(then), text(otherwise))
        }
    }
}
