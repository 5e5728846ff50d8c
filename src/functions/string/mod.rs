//! Functions over text. Characters are Unicode code points, as SUBSTRING counts them; LPAD, RPAD and OVERLAY count
//! UTF-16 units, as Flink does.

mod case;
mod cut;
mod join;
mod pad;
mod printf;
mod search;
mod split;

use super::function::Entry;

/// The entries of this folder.
pub(super) fn entries() -> Vec<Entry> {
    let mut all = case::entries();
    all.extend(cut::entries());
    all.extend(join::entries());
    all.extend(pad::entries());
    all.extend(printf::entries());
    all.extend(search::entries());
    all.extend(split::entries());
    all
}
