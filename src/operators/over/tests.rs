//! `OVER` in the notation, and against plain recomputation.
