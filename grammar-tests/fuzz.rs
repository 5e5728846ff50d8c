//! Statements that nobody would write, through the parser and the planner: no panic, no stack overflow, no hang, and no
//! error that is a bug of ours.
//!
//! Half of them are statements of the recorded cases, our own and the examples with words taken out, doubled, exchanged
//! and put in; half are grown from the grammar. `EBBFLOW_FUZZ` says how many (400 if not set), `EBBFLOW_FIRST_SEED` where
//! to begin; a failure prints its seed, and `EBBFLOW_FIRST_SEED=that EBBFLOW_FUZZ=1` runs it again.

use std::time::{Duration, Instant};

use ebbflow::{Engine, ErrorKind, Session};

use crate::ebbflow::{files_below, root};
use crate::exactly_once::Random;

/// How long the planning of one statement may take in a build for tests.
const LIMIT: Duration = Duration::from_secs(20);

/// Statements that set up a file's session, of which all are run.
const SETUP: &[&str] = &["CREATE", "SET", "USE"];

const TABLES: &[&str] = &[
    "CREATE TABLE t (k INT, s STRING, v BIGINT, d DECIMAL(10, 2), x DOUBLE, b BOOLEAN, day_ DATE, ts TIMESTAMP(3), \
     a ARRAY<INT>, m MAP<STRING, INT>, r ROW<f INT, g STRING>, y BYTES, p AS PROCTIME(), \
     WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen')",
    "CREATE TABLE u (k INT, s STRING, v BIGINT, ts TIMESTAMP(3), PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR ts AS ts) \
     WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'debezium-json')",
    "CREATE VIEW w AS SELECT s, COUNT(*) AS v, MAX(k) AS k FROM t GROUP BY s",
    "CREATE TABLE o (k INT, s STRING, v BIGINT) WITH ('connector' = 'blackhole')",
];

/// A file's statements, those that set it up first.
struct Script {
    setup: Vec<String>,
    others: Vec<String>,
}

#[test]
fn no_statement_breaks_the_planner() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, first) = (number("EBBFLOW_FUZZ", 400_u64), number("EBBFLOW_FIRST_SEED", 1_u64));
    let scripts = scripts();
    let words: Vec<String> =
        scripts.iter().flat_map(|script| script.others.iter().flat_map(|text| cut(text))).collect();
    let engine = Engine::builder().parallelism(1).build().expect("an engine needs nothing");
    let own = session(&engine, &TABLES.iter().map(ToString::to_string).collect::<Vec<_>>());
    let functions: Vec<String> = own.names().into_iter().filter(|name| name.len() > 1).collect();
    let mut of_file: Option<(usize, Session)> = None;
    let mut tally = Tally::default();
    for seed in first..first + count {
        let mut random = Random(seed);
        if seed % 2 == 0 {
            let text = Grammar { random: &mut random, functions: &functions, named: 0 }.statement();
            tally.add(check(&engine, &own, &text, seed));
            continue;
        }
        // A few statements over the tables of one file before the next one's.
        let file = (Random(seed / 16).next() as usize) % scripts.len();
        let script = &scripts[file];
        if of_file.as_ref().is_none_or(|(open, _)| *open != file) {
            of_file = Some((file, session(&engine, &script.setup)));
        }
        let all = || script.setup.iter().chain(&script.others);
        let chosen = all().nth(pick(&mut random, all().count()));
        if let (Some(text), Some((_, session))) = (chosen, &of_file) {
            tally.add(check(&engine, session, &mutated(text, &words, &mut random), seed));
        }
    }
    let Tally { planned, refused, faults } = tally;
    println!("{planned} statements were planned, {refused} refused");
    assert!(faults.is_empty(), "{} faults:\n\n{}", faults.len(), faults.join("\n\n"));
    assert!(
        count < 100 || planned > count / 50,
        "too few statements make sense to find anything: {planned} of {count}"
    );
}

/// What became of the statements.
#[derive(Default)]
struct Tally {
    planned: u64,
    refused: u64,
    faults: Vec<String>,
}

