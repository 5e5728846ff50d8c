//! The logical rules that are sound for streams, by name.
//!
//! Left out on purpose: everything that assumes a bounded input or a table without retractions (limits pushed into
//! scans, joins turned around by statistics, `GROUP BY` constants removed, which would turn a keyed aggregate into a
//! global one and change what an empty input gives).

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion_optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion_optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion_optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion_optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion_optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion_optimizer::optimize_projections::OptimizeProjections;
use datafusion_optimizer::optimize_unions::OptimizeUnions;
use datafusion_optimizer::push_down_filter::PushDownFilter;
use datafusion_optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion_optimizer::simplify_expressions::SimplifyExpressions;
use datafusion_optimizer::{Optimizer, OptimizerContext, OptimizerRule};

use super::columns_first::ColumnsFirst;
use super::error::unwrap;
use super::group_windows::wall_off;
use super::marks::unmarked;
use super::pinned::PinGlobalAggregates;
use super::subqueries::NullAwareAntiJoin;
use crate::error::Result;

/// The plan after the optimizer rules.
pub(super) fn optimize(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = wall_off(plan).map_err(unwrap)?;
    let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(NullAwareAntiJoin),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(ColumnsFirst),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(CommonSubexprEliminate::new()),
        Arc::new(PinGlobalAggregates),
        Arc::new(OptimizeProjections::new()),
    ];
    let mut options = ConfigOptions::default();
    options.optimizer.skip_failed_rules = false;
    // Every scalar subquery becomes a join: there is no moment at which one could be computed beforehand.
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    // No start time: what depends on the clock is asked row by row, not folded into a constant.
    let context = OptimizerContext::new_with_config_options(Arc::new(options)).without_query_execution_start_time();
    Optimizer::with_rules(rules).optimize(plan, &context, |_, _| {}).and_then(unmarked).map_err(unwrap)
}
