//! Aggregates against plain recomputation.