impl Tally {
    fn add(&mut self, answer: Result<bool, String>) {
        match answer {
            Ok(true) => self.planned += 1,
            Ok(false) => self.refused += 1,
            Err(fault) => self.faults.push(fault),
        }
    }
}

/// A session in which the statements were run, whatever they said.
fn session(engine: &Engine, setup: &[String]) -> Session {
    let session = engine.session();
    for text in setup {
        // A record may be one that must fail.
        let _ = engine.block_on(session.execute(text));
    }
    session
}

/// Plans the statement, or refuses it; what would start a job is only explained. Anything else is a fault.
fn check(engine: &Engine, session: &Session, text: &str, seed: u64) -> Result<bool, String> {
    let upper = text.trim_start().to_uppercase();
    let words: Vec<&str> = upper.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let declares = matches!(words.first(), Some(&("CREATE" | "ALTER" | "DROP" | "SHOW" | "DESCRIBE" | "DESC" | "USE")));
    let starts_a_job = words.contains(&"TABLE") && words.contains(&"AS") && words.first() == Some(&"CREATE");
    if starts_a_job && (words.contains(&"SELECT") || words.contains(&"VALUES") || words.contains(&"WITH")) {
        return Ok(false);
    }
    let text = if declares { text.to_string() } else { format!("EXPLAIN {text}") };
    let begun = Instant::now();
    let answer = engine.block_on(session.execute(&text));
    let took = begun.elapsed();
    if took > LIMIT {
        return Err(format!("seed {seed}: {took:?}\n{text}"));
    }
    let Err(error) = answer else { return Ok(true) };
    let message = error.to_string();
    let library = ["Internal error", "This issue was likely caused by a bug", "DataFusion"];
    match error.kind() == ErrorKind::Bug || library.iter().any(|word| message.contains(word)) {
        true => Err(format!("seed {seed}: {message}\n{text}")),
        false => Ok(false),
    }
}

/// The statements of all cases and examples.
fn scripts() -> Vec<Script> {
    let folders = ["grammar-tests/conformance", "grammar-tests/ours", "sql-examples"];
    let files = folders.iter().flat_map(|folder| files_below(&root().join(folder)));
    let mut scripts = Vec::new();
    for path in files {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if !matches!(extension, "slt" | "sql") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a test file is text");
        let text = text.replace("{{DATA}}", "/nowhere").replace("{{TMP}}", "/nowhere");
        let statements: Vec<String> = match extension {
            "sql" => text.split(";\n").map(str::to_string).collect(),
            _ => text.split("\n\n").filter_map(statement_of).collect(),
        };
        let first = |text: &str| text.split_whitespace().next().unwrap_or_default().to_uppercase();
        let (setup, others): (Vec<String>, Vec<String>) =
            statements.into_iter().partition(|text| SETUP.contains(&first(text).as_str()) && !text.contains("SELECT"));
        if !others.is_empty() {
            scripts.push(Script { setup, others });
        }
    }
    scripts
}

/// The SQL of a record.
fn statement_of(record: &str) -> Option<String> {
    let lines = record.lines().filter(|line| !line.starts_with('#'));
    let mut lines = lines.skip_while(|line| !(line.starts_with("statement") || line.starts_with("query")));
    lines.next()?;
    let text: Vec<&str> = lines.take_while(|line| *line != "----").collect();
    (!text.is_empty()).then(|| text.join("\n"))
}

fn pick(random: &mut Random, of: usize) -> usize {
    (random.next() % of.max(1) as u64) as usize
}

/// Words, numbers, strings and signs.
fn cut(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut characters = text.chars().peekable();
    while let Some(first) = characters.next() {
        let mut piece = String::from(first);
        if first.is_whitespace() {
            continue;
        } else if first == '\'' || first == '`' {
            for character in characters.by_ref() {
                piece.push(character);
                if character == first {
                    break;
                }
            }
        } else if first.is_alphanumeric() || first == '_' {
            while let Some(character) = characters.next_if(|c| c.is_alphanumeric() || *c == '_') {
                piece.push(character);
            }
        }
        pieces.push(piece);
    }
    pieces
}

