//! Random tables, changes and queries.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::query::{
    Call, Function, JoinKind, Order, OverFunction, Predicate, Ranking, Relation, Row, Scalar, SemiKind, Type, Value,
};

/// What a table's changelog may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// Rows come and stay.
    Append,
    /// Rows come, change and go; equal rows may stand beside each other.
    Retract,
    /// As [`TableKind::Retract`], with a primary key in the first column.
    Keyed,
    /// With a primary key in the first column, and told without the images before.
    Upsert,
}

#[derive(Debug, Clone)]
pub struct Table {
    pub kind: TableKind,
    pub types: Vec<Type>,
}

/// One change of a table. What it picks depends on what is there, so that any of them can be left out.
#[derive(Debug, Clone)]
pub enum Change {
    Insert(Row),
    Delete(usize),
    Update(usize, Row),
}

/// Tables, what happens to them step by step, and a query over them.
#[derive(Debug, Clone)]
pub struct Case {
    pub tables: Vec<Table>,
    pub steps: Vec<Vec<(usize, Change)>>,
    pub query: Relation,
}

struct Generator {
    random: StdRng,
    tables: Vec<Table>,
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut generator = Generator { random: StdRng::seed_from_u64(seed), tables: Vec::new() };
    let tables = generator.below(3) + 1;
    generator.tables = (0..tables).map(|_| generator.table()).collect();
    let depth = generator.below(3) as u32 + 1;
    let query = generator.relation(depth);
    let count = 1 + generator.below(24);
    let steps = (0..count).map(|_| generator.step()).collect();
    Case { tables: generator.tables, steps, query }
}

impl Generator {
    fn below(&mut self, bound: usize) -> usize {
        self.random.random_range(0..bound)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn table(&mut self) -> Table {
        let kinds = [TableKind::Append, TableKind::Retract, TableKind::Retract, TableKind::Keyed, TableKind::Upsert];
        let width = 2 + self.below(3);
        let mut types: Vec<Type> = (0..width).map(|_| self.some_type()).collect();
        types[0] = Type::Int;
        Table { kind: self.pick(&kinds), types }
    }

    fn some_type(&mut self) -> Type {
        if self.chance(65) { Type::Int } else { Type::Text }
    }

    fn value(&mut self, of: Type) -> Value {
        if self.chance(15) {
            return Value::Null;
        }
        match of {
            Type::Int => Value::Int(self.below(5) as i64 - 1),
            Type::Text => Value::Text(self.pick(&["", "a", "b", "ab"]).to_owned()),
        }
    }

    fn row(&mut self, table: usize) -> Row {
        let Table { kind, types } = self.tables[table].clone();
        let mut row: Row = types.iter().map(|of| self.value(*of)).collect();
        if matches!(kind, TableKind::Keyed | TableKind::Upsert) {
            row[0] = Value::Int(self.below(6) as i64);
        }
        row
    }

    fn step(&mut self) -> Vec<(usize, Change)> {
        let count = 1 + self.below(3);
        let change = |generator: &mut Generator| {
            let table = generator.below(generator.tables.len());
            let row = generator.row(table);
            let pick = generator.below(1_000);
            let change = match generator.below(10) {
                _ if generator.tables[table].kind == TableKind::Append => Change::Insert(row),
                0..5 => Change::Insert(row),
                5..7 => Change::Delete(pick),
                _ => Change::Update(pick, row),
            };
            (table, change)
        };
        (0..count).map(|_| change(self)).collect()
    }

    fn scalar(&mut self, types: &[Type], of: Type, depth: u32) -> Scalar {
        let columns: Vec<usize> = (0..types.len()).filter(|column| types[*column] == of).collect();
        if depth == 0 || self.chance(60) {
            return match columns.is_empty() || self.chance(15) {
                true => Scalar::Literal(of, self.value(of)),
                false => Scalar::Column(self.pick(&columns)),
            };
        }
        let left = Box::new(self.scalar(types, of, depth - 1));
        let right = Box::new(self.scalar(types, of, depth - 1));
        match self.below(3) {
            0 => Scalar::Coalesce(left, right),
            1 => Scalar::Case(Box::new(self.predicate(types, depth - 1)), left, right),
            _ if of == Type::Int => Scalar::Add(left, right),
            _ => Scalar::Concat(left, right),
        }
    }

    fn predicate(&mut self, types: &[Type], depth: u32) -> Predicate {
        if depth > 0 && self.chance(35) {
            let left = Box::new(self.predicate(types, depth - 1));
            return match self.below(3) {
                0 => Predicate::And(left, Box::new(self.predicate(types, depth - 1))),
                1 => Predicate::Or(left, Box::new(self.predicate(types, depth - 1))),
                _ => Predicate::Not(left),
            };
        }
        let of = self.pick(types);
        let left = self.scalar(types, of, depth.min(1));
        match self.below(8) {
            0 => Predicate::IsNull(left),
            1 => Predicate::Distinct(left, self.scalar(types, of, 0)),
            2 => {
                let count = 1 + self.below(3);
                Predicate::In(left, (0..count).map(|_| Scalar::Literal(of, self.value(of))).collect())
            }
            _ => Predicate::Compare(left, self.pick(&["=", "<>", "<", "<=", ">", ">="]), self.scalar(types, of, 0)),
        }
    }

    fn maybe_predicate(&mut self, types: &[Type], percent: usize) -> Option<Predicate> {
        self.chance(percent).then(|| self.predicate(types, 2))
    }

    /// Some of the columns, in any order, each once.
    fn some_columns(&mut self, width: usize, most: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..width).collect();
        let count = self.below(most.min(width) + 1);
        (0..count).map(|_| all.remove(self.below(all.len()))).collect()
    }

