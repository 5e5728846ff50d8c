//! Named windows written out: `OVER w`, and `OVER (w ORDER BY …)`, which adds to a named one and which the binding library
//! would pass over in silence.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Select, WindowSpec, WindowType, visit_expressions_mut,
};

/// How many names a name may stand for, one after the other.
const DEPTH: usize = 16;

/// Writes what a name stands for in its place, and into each window that adds to it. A name that stands for nothing is left to the
/// binding to refuse.
pub(super) fn resolve(select: &mut Select) {
    let named = select.named_window.clone();
    // Writing never stops early.
    let _ = visit_expressions_mut(select, |expression| {
        let Expr::Function(function) = expression else { return ControlFlow::<()>::Continue(()) };
        match &mut function.over {
            Some(WindowType::WindowSpec(window)) => {
                if let Some(name) = window.window_name.clone() {
                    match find(&named, &name, DEPTH) {
                        Some(base) => merge(window, base),
                        None => function.over = Some(WindowType::NamedWindow(name)),
                    }
                }
            }
            Some(WindowType::NamedWindow(name)) => {
                if let Some(window) = find(&named, name, DEPTH) {
                    function.over = Some(WindowType::WindowSpec(window));
                }
            }
            None => {}
        }
        ControlFlow::<()>::Continue(())
    });
}

fn find(named: &[NamedWindowDefinition], name: &Ident, depth: usize) -> Option<WindowSpec> {
    let NamedWindowDefinition(_, window) = named.iter().find(|definition| definition.0.value == name.value)?;
    let deeper = depth.checked_sub(1)?;
    match window {
        NamedWindowExpr::NamedWindow(other) => find(named, other, deeper),
        NamedWindowExpr::WindowSpec(window) => {
            let mut window = window.clone();
            if let Some(other) = window.window_name.take() {
                let base = find(named, &other, deeper)?;
                merge(&mut window, base);
            }
            Some(window)
        }
    }
}

/// The parts of `base` that `window` does not have itself.
fn merge(window: &mut WindowSpec, base: WindowSpec) {
    window.window_name = None;
    if window.partition_by.is_empty() {
        window.partition_by = base.partition_by;
    }
    if window.order_by.is_empty() {
        window.order_by = base.order_by;
    }
    if window.window_frame.is_none() {
        window.window_frame = base.window_frame;
    }
}