/// The statement with one or two of its words changed.
fn mutated(text: &str, words: &[String], random: &mut Random) -> String {
    let mut pieces = cut(text);
    for _ in 0..=pick(random, 3) / 2 {
        let at = pick(random, pieces.len());
        let word = words[pick(random, words.len())].clone();
        match pick(random, 9) {
            0 if pieces.len() > 1 => drop(pieces.remove(at)),
            1 if !pieces.is_empty() => pieces.insert(at, pieces[at].clone()),
            2 if !pieces.is_empty() => {
                let other = pick(random, pieces.len());
                pieces.swap(at, other);
            }
            3 if !pieces.is_empty() => pieces[at] = word,
            4 => pieces.insert(at, word),
            5 => {
                let from = pick(random, words.len());
                let part = words[from..].iter().take(pick(random, 12)).cloned();
                pieces.splice(at..at, part.collect::<Vec<_>>());
            }
            6 if !pieces.is_empty() => {
                const ODD: &[&str] = &["0", "-1", "9223372036854775808", "1E400", "NULL", "''", "*", "(", ")", "1.5"];
                pieces[at] = ODD[pick(random, ODD.len())].to_string();
            }
            7 if !pieces.is_empty() => {
                let end = (at + 1 + pick(random, 6)).min(pieces.len());
                pieces.insert(end, ")".to_string());
                pieces.insert(at, ["(", "( SELECT", "CASE WHEN", "NOT (", "CAST ("][pick(random, 5)].to_string());
            }
            _ if !pieces.is_empty() => {
                let end = (at + 1 + pick(random, 8)).min(pieces.len());
                let part: Vec<String> = pieces[at..end].to_vec();
                pieces.splice(end..end, part);
            }
            _ => {}
        }
    }
    pieces.join(" ")
}

/// What an expression gives, as far as a statement's sense depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Number,
    Text,
    Truth,
    Time,
    Other,
}

use Kind::{Number, Other, Text, Time, Truth, Whole};

/// The columns in reach, as they are written.
type Scope = Vec<(String, Kind)>;

/// Grows statements over [`TABLES`], mostly of the right types.
struct Grammar<'a> {
    random: &'a mut Random,
    functions: &'a [String],
    /// Names given to relations so far.
    named: usize,
}