    fn relation(&mut self, depth: u32) -> Relation {
        if depth == 0 {
            let table = self.below(self.tables.len());
            return Relation::Table(table, self.tables[table].types.clone());
        }
        let input = self.relation(depth - 1);
        match self.below(23) {
            0..4 => self.select(input),
            4..9 => self.aggregate(input),
            9..11 => self.set(input, depth),
            11..14 => self.join(input, depth),
            14..16 => self.semi(input, depth),
            16 => self.subquery(input, depth),
            17..19 => self.rank(input),
            19..22 => self.over(input),
            _ => self.limit(input),
        }
    }

    fn select(&mut self, input: Relation) -> Relation {
        let types = input.types();
        let width = 1 + self.below(4);
        let columns = (0..width).map(|_| {
            let of = self.some_type();
            (self.scalar(&types, of, 2), of)
        });
        let columns = columns.collect();
        let filter = self.maybe_predicate(&types, 50);
        Relation::Select { input: Box::new(input), columns, filter, distinct: self.chance(25) }
    }

    fn aggregate(&mut self, input: Relation) -> Relation {
        let types = input.types();
        let keys = self.some_columns(types.len(), 3);
        let count = usize::from(keys.is_empty() || self.chance(90)) * (1 + self.below(3));
        let calls: Vec<Call> = (0..count).map(|_| self.call(&types)).collect();
        let sets = match keys.len() > 1 && self.chance(20) {
            true => self.grouping_sets(keys.len()),
            false => Vec::new(),
        };
        let mut relation = Relation::Aggregate { input: Box::new(input), keys, sets, calls, having: None };
        if self.chance(25) {
            let types = relation.types();
            let filter = self.predicate(&types, 1);
            if let Relation::Aggregate { having, .. } = &mut relation {
                *having = Some(filter);
            }
        }
        relation
    }

    fn grouping_sets(&mut self, keys: usize) -> Vec<Vec<bool>> {
        // Every key stands in one of the sets, and no set twice.
        let mut sets = vec![vec![true; keys]];
        for _ in 0..1 + self.below(2) {
            let set: Vec<bool> = (0..keys).map(|_| self.chance(50)).collect();
            if !sets.contains(&set) && set.contains(&true) {
                sets.push(set);
            }
        }
        sets
    }

    fn call(&mut self, types: &[Type]) -> Call {
        let column = self.below(types.len());
        let of = types[column];
        let functions = match of {
            Type::Int => &[Function::Sum, Function::Average, Function::Min, Function::Max, Function::Count][..],
            Type::Text => &[Function::Min, Function::Max, Function::Count],
        };
        let function = if self.chance(25) { Function::CountRows } else { self.pick(functions) };
        let distinct = function != Function::CountRows && self.chance(30);
        let result = if matches!(function, Function::Min | Function::Max) { of } else { Type::Int };
        Call { function, column, distinct, filter: self.maybe_predicate(types, 20), result }
    }

    /// The relation with columns of these types.
    fn shaped(&mut self, input: Relation, wanted: &[Type]) -> Relation {
        let types = input.types();
        let columns = wanted.iter().map(|of| (self.scalar(&types, *of, 1), *of)).collect();
        Relation::Select { input: Box::new(input), columns, filter: None, distinct: false }
    }

    fn set(&mut self, left: Relation, depth: u32) -> Relation {
        let right = self.relation(depth - 1);
        let width = 1 + self.below(2);
        let types: Vec<Type> = (0..width).map(|_| self.some_type()).collect();
        let (left, right) = (Box::new(self.shaped(left, &types)), Box::new(self.shaped(right, &types)));
        let operation = self.pick(&["UNION", "UNION", "INTERSECT", "EXCEPT"]);
        Relation::Set { operation, all: self.chance(60), left, right }
    }

