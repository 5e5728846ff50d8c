//! A changelog folded into the table it describes.

use std::collections::{BTreeMap, HashMap};

use ebbflow::Kind;

/// The rows that are left when all changes are applied. Rows are equal if all their cells are; a retraction takes one
/// equal row away. Rows stand in the order in which they first came.
#[derive(Default)]
pub struct Folded {
    rows: HashMap<Vec<String>, Place>,
    order: BTreeMap<u64, Vec<String>>,
    next: u64,
}

struct Place {
    position: u64,
    count: i64,
}

impl Folded {
    /// Applies one change.
    pub fn apply(&mut self, kind: Kind, cells: Vec<String>) {
        if let Some(place) = self.rows.get_mut(&cells) {
            place.count += kind.sign();
            if place.count == 0 {
                self.order.remove(&place.position);
                self.rows.remove(&cells);
            }
            return;
        }
        // A retraction may come before its row: it is owed, and the row that comes then cancels it.
        self.rows.insert(cells.clone(), Place { position: self.next, count: kind.sign() });
        self.order.insert(self.next, cells);
        self.next += 1;
    }

    /// The rows, each as often as it is there.
    pub fn rows(&self) -> impl Iterator<Item = &[String]> {
        self.order.values().flat_map(move |cells| {
            let count = self.rows.get(cells).map_or(0, |place| place.count);
            std::iter::repeat_n(cells.as_slice(), usize::try_from(count).unwrap_or(0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(changes: &[(Kind, &str)]) -> Vec<String> {
        let mut folded = Folded::default();
        changes.iter().for_each(|(kind, cell)| folded.apply(*kind, vec![cell.to_string()]));
        folded.rows().map(|cells| cells.join(" ")).collect()
    }

    #[test]
    fn what_is_left_stands_in_order_of_its_coming() {
        use Kind::{Delete, Insert, UpdateAfter, UpdateBefore};
        assert_eq!(
            folded(&[(Insert, "a 1"), (Insert, "b 1"), (UpdateBefore, "a 1"), (UpdateAfter, "a 2")]),
            ["b 1", "a 2"]
        );
        assert_eq!(folded(&[(Insert, "x"), (Insert, "x"), (Delete, "x")]), ["x"]);
        assert_eq!(folded(&[(Delete, "x"), (Insert, "x"), (Insert, "y")]), ["y"]);
    }
}
