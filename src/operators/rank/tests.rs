//! Top-N in the notation, and against plain recomputation.