    /// Pairs of columns of equal types.
    fn pairs(&mut self, left: &[Type], right: &[Type], most: usize) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for _ in 0..1 + self.below(most) {
            let (l, r) = (self.below(left.len()), self.below(right.len()));
            if left[l] == right[r] {
                pairs.push((l, r));
            }
        }
        pairs
    }

    fn join(&mut self, left: Relation, depth: u32) -> Relation {
        let right = self.relation(depth - 1);
        let (lefts, rights) = (left.types(), right.types());
        let pairs = self.pairs(&lefts, &rights, 2);
        let kinds = [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full];
        let kind = if pairs.is_empty() { JoinKind::Inner } else { self.pick(&kinds) };
        let condition = self.maybe_predicate(&[lefts, rights].concat(), 30);
        Relation::Join { kind, left: Box::new(left), right: Box::new(right), pairs, condition }
    }

    fn semi(&mut self, left: Relation, depth: u32) -> Relation {
        let right = self.relation(depth - 1);
        let (lefts, rights) = (left.types(), right.types());
        let pairs = self.pairs(&lefts, &rights, 2);
        let kind = match pairs.first() {
            Some((left, right)) if self.chance(50) => SemiKind::In { left: *left, right: *right },
            _ => {
                let condition = match pairs.is_empty() {
                    true => None,
                    false => self.maybe_predicate(&[lefts, rights].concat(), 30),
                };
                SemiKind::Exists { pairs, condition }
            }
        };
        Relation::Semi { kind, anti: self.chance(50), left: Box::new(left), right: Box::new(right) }
    }

    fn subquery(&mut self, left: Relation, depth: u32) -> Relation {
        let right = self.relation(depth - 1);
        let (lefts, rights) = (left.types(), right.types());
        let column = self.below(rights.len());
        let function = match rights[column] {
            Type::Int => self.pick(&[Function::Sum, Function::Min, Function::Max, Function::CountRows]),
            Type::Text => self.pick(&[Function::Min, Function::Max]),
        };
        let pair = self.pairs(&lefts, &rights, 1).first().copied().filter(|_| self.chance(60));
        Relation::Subquery { left: Box::new(left), right: Box::new(right), function, column, pair }
    }

    fn rank(&mut self, input: Relation) -> Relation {
        let width = input.types().len();
        let ranking = self.pick(&[Ranking::RowNumber, Ranking::RowNumber, Ranking::Rank, Ranking::DenseRank]);
        let partition = self.some_columns(width, 2);
        // Row numbers of rows that are equal in the order are anyone's guess, unless the rows are equal altogether.
        let order = match ranking {
            Ranking::RowNumber => self.total_order(width),
            _ => vec![Order { column: self.below(width), descending: self.chance(50) }],
        };
        let first = if self.chance(80) { 1 } else { 2 };
        let range = (first, first + self.below(3) as u64);
        Relation::Rank { input: Box::new(input), ranking, partition, order, range, shown: self.chance(50) }
    }

    fn over(&mut self, input: Relation) -> Relation {
        let types = input.types();
        let partition = self.some_columns(types.len(), 2);
        let numbers: Vec<usize> = (0..types.len()).filter(|column| types[*column] == Type::Int).collect();
        let edge = |generator: &mut Generator, from: i64| match generator.chance(35) {
            true => None,
            false => Some(from + generator.below(4) as i64),
        };
        // Rows that are equal in the order are anyone's guess where rows are counted, unless they are equal altogether.
        let range = !numbers.is_empty() && self.chance(50);
        let order = match range {
            true => vec![Order { column: self.pick(&numbers), descending: self.chance(50) }],
            false => self.total_order(types.len()),
        };
        let mut frame = match self.chance(40) {
            true => (None, Some(0)),
            false => (edge(self, -3), edge(self, -1)),
        };
        if let (Some(start), Some(end)) = &mut frame {
            *end = (*end).max(*start);
        }
        let count = 1 + self.below(3);
        let calls = (0..count).map(|_| {
            let column = self.below(types.len());
            let of = types[column];
            let function = match self.below(10) {
                0 => OverFunction::Rank,
                1 => OverFunction::DenseRank,
                2 if !range => OverFunction::RowNumber,
                3 if !range => OverFunction::Ntile(1 + self.below(3) as i64),
                4 if !range => OverFunction::Lead(self.below(5) as i64 - 2),
                5 if !range => OverFunction::First,
                6 if !range => OverFunction::Last,
                7 if !range => OverFunction::Nth(1 + self.below(2) as i64),
                _ => OverFunction::Aggregate(self.call(&types[column..=column]).function),
            };
            let result = match function {
                OverFunction::Aggregate(Function::Min | Function::Max)
                | OverFunction::Lead(_)
                | OverFunction::First
                | OverFunction::Last
                | OverFunction::Nth(_) => of,
                _ => Type::Int,
            };
            (function, column, result)
        });
        let calls = calls.collect();
        Relation::Over { input: Box::new(input), partition, order, range, frame, calls }
    }

    fn limit(&mut self, input: Relation) -> Relation {
        let order = self.total_order(input.types().len());
        let offset = if self.chance(70) { 0 } else { 1 + self.below(2) as u64 };
        Relation::Limit { input: Box::new(input), order, limit: 1 + self.below(4) as u64, offset }
    }

    fn total_order(&mut self, width: usize) -> Vec<Order> {
        let mut columns: Vec<usize> = (0..width).collect();
        let shuffled: Vec<usize> = (0..width).map(|_| columns.remove(self.below(columns.len()))).collect();
        shuffled.into_iter().map(|column| Order { column, descending: self.chance(50) }).collect()
    }
}