impl Grammar<'_> {
    fn of<'b>(&mut self, choices: &[&'b str]) -> &'b str {
        choices[pick(self.random, choices.len())]
    }

    fn kind(&mut self) -> Kind {
        [Whole, Whole, Number, Text, Truth, Time][pick(self.random, 6)]
    }

    fn chance(&mut self, of: usize) -> bool {
        pick(self.random, of) == 0
    }

    fn statement(&mut self) -> String {
        match pick(self.random, 6) {
            0 => format!("INSERT INTO o {}", self.query(&[Whole, Text, Whole], 3)),
            1 => format!("INSERT INTO o (k, s) {}", self.query(&[Whole, Text], 3)),
            _ => {
                let kinds: Vec<Kind> = (0..=pick(self.random, 3)).map(|_| self.kind()).collect();
                self.query(&kinds, 3)
            }
        }
    }

    /// A query with columns `c0`, `c1`, … of these kinds.
    fn query(&mut self, kinds: &[Kind], depth: usize) -> String {
        if depth == 0 || self.chance(15) {
            let row = |g: &mut Self| kinds.iter().map(|kind| g.literal(*kind)).collect::<Vec<_>>().join(", ");
            let names: Vec<String> = (0..kinds.len()).map(|column| format!("c{column}")).collect();
            return format!("SELECT * FROM (VALUES ({}), ({})) AS l ({})", row(self), row(self), names.join(", "));
        }
        if self.chance(8) {
            let word = self.of(&["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]);
            return format!("{} {word} {}", self.query(kinds, depth - 1), self.query(kinds, depth - 1));
        }
        let (from, scope) = self.from(depth);
        let mut text = String::from("SELECT ");
        let grouped = self.chance(3);
        let keys: Scope = if grouped { scope.iter().filter(|_| self.chance(3)).cloned().collect() } else { Vec::new() };
        if !grouped && self.chance(8) {
            text += "DISTINCT ";
        }
        let items: Vec<String> = (0..kinds.len())
            .map(|column| {
                let value = match grouped {
                    true => self.aggregate(kinds[column], &keys, &scope),
                    false if self.chance(10) => self.over(&scope),
                    false => self.value(kinds[column], &scope, depth),
                };
                format!("{value} AS c{column}")
            })
            .collect();
        text += &format!("{} FROM {from}", items.join(", "));
        if self.chance(2) {
            text += &format!(" WHERE {}", self.value(Truth, &scope, depth));
        }
        if !keys.is_empty() {
            let form = self.of(&["{}", "{}", "{}", "{}", "ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"]);
            let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
            text += &format!(" GROUP BY {}", form.replace("{}", &names.join(", ")));
        }
        if grouped && self.chance(3) {
            text += &format!(" HAVING {} > 1", self.aggregate(Whole, &keys, &scope));
        }
        if self.chance(5) {
            text += &format!(" ORDER BY c0 {}", self.of(&["", "DESC", "ASC NULLS LAST"]));
            text += self.of(&[" LIMIT 3", " LIMIT 0", " FETCH FIRST 2 ROWS ONLY", " LIMIT 2 OFFSET 1", ""]);
        }
        text
    }

    /// A relation under a name of its own, and its columns.
    fn relation(&mut self, depth: usize) -> (String, Scope) {
        self.named += 1;
        let name = format!("r{}", self.named);
        let t: &[(&str, Kind)] = &[
            ("k", Whole),
            ("s", Text),
            ("v", Whole),
            ("d", Number),
            ("x", Number),
            ("b", Truth),
            ("ts", Time),
            ("a", Other),
            ("m", Other),
            ("y", Other),
            ("a[1]", Whole),
            ("m['a']", Whole),
            ("r.f", Whole),
        ];
        let windowed: Vec<(&str, Kind)> =
            t[..7].iter().copied().chain([("window_start", Time), ("window_end", Time)]).collect();
        let (text, columns) = match pick(self.random, 9) {
            0 if depth > 0 => {
                let kinds: Vec<Kind> = (0..=pick(self.random, 3)).map(|_| self.kind()).collect();
                let columns = kinds.iter().enumerate().map(|(column, kind)| (format!("{name}.c{column}"), *kind));
                let columns = columns.collect();
                return (format!("({}) AS {name}", self.query(&kinds, depth - 1)), columns);
            }
            1 => ("TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND))", windowed),
            2 => ("TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '6' SECOND))", windowed),
            3 => ("TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '1' SECOND))", windowed),
            4 => ("u", vec![t[0], t[1], t[2], t[6]]),
            5 => ("w", vec![t[0], t[1], t[2]]),
            _ => ("t", t.to_vec()),
        };
        let columns = columns.into_iter().map(|(column, kind)| (format!("{name}.{column}"), kind)).collect();
        (format!("{text} AS {name}"), columns)
    }

    fn from(&mut self, depth: usize) -> (String, Scope) {
        let (mut text, mut scope) = self.relation(depth);
        while self.chance(3) {
            if self.chance(5) && scope.iter().any(|(name, _)| name.ends_with(".a")) {
                let array = scope.iter().find(|(name, _)| name.ends_with(".a")).map(|(name, _)| name.clone());
                self.named += 1;
                text += &format!(" CROSS JOIN UNNEST({}) AS e{} (f)", array.unwrap_or_default(), self.named);
                scope.push((format!("e{}.f", self.named), Whole));
                continue;
            }
            let (other, columns) = self.relation(depth);
            scope.extend(columns);
            text += &match self.chance(5) {
                true => format!(" CROSS JOIN {other}"),
                false => {
                    let word = self.of(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
                    let pair = |g: &mut Self| format!("{} = {}", g.value(Whole, &scope, 0), g.value(Whole, &scope, 0));
                    let condition = if self.chance(2) { pair(self) } else { self.value(Truth, &scope, 1) };
                    format!(" {word} {other} ON {condition}")
                }
            };
        }
        (text, scope)
    }

    fn literal(&mut self, kind: Kind) -> String {
        let words: &[&str] = match kind {
            Whole => &["1", "-1", "0", "2147483647", "CAST(NULL AS INT)"],
            Number => &["2.50", "1E3", "-0.5", "CAST(NULL AS DOUBLE)"],
            Text => &["'a'", "''", "'%é_'", "CAST(NULL AS STRING)"],
            Truth => &["TRUE", "FALSE", "CAST(NULL AS BOOLEAN)"],
            Time => &["TIMESTAMP '2024-02-29 23:59:59.123'", "CAST(NULL AS TIMESTAMP(3))"],
            Other => {
                &["ARRAY[1, 2]", "MAP['a', 1]", "ROW(1, 'x')", "x'ff'", "NULL", "INTERVAL '1' DAY", "TIME '10:00:00'"]
            }
        };
        self.of(words).to_string()
    }

    fn value(&mut self, kind: Kind, scope: &Scope, depth: usize) -> String {
        if self.chance(60) {
            return self.anything(scope, depth);
        }
        let of_kind: Vec<&(String, Kind)> = scope.iter().filter(|(_, other)| *other == kind).collect();
        if depth == 0 || self.chance(4) {
            let column = of_kind.get(pick(self.random, of_kind.len())).map(|(name, _)| name.clone());
            return match column {
                Some(column) if !self.chance(4) => column,
                _ => self.literal(kind),
            };
        }
        let depth = depth - 1;
        if self.chance(8) {
            let (when, then) = (self.value(Truth, scope, depth), self.value(kind, scope, depth));
            return format!("CASE WHEN {when} THEN {then} ELSE {} END", self.value(kind, scope, depth));
        }
        if self.chance(10) {
            return format!("COALESCE({}, {})", self.value(kind, scope, depth), self.value(kind, scope, depth));
        }
        if depth > 0 && self.chance(16) {
            return format!("({} LIMIT 1)", self.query(&[kind], depth));
        }
        let of = |g: &mut Self, kind| g.value(kind, scope, depth);
        match kind {
            Whole => match pick(self.random, 6) {
                0 => format!("CHAR_LENGTH({})", of(self, Text)),
                1 => format!("EXTRACT({} FROM {})", self.of(&["YEAR", "DOW", "HOUR"]), of(self, Time)),
                2 => format!("CAST({} AS INT)", of(self, Number)),
                3 => format!("ABS({})", of(self, Whole)),
                _ => format!("({} {} {})", of(self, Whole), self.of(&["+", "-", "*", "%"]), of(self, Whole)),
            },
            Number => match pick(self.random, 4) {
                0 => format!("ROUND({}, 1)", of(self, Number)),
                1 => format!("CAST({} AS DOUBLE)", of(self, Text)),
                _ => format!("({} {} {})", of(self, Number), self.of(&["+", "-", "*", "/"]), of(self, Whole)),
            },
            Text => match pick(self.random, 5) {
                0 => format!("UPPER({})", of(self, Text)),
                1 => format!("SUBSTRING({} FROM {} FOR 2)", of(self, Text), of(self, Whole)),
                2 => format!("CAST({} AS STRING)", of(self, Time)),
                3 => format!("DATE_FORMAT({}, 'yyyy-MM')", of(self, Time)),
                _ => format!("({} || {})", of(self, Text), of(self, Text)),
            },
            Time => match pick(self.random, 3) {
                0 => format!("FLOOR({} TO {})", of(self, Time), self.of(&["DAY", "MONTH", "HOUR"])),
                1 => format!("TIMESTAMPADD(DAY, {}, {})", of(self, Whole), of(self, Time)),
                _ => format!("({} + INTERVAL '1' HOUR)", of(self, Time)),
            },
            Truth | Other => self.condition(scope, depth),
        }
    }

    fn condition(&mut self, scope: &Scope, depth: usize) -> String {
        let kind = self.kind();
        let of = |g: &mut Self, kind| g.value(kind, scope, depth);
        match pick(self.random, 11) {
            0 => format!("({} AND {})", of(self, Truth), of(self, Truth)),
            1 => format!("({} OR {})", of(self, Truth), of(self, Truth)),
            2 => format!("NOT {}", of(self, Truth)),
            3 if depth > 0 => {
                format!("{} {}IN ({})", of(self, kind), self.of(&["", "NOT "]), self.query(&[kind], depth))
            }
            4 if depth > 0 => format!("{}EXISTS ({})", self.of(&["", "NOT "]), self.correlated(scope, depth)),
            5 if depth > 0 => {
                let quantified = self.of(&["= ANY", "> ALL", "<> ALL", "<= SOME"]);
                format!("{} {quantified} ({})", of(self, Whole), self.query(&[Whole], depth))
            }
            6 => format!("{} IS {}", of(self, kind), self.of(&["NULL", "NOT NULL"])),
            7 => format!("{} IS {}", of(self, Truth), self.of(&["TRUE", "NOT FALSE", "UNKNOWN"])),
            8 => format!("{} BETWEEN {} AND {}", of(self, kind), of(self, kind), of(self, kind)),
            9 => format!("{} LIKE {}", of(self, Text), of(self, Text)),
            _ => {
                let operator = self.of(&["=", "<>", "<", ">=", "IS DISTINCT FROM"]);
                format!("{} {operator} {}", of(self, kind), of(self, kind))
            }
        }
    }

    /// A query whose condition reads the columns of `outer`.
    fn correlated(&mut self, outer: &Scope, depth: usize) -> String {
        let (from, scope) = self.from(depth.saturating_sub(1));
        let (inside, outside) = (self.value(Whole, &scope, 0), self.value(Whole, outer, 0));
        format!("SELECT 1 FROM {from} WHERE {inside} {} {outside}", self.of(&["=", "=", "=", ">"]))
    }

    fn aggregate(&mut self, kind: Kind, keys: &Scope, scope: &Scope) -> String {
        let key = keys.iter().find(|(_, other)| *other == kind).map(|(name, _)| name.clone());
        let distinct = self.of(&["", "", "DISTINCT "]);
        let filter = match self.chance(6) {
            true => format!(" FILTER (WHERE {})", self.value(Truth, scope, 1)),
            false => String::new(),
        };
        let any = self.kind();
        match (kind, key) {
            (_, Some(key)) if self.chance(2) => key,
            (Whole, _) => match pick(self.random, 3) {
                0 => format!("COUNT(*){filter}"),
                1 => format!("COUNT({distinct}{}){filter}", self.value(any, scope, 1)),
                _ => format!("SUM({distinct}{}){filter}", self.value(Whole, scope, 1)),
            },
            (Number, _) => format!(
                "{}({distinct}{}){filter}",
                self.of(&["AVG", "SUM", "STDDEV_POP"]),
                self.value(Number, scope, 1)
            ),
            (Text, _) if self.chance(2) => format!("LISTAGG({distinct}{}){filter}", self.value(Text, scope, 1)),
            (Other, _) => format!("{}({}){filter}", self.of(&["COLLECT", "ARRAY_AGG"]), self.value(any, scope, 1)),
            (kind, _) => format!("{}({}){filter}", self.of(&["MIN", "MAX", "LAST_VALUE"]), self.value(kind, scope, 1)),
        }
    }

    fn over(&mut self, scope: &Scope) -> String {
        let partition =
            if self.chance(2) { format!("PARTITION BY {} ", self.value(Whole, scope, 0)) } else { String::new() };
        let call = match self.chance(2) {
            true => format!("LAG({})", self.value(Whole, scope, 0)),
            false => self.of(&["ROW_NUMBER()", "RANK()", "COUNT(*)", "NTILE(3)"]).to_string(),
        };
        let frame = self.of(&["", "", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " RANGE UNBOUNDED PRECEDING"]);
        format!("{call} OVER ({partition}ORDER BY {}{frame})", self.value(Time, scope, 0))
    }

    /// A call of any function with anything.
    fn anything(&mut self, scope: &Scope, depth: usize) -> String {
        let name = self.functions[pick(self.random, self.functions.len())].clone();
        let kinds: Vec<Kind> =
            (0..pick(self.random, 4)).map(|_| if self.chance(3) { Other } else { self.kind() }).collect();
        let arguments: Vec<String> = kinds.into_iter().map(|kind| self.value(kind, scope, depth.min(1))).collect();
        format!("{name}({})", arguments.join(", "))
    }
}
