//! A session: a catalog, options, and the statements run against them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use datafusion_expr::{AggregateUDF, ScalarUDF};

use super::analyze::{self, Analysis, Running};
use super::connectors::{ProgramTable, SessionConnectors};
use super::describe::{self, ViewColumns};
use super::engine::EngineInner;
use super::job::{Changes, Job};
use super::kept::{KeptCatalog, Replay};
use super::options::SessionOptions;
use super::{alter, databases, jobs, show, tables};
use crate::catalog::{Catalog, QualifiedName, Relation};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{FunctionContext, FunctionSet, ProgramFunctions};
use crate::limits::STACK_BYTES;
use crate::plan::stream::StreamGraph;
use crate::plan::{self, Planner, TableFacts};
use crate::runtime::{self, JobConfig};
use crate::sql::{self, ClientCommand, Insert, ObjectKind, Statement};

/// A catalog, options, and the statements run against them. Cloning gives another handle to the same session.
#[derive(Clone)]
pub struct Session {
    engine: Arc<EngineInner>,
    /// Held only while a statement is planned, never while one runs.
    state: Arc<Mutex<State>>,
    /// Whether what is declared goes into the engine's catalog file, if it has one.
    keeps: bool,
}

/// What a session remembers between statements.
#[derive(Default)]
pub(super) struct State {
    pub(super) catalog: Catalog,
    /// Which state of the engine's kept catalog this one is made from.
    pub(super) catalog_version: u64,
    pub(super) options: SessionOptions,
    pub(super) program_tables: HashMap<String, ProgramTable>,
    pub(super) program_functions: ProgramFunctions,
    pub(super) jobs: Vec<Job>,
    /// How many jobs of each name there were: the second `INSERT INTO t` of a script is `t-2`, in every run.
    job_names: HashMap<String, usize>,
}

/// One statement of a script, ready to be executed by [`Session::execute`].
#[derive(Debug, Clone)]
pub struct ScriptStatement {
    /// Its text, without the semicolon.
    pub text: String,
    /// Line of the script on which it begins, from 1.
    pub line: u64,
    /// Whether it is a command for the shell (`QUIT`, `CLEAR`, `HELP`) and which, upper case.
    pub client: Option<String>,
}

/// What a statement gave.
pub enum Outcome {
    /// It is done; a word to show ("Table created").
    Done(String),
    /// It is done (a word to show), and something about it is wrong, which its use will be refused for: a table with
    /// options that no connector takes.
    Warned(String, Error),
    /// It is done and has rows to show, without an op column: `SHOW`, `DESCRIBE`, `EXPLAIN`, `SET`.
    Rows(arrow::array::RecordBatch),
    /// A query runs; its changes can be read.
    Query(Changes),
    /// A job runs.
    Job(Job),
}

impl Outcome {
    /// The job, if the statement started one.
    ///
    /// # Errors
    /// If it did not.
    pub fn into_job(self) -> Result<Job> {
        match self {
            Outcome::Job(job) => Ok(job),
            _ => Err(Error::sql("the statement started no job").hint("INSERT and EXECUTE STATEMENT SET do")),
        }
    }
}

/// What is left of a statement when it is planned.
enum Step {
    Done(Outcome),
    /// It runs, and its plan is shown at its end.
    Analysis(Analysis),
    /// A job must come to its end.
    Stop(jobs::Stop),
}

impl Session {
    pub(super) fn new(engine: Arc<EngineInner>) -> Session {
        let mut state = State::default();
        if let Some(kept) = engine.kept() {
            (state.catalog, state.catalog_version) = kept.catalog();
        }
        Session { engine, state: Arc::new(Mutex::new(state)), keeps: true }
    }

    /// A session that begins with an empty catalog and keeps nothing, whatever the engine does.
    pub(super) fn scratch(engine: Arc<EngineInner>) -> Session {
        Session { engine, state: Arc::default(), keeps: false }
    }

