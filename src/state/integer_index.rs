//! A hash index from whole numbers to slots: linear probing, one cache line a lookup.

use super::hash::hash_word;

/// Marks a free place; a table never has so many slots.
const EMPTY: u32 = u32::MAX;

/// Whole numbers and the slot of each.
#[derive(Debug)]
pub(super) struct IntegerIndex {
    /// Number and slot; the length is a power of two, and at least a third of the places is free.
    places: Vec<(i64, u32)>,
    used: usize,
}

impl Default for IntegerIndex {
    fn default() -> IntegerIndex {
        IntegerIndex { places: vec![(0, EMPTY); 64], used: 0 }
    }
}

impl IntegerIndex {
    /// The slot of `key`, if there is one.
    #[cfg(test)]
    pub fn get(&self, key: i64) -> Option<u32> {
        let mask = self.places.len() - 1;
        let mut place = hash_word(key as u64) as usize & mask;
        loop {
            let (found, slot) = self.places[place];
            if slot == EMPTY {
                return None;
            }
            if found == key {
                return Some(slot);
            }
            place = (place + 1) & mask;
        }
    }

    /// Appends the slot of each key that stands at its home place, and [`IntegerIndex::UNKNOWN`] for the others, which
    /// have to be searched for or are new. Without a branch on what is found, so that the loads of many keys are under
    /// way at once: in a large table each of them is a wait for memory.
    #[inline]
    pub fn look_home(&self, keys: &[i64], slots: &mut Vec<u32>) {
        let mask = self.places.len() - 1;
        slots.extend(keys.iter().map(|key| {
            let (found, slot) = self.places[hash_word(*key as u64) as usize & mask];
            // An empty place holds the key 0, and as its slot what says that nothing was found.
            if found == *key { slot } else { EMPTY }
        }));
    }

    /// What [`IntegerIndex::look_home`] gives for a key that is not at home.
    pub const UNKNOWN: u32 = EMPTY;

    /// The slot of `key`; `new_slot` gives one to a key that has none.
    #[inline]
    pub fn get_or_insert(&mut self, key: i64, new_slot: impl FnOnce() -> u32) -> u32 {
        let mask = self.places.len() - 1;
        let mut place = hash_word(key as u64) as usize & mask;
        loop {
            let (found, slot) = self.places[place];
            if slot == EMPTY {
                break;
            }
            if found == key {
                return slot;
            }
            place = (place + 1) & mask;
        }
        let slot = new_slot();
        self.places[place] = (key, slot);
        self.used += 1;
        if self.used * 3 > self.places.len() * 2 {
            self.grow();
        }
        slot
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = vec![(0, EMPTY); self.places.len() * 2];
        let mask = doubled.len() - 1;
        for (key, slot) in std::mem::replace(&mut self.places, doubled) {
            if slot != EMPTY {
                let mut place = hash_word(key as u64) as usize & mask;
                while self.places[place].1 != EMPTY {
                    place = (place + 1) & mask;
                }
                self.places[place] = (key, slot);
            }
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<(i64, u32)>()
    }

    /// Forgets `key`. The keys behind it move up, so that no tombstone lengthens later searches.
    pub fn remove(&mut self, key: i64) {
        let mask = self.places.len() - 1;
        let mut hole = hash_word(key as u64) as usize & mask;
        loop {
            let (found, slot) = self.places[hole];
            if slot == EMPTY {
                return;
            }
            if found == key {
                break;
            }
            hole = (hole + 1) & mask;
        }
        self.used -= 1;
        let mut next = (hole + 1) & mask;
        while self.places[next].1 != EMPTY {
            let home = hash_word(self.places[next].0 as u64) as usize & mask;
            // The key may fill the hole unless its home lies between hole and place.
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.places[hole] = (0, EMPTY);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn it_agrees_with_a_map_under_random_inserts_and_removals() {
        let mut random = StdRng::seed_from_u64(1);
        let (mut index, mut model) = (IntegerIndex::default(), HashMap::new());
        for step in 0..50_000_u32 {
            let key = random.random_range(-200..200);
            if random.random_range(0..3) == 0 {
                index.remove(key);
                model.remove(&key);
            } else {
                assert_eq!(index.get_or_insert(key, || step), *model.entry(key).or_insert(step));
            }
            assert_eq!(index.get(key), model.get(&key).copied());
            let mut home = Vec::new();
            index.look_home(&[key], &mut home);
            assert!(home == [IntegerIndex::UNKNOWN] || home.first().copied() == model.get(&key).copied());
        }
    }
}