    fn kept(&self) -> Option<MutexGuard<'_, KeptCatalog>> {
        if self.keeps { self.engine.kept() } else { None }
    }

    /// Splits a script into statements, without parsing them: a mistake in the third must not keep the first from
    /// running.
    ///
    /// # Errors
    /// If a quote or comment is not closed.
    pub fn split(&self, script: &str) -> Result<Vec<ScriptStatement>> {
        let parts = sql::split_script(script)?;
        let client_command = |text: &str| on_a_deep_stack(|| client_command(text)).ok().flatten();
        Ok(parts
            .into_iter()
            .map(|(text, line)| ScriptStatement { client: client_command(&text), text, line })
            .collect())
    }

    /// Runs one statement. Spans in its error are relative to `sql`. An `INSERT` is answered with its running job; the
    /// shell waits for it where `table.dml-sync` asks for that.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub async fn execute(&self, sql: &str) -> Result<Outcome> {
        match on_a_deep_stack(|| self.start(sql))?? {
            Step::Done(outcome) => Ok(outcome),
            Step::Analysis(analysis) => analysis.finish().await,
            Step::Stop(stop) => stop.run().await,
        }
    }

    /// Runs a query.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub async fn query(&self, sql: &str) -> Result<Changes> {
        match self.execute(sql).await? {
            Outcome::Query(changes) => Ok(changes),
            _ => Err(Error::sql("the statement is no query").hint("SELECT, VALUES and WITH are")),
        }
    }

    /// The value of an option, as set or by default.
    pub fn option(&self, key: &str) -> Option<String> {
        self.lock().options.get(key)
    }

    /// Sets an option, as `SET` does.
    ///
    /// # Errors
    /// If the value is not valid.
    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        self.lock().options.set(key, value)
    }

    /// The zone in which instants are shown (`table.local-time-zone`).
    pub fn zone(&self) -> crate::types::TimeZone {
        self.lock().options.zone().unwrap_or(crate::types::TimeZone::UTC)
    }

    /// Names of tables, columns and functions, for completion.
    pub fn names(&self) -> Vec<String> {
        let state = self.lock();
        let mut names = self.functions(&state).map(|functions| functions.names()).unwrap_or_default();
        for (name, relation) in state.catalog.relations(state.catalog.current()).unwrap_or_default() {
            names.push(name.to_string());
            if let Relation::Table(table) = relation {
                names.extend(table.columns.iter().map(|column| column.name.clone()));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Adds a table of the program's own.
    ///
    /// # Errors
    /// If the name is taken, or the watermark or key names no column.
    pub fn register(&self, name: &str, table: ProgramTable) -> Result<()> {
        let mut state = self.lock();
        let definition = tables::program_table(name, &table)?;
        let parts: Vec<&str> = name.split('.').collect();
        let qualified = state.catalog.qualify(&parts)?;
        state.catalog.create(&qualified, Relation::Table(Arc::new(definition)), false, false)?;
        state.program_tables.insert(qualified.object, table);
        Ok(())
    }

    /// Adds a scalar function of the program's own, to be called by its name and aliases in any statement that follows.
    ///
    /// # Errors
    /// If a name is taken.
    pub fn register_function(&self, function: ScalarUDF) -> Result<()> {
        self.lock().program_functions.add_scalar(function)
    }

    /// Adds an aggregate function of the program's own. `evaluate` is called again and again and must leave the
    /// accumulator as it is. Where rows are taken back, an accumulator with `supports_retract_batch` takes back any value
    /// that came; for one without, the values of a group are kept and each result is computed from all of them.
    ///
    /// # Errors
    /// If a name is taken.
    pub fn register_aggregate(&self, function: AggregateUDF) -> Result<()> {
        self.lock().program_functions.add_aggregate(function)
    }

    /// Adds a table function of the program's own: a function that gives an array, whose elements are the rows of
    /// `LATERAL TABLE(f(x))`. Elements that are structs are rows of several columns.
    ///
    /// # Errors
    /// If a name is taken.
    pub fn register_table_function(&self, function: ScalarUDF) -> Result<()> {
        self.lock().program_functions.add_table(function)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while planning leaves catalog and options as they were: nothing is half written.
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Everything but waiting: what is planned is consistent with one state of the session.
    fn start(&self, sql: &str) -> Result<Step> {
        let parsed = sql::parse_statement(sql)?;
        if let (Some(place), false) = (parsed.bang, self.lock().options.extensions()?) {
            return Err(plan::beyond_flink("!= is another spelling of <>").at(Some(place)));
        }
        let place = Some(parsed.span);
        // An error that knows no better place is at least one of this statement.
        let step = match parsed.statement {
            Statement::StopJob(stop) => jobs::Stop::new(&self.lock(), &stop).map(Step::Stop),
            Statement::Explain { details, statement } if details.iter().any(|detail| detail == "ANALYZE") => {
                self.analyze(*statement).map(Step::Analysis)
            }
            other => self.run(other).map(Step::Done),
        };
        step.map_err(|error| if error.kind() == ErrorKind::Sql { error.at(place) } else { error })
    }

    /// Starts a statement whose plan is shown with what its operators have done.
    fn analyze(&self, statement: Statement) -> Result<Analysis> {
        let mut state = self.state();
        let graph = self.plan_explained(&state, &statement)?;
        let connectors = self.connectors(&state);
        let facts = tables::ConnectorFacts { connectors: &connectors, context: self.context(&state)? };
        analyze::require_bounded(&graph, |table| Ok(facts.source(table)?.bounded))?;
        let inserts = match statement {
            Statement::Insert(insert) => vec![*insert],
            Statement::StatementSet(inserts) => inserts,
            _ => Vec::new(),
        };
        let outcome = match inserts.as_slice() {
            [] => self.run_query(&state, graph.clone())?,
            inserts => self.run_inserts(&mut state, inserts)?,
        };
        let running = match outcome {
            Outcome::Query(changes) => Running::Query(Box::new(changes)),
            outcome => Running::Job(outcome.into_job()?),
        };
        Ok(Analysis { graph, running })
    }

    fn plan_explained(&self, state: &State, statement: &Statement) -> Result<StreamGraph> {
        self.planner(state, |planner| match statement {
            Statement::Query(query) => planner.query(query),
            Statement::Insert(insert) => planner.inserts(std::slice::from_ref(insert.as_ref())),
            Statement::StatementSet(inserts) => planner.inserts(inserts),
            _ => Err(Error::sql("EXPLAIN takes a query, an INSERT or a statement set")),
        })
    }

    /// The session's state, with what other sessions have changed in the catalog that is kept.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if let Some(kept) = self.kept() {
            kept.refresh(&mut state);
        }
        state
    }

    pub(super) fn run(&self, statement: Statement) -> Result<Outcome> {
        let mut state = self.state();
        let done = |text: &str| Ok(Outcome::Done(text.to_string()));
        match statement {
            Statement::Query(query) => {
                let graph = self.planner(&state, |planner| planner.query(&query))?;
                self.run_query(&state, graph)
            }
            Statement::Insert(insert) => self.run_inserts(&mut state, std::slice::from_ref(&*insert)),
            Statement::StatementSet(inserts) => self.run_inserts(&mut state, &inserts),
            Statement::Explain { details, statement } => {
                if details.iter().any(|detail| detail == "JSON_EXECUTION_PLAN") {
                    return Err(Error::sql("EXPLAIN JSON_EXECUTION_PLAN is not supported yet")
                        .hint("EXPLAIN alone shows the plan with all that is known of it"));
                }
                self.explain(&state, *statement)
            }
            Statement::Set { entry: Some((key, value)) } => {
                state.options.set(&key, &value)?;
                done("Option set")
            }
            Statement::Set { entry: None } => show::options(&state),
            Statement::Reset { key } => {
                state.options.reset(key.as_deref());
                done("Option reset")
            }
            Statement::Show(what) => {
                let functions = self.functions(&state)?;
                show::show(&state, &functions, &what, &|view| self.view_columns(&state, view))
            }
            Statement::Describe { name } => describe::describe(&state, &name, &|view| self.view_columns(&state, view)),
            Statement::DescribeJob { name } => jobs::describe(&state, &name),
            Statement::DescribeSpace { catalog, name, extended } => {
                databases::describe(&state, catalog, &name, extended)
            }
            Statement::Use { catalog, name } => databases::make_current(&mut state, catalog, &name),
            Statement::Client(_) => {
                Err(Error::sql("this is a command of the interactive shell")
                    .hint("leave it out of scripts and programs"))
            }
            Statement::Unsupported { what, span } => Err(Error::sql(format!("{what} is not supported yet")).at(span)),
            declaration => self.declare_and_keep(&mut state, declaration),
        }
    }

    /// As [`Session::declare`], and what has changed is in the catalog's file before anything comes of it.
    fn declare_and_keep(&self, state: &mut State, statement: Statement) -> Result<Outcome> {
        let Some(mut kept) = self.kept() else { return self.declare(state, statement, &mut |_| Ok(())) };
        kept.refresh(state);
        let before = state.catalog.clone();
        let drops_function = matches!(statement, Statement::Drop { object: ObjectKind::Function, .. });
        // A table's computed column may use the function that is dropped, or one that only this program has.
        let doubtful = drops_function || !state.program_functions.is_empty();
        let scratch = Session::scratch(Arc::clone(&self.engine));
        let replay = |text: &str| scratch.replay(text);
        let replay: Option<Replay<'_>> = if doubtful { Some(&replay) } else { None };
        let mut keep = |state: &mut State| kept.keep(state, &before, replay);
        let outcome = self.declare(state, statement, &mut keep)?;
        keep(state)?;
        Ok(outcome)
    }

    /// Statements that change the catalog. `keep` is called with what has changed before a job is started on it.
    fn declare(
        &self,
        state: &mut State,
        statement: Statement,
        keep: &mut dyn FnMut(&mut State) -> Result<()>,
    ) -> Result<Outcome> {
        let functions = self.functions(state)?;
        let done = |text: &str| Ok(Outcome::Done(text.to_string()));
        match statement {
            Statement::CreateTable(create) => {
                let (created, fault) = tables::create_table(state, &functions, &create)?;
                match (&create.query, fault) {
                    (Some(query), _) => {
                        let insert = tables::insert_of(state, &functions, &create, query, created)?;
                        keep(state)?;
                        self.run_inserts(state, std::slice::from_ref(&insert))
                    }
                    (None, Some(fault)) => Ok(Outcome::Warned("Table created".to_string(), fault)),
                    (None, None) => done(if created { "Table created" } else { "Table exists already" }),
                }
            }
            Statement::CreateView(create) => done(tables::create_view(state, &functions, &create)?),
            Statement::CreateFunction(create) => done(tables::create_function(state, &functions, &create)?),
            Statement::AlterTable(change) => done(alter::alter_table(state, &functions, &change)?),
            Statement::AlterView { name, if_exists, change } => {
                done(alter::alter_view(state, &functions, &name, if_exists, &change)?)
            }
            Statement::CreateDatabase { name, if_not_exists, comment, options } => {
                databases::create_database(state, &name, if_not_exists, comment, &options)
            }
            Statement::AlterDatabase { name, options } => databases::alter_database(state, &name, &options),
            Statement::CreateCatalog { name, if_not_exists, comment, options } => {
                databases::create_catalog(state, &name, if_not_exists, comment, &options)
            }
            Statement::Drop { object: ObjectKind::Database, name, if_exists, cascade, .. } => {
                databases::drop_database(state, &name, if_exists, cascade)
            }
            Statement::Drop { object: ObjectKind::Catalog, name, if_exists, .. } => {
                databases::drop_catalog(state, &name, if_exists)
            }
            Statement::Drop { object, name, if_exists, temporary, .. } => {
                done(tables::drop(state, object, &name, if_exists, temporary)?)
            }
            _ => Err(Error::bug("a statement that nothing runs")),
        }
    }

    fn explain(&self, state: &State, statement: Statement) -> Result<Outcome> {
        let graph = self.plan_explained(state, &statement)?;
        show::text("result", std::iter::once(plan::explain(&graph)))
    }

    /// The columns of a view, with its time attributes if its query can be planned as a stream.
    fn view_columns(&self, state: &State, view: &QualifiedName) -> Result<ViewColumns> {
        let query = sql::parse_query(&format!("SELECT * FROM {view}"))?;
        let columns = plan::query_columns(&query, &state.catalog, &self.functions(state)?).map_err(Error::elsewhere)?;
        let graph = self.planner(state, |planner| planner.query(&query)).unwrap_or_default();
        let last = graph.nodes.last();
        Ok(ViewColumns {
            columns,
            rowtime: last.map(|node| node.rowtime.clone()).unwrap_or_default(),
            proctime: last.map(|node| node.proctime.clone()).unwrap_or_default(),
        })
    }

    fn run_query(&self, state: &State, graph: StreamGraph) -> Result<Outcome> {
        let config = self.job_config(state, "query".to_string(), false)?;
        let schema = graph.nodes.last().map(|node| (Arc::clone(&node.schema), node.mode));
        let Some((schema, mode)) = schema else { return Err(Error::bug("a query without a result")) };
        let (batch, zone) = (config.batch, config.zone);
        let _threads = self.engine.handle()?.enter();
        let running = runtime::start(graph, config)?;
        Changes::new(running, schema, mode, batch, zone).map(Outcome::Query)
    }

    fn run_inserts(&self, state: &mut State, inserts: &[Insert]) -> Result<Outcome> {
        let graph = self.planner(state, |planner| planner.inserts(inserts))?;
        let name = match state.options.get("pipeline.name") {
            Some(name) => name,
            None => {
                let target = |insert: &Insert| plan::name_parts(&insert.target).last().map(ToString::to_string);
                let targets: Vec<String> = inserts.iter().filter_map(target).collect();
                targets.join("+")
            }
        };
        let count = state.job_names.entry(name.clone()).or_insert(0);
        *count += 1;
        let name = if *count == 1 { name } else { format!("{name}-{count}") };
        let config = self.job_config(state, name, true)?;
        let _threads = self.engine.handle()?.enter();
        let running = runtime::start(graph, config)?;
        let job = Job::new(running.handle);
        state.jobs.push(job.clone());
        Ok(Outcome::Job(job))
    }

    fn planner<T>(&self, state: &State, plan: impl FnOnce(&Planner<'_>) -> Result<T>) -> Result<T> {
        let connectors = self.connectors(state);
        let facts = tables::ConnectorFacts { connectors: &connectors, context: self.context(state)? };
        let planner = Planner {
            catalog: &state.catalog,
            functions: self.functions(state)?,
            settings: state.options.plan_settings()?,
            facts: &facts,
        };
        plan(&planner)
    }

    fn functions(&self, state: &State) -> Result<Arc<FunctionSet>> {
        let clock = Arc::clone(&self.engine.clock);
        let context = FunctionContext {
            zone: state.options.zone()?,
            clock: Arc::new(move || clock.now_ms()),
            batch: state.options.batch()?,
        };
        let functions = FunctionSet::new(context).with_extensions(state.options.extensions()?);
        Ok(Arc::new(functions.with_program(&state.program_functions)))
    }

    fn connectors(&self, state: &State) -> Arc<SessionConnectors> {
        Arc::new(SessionConnectors::new(state.program_tables.clone()))
    }

    fn context(&self, state: &State) -> Result<tables::ContextParts> {
        Ok(tables::ContextParts {
            console: Arc::clone(&self.engine.console),
            batch: state.options.batch()?,
            zone: state.options.zone()?,
        })
    }

    fn job_config(&self, state: &State, name: String, durable: bool) -> Result<JobConfig> {
        let options = &state.options;
        let checkpoint = if durable { options.checkpoints()? } else { None };
        Ok(JobConfig {
            parallelism: options.parallelism()?.unwrap_or(self.engine.parallelism),
            batch: options.batch()?,
            checkpoint,
            clock: Arc::clone(&self.engine.clock),
            zone: options.zone()?,
            console: Arc::clone(&self.engine.console),
            connectors: self.connectors(state),
            watermark_interval_ms: options.watermark_interval_ms()?,
            visibility: options.visibility()?,
            restart: options.restart_strategy()?,
            name,
        })
    }
}

/// Runs `work` on a thread of its own: parsing, binding and planning recurse with the nesting of the SQL, and the
/// caller's stack may be small.
pub(super) fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("ebbflow-plan".into()).stack_size(STACK_BYTES);
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|error| Error::setup(format!("cannot start a thread to plan on: {error}")))?;
        thread.join().map_err(|panic| Error::bug(format!("planning panicked: {}", panic_text(panic.as_ref()))))
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

fn client_command(text: &str) -> Option<String> {
    match sql::parse_statement(text).ok()?.statement {
        Statement::Client(ClientCommand::Help) => Some("HELP".into()),
        Statement::Client(ClientCommand::Why) => Some("WHY".into()),
        Statement::Client(ClientCommand::Clear) => Some("CLEAR".into()),
        Statement::Client(ClientCommand::Quit) => Some("QUIT".into()),
        _ => None,
    }
}
