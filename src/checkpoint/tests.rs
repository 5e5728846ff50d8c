//! The store on a disk that loses power at every step, and with every file damaged: never wrong data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt16Array};
use arrow::datatypes::Int64Type;

use super::disk::Disk;
use super::manifest::{Manifest, OperatorEntry};
use super::pretend_disk::PretendDisk;
use super::recovery::SavedState;
use super::state_file::{EncodedDelta, encode_snapshot, merge};
use super::store::Store;
use crate::error::{ErrorKind, Result};
use crate::state::{KEY_GROUP_COLUMN, KeyGroupRange, Scope, Snapshot, TableDelta};

type Table = BTreeMap<i64, i64>;

fn directory() -> &'static Path {
    Path::new("/checkpoints")
}

fn open(disk: &Arc<PretendDisk>) -> Result<Store> {
    Store::open(Arc::clone(disk) as Arc<dyn Disk>, directory(), "job")
}

fn delta(base: bool, upserts: &[(i64, i64)], deletes: &[i64]) -> TableDelta {
    let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let groups = |count: usize| -> ArrayRef { Arc::new(UInt16Array::from(vec![0; count])) };
    let (keys, values) = upserts.iter().copied().unzip();
    let upserts = [(KEY_GROUP_COLUMN, groups(upserts.len())), ("k", column(keys)), ("v", column(values))];
    let deletes = [(KEY_GROUP_COLUMN, groups(deletes.len())), ("k", column(deletes.to_vec()))];
    TableDelta {
        table: "t".to_owned(),
        scope: Scope::Keyed,
        base,
        upserts: Some(RecordBatch::try_from_iter(upserts).unwrap()),
        deletes: Some(RecordBatch::try_from_iter(deletes).unwrap()),
    }
}

fn encoded(delta: TableDelta) -> Vec<EncodedDelta> {
    encode_snapshot("count", 0, Snapshot { tables: vec![delta] }).unwrap()
}

fn apply<'a>(deltas: impl IntoIterator<Item = &'a TableDelta>) -> Table {
    let mut table = Table::new();
    for delta in deltas {
        if delta.base {
            table.clear();
        }
        for key in delta.deletes.iter().flat_map(|rows| rows.column(1).as_primitive::<Int64Type>().values()) {
            table.remove(key);
        }
        if let Some(rows) = &delta.upserts {
            let columns = (rows.column(1).as_primitive::<Int64Type>(), rows.column(2).as_primitive::<Int64Type>());
            table.extend(columns.0.values().iter().copied().zip(columns.1.values().iter().copied()));
        }
    }
    table
}

fn restored(state: &SavedState) -> Table {
    apply(&state.restored("count", KeyGroupRange::ALL).unwrap().deltas)
}

fn manifest(id: u64, rows: i64) -> Manifest {
    let mut manifest = Manifest::new("job", 1, id);
    let entry = OperatorEntry { description: "Count".to_owned(), fingerprint: "f".to_owned() };
    manifest.operators.insert("count".to_owned(), entry);
    manifest.sinks.insert("out".to_owned(), vec![rows.into()]);
    manifest
}

/// A job in miniature: step `n` adds key `n` and changes key 0. Gives the table after each step.
fn tables(steps: i64) -> Vec<Table> {
    (0..=steps).map(|step| (0..=step).map(|key| (key, if key == 0 { step } else { key })).collect()).collect()
}

/// Goes on from what the disk holds up to `steps`, as a job would. Gives the steps whose results were committed.
fn run(disk: &Arc<PretendDisk>, steps: i64, committed: &mut Vec<i64>) -> Result<()> {
    let mut store = open(disk)?;
    let (mut step, mut first) = (0, true);
    if let Some(found) = store.recover()? {
        let table = restored(&found.state);
        step = found.manifest.sinks["out"][0].as_i64().unwrap();
        assert_eq!(table, tables(step)[step as usize], "the state is that of the step");
        if !found.confirmed {
            committed.push(step);
            store.confirm(found.manifest.checkpoint)?;
        }
    }
    assert!(committed.iter().all(|done| *done <= step), "went back behind a committed step");
    while step < steps {
        step += 1;
        let id = store.next_id()?;
        let rows: Vec<(i64, i64)> = tables(step)[step as usize].clone().into_iter().collect();
        let changed: Vec<(i64, i64)> = if first { rows } else { vec![(0, step), (step, step)] };
        store.append(id, encoded(delta(std::mem::take(&mut first), &changed, &[])))?;
        store.publish(manifest(id, step))?;
        committed.push(step);
        store.confirm(id)?;
        store.retain(1)?;
        if let Some(candidate) = store.merge_candidate() {
            let merged = candidate.run()?.unwrap();
            store.replace(&candidate, merged)?;
        }
    }
    Ok(())
}

#[test]
fn power_lost_at_every_step_loses_nothing_and_doubles_nothing() {
    const STEPS: i64 = 14;
    let whole = Arc::new(PretendDisk::default());
    run(&whole, STEPS, &mut Vec::new()).unwrap();
    let all = whole.restart();
    assert!(all > 100);
    for at in 0..all {
        let disk = Arc::new(PretendDisk::default());
        let mut committed = Vec::new();
        disk.lose_power_after(at);
        // At the very last steps only the lease gives back ids, which may fail without harm.
        if let Err(error) = run(&disk, STEPS, &mut committed) {
            assert_eq!(error.kind(), ErrorKind::Setup, "at {at}: {error}");
        }
        disk.restart();
        // And once more, while it recovers.
        disk.lose_power_after(at % 17);
        drop(run(&disk, STEPS, &mut committed));
        disk.restart();
        run(&disk, STEPS, &mut committed).unwrap();
        // Committing is repeatable, so a step may be there several times in a row, but none may be missing.
        committed.dedup();
        assert_eq!(committed, (1..=STEPS).collect::<Vec<_>>(), "at {at}");
    }
}

#[test]
fn files_that_nobody_names_are_gone_and_those_of_a_merged_table_are_few() {
    let disk = Arc::new(PretendDisk::default());
    run(&disk, 60, &mut Vec::new()).unwrap();
    let state = disk.files().into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "arrow"));
    assert!(state.count() <= 12);
    let manifests = disk.files().into_iter().filter(|file| file.to_string_lossy().contains("manifest"));
    assert_eq!(manifests.count(), 2, "one manifest and its copy");
}

/// The disk after two checkpoints of which the newer is confirmed or not.
fn two_checkpoints(confirmed: bool) -> PretendDisk {
    let disk = Arc::new(PretendDisk::default());
    let mut store = open(&disk).unwrap();
    for step in 1..=2 {
        let id = store.next_id().unwrap();
        let rows: Vec<(i64, i64)> = tables(step)[step as usize].clone().into_iter().collect();
        store.append(id, encoded(delta(true, &rows, &[]))).unwrap();
        store.publish(manifest(id, step)).unwrap();
        if confirmed || step == 1 {
            store.confirm(id).unwrap();
        }
    }
    drop(store);
    disk.copy()
}

/// What recovery makes of a damaged disk: the step it goes on from, or the error.
fn recovered_step(disk: PretendDisk) -> Result<i64, String> {
    let mut store = open(&Arc::new(disk)).map_err(|error| error.to_string())?;
    match store.recover() {
        Ok(Some(found)) => {
            let step = found.manifest.sinks["out"][0].as_i64().unwrap();
            assert_eq!(restored(&found.state), tables(step)[step as usize], "wrong data");
            assert!(step == 2 || found.warning.is_some(), "went back without a word");
            Ok(step)
        }
        Ok(None) => Ok(0),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::State);
            Err(error.to_string())
        }
    }
}

#[test]
fn a_damaged_newest_checkpoint_falls_back_only_before_it_is_committed() {
    for confirmed in [false, true] {
        let whole = two_checkpoints(confirmed);
        let of_newest = |path: &PathBuf| {
            let name = path.to_string_lossy().into_owned();
            name.contains("000000000002") && !name.contains("confirmed")
        };
        for path in whole.files().into_iter().filter(of_newest) {
            let length = whole.read(&path).unwrap().len();
            let is_manifest = path.to_string_lossy().contains("manifest");
            for at in (0..length).step_by(7) {
                let (flipped, cut) = (whole.copy(), whole.copy());
                flipped.damage(&path, |bytes| bytes[at] ^= 0x10);
                cut.damage(&path, |bytes| bytes.truncate(at));
                for disk in [flipped, cut] {
                    match recovered_step(disk) {
                        // One of two manifests is enough.
                        Ok(2) => assert!(is_manifest),
                        Ok(1) => assert!(!confirmed, "{} at {at}", path.display()),
                        Ok(step) => panic!("step {step} after damage to {}", path.display()),
                        Err(message) => assert!(confirmed, "{message}"),
                    }
                }
            }
            let gone = whole.copy();
            gone.remove(&path).unwrap();
            let result = recovered_step(gone);
            assert!(result == Ok(2) || confirmed == result.is_err(), "{} missing: {result:?}", path.display());
        }
        let both = whole.copy();
        for path in whole.files().into_iter().filter(|path| path.to_string_lossy().contains("manifest-000000000002")) {
            both.damage(&path, |bytes| bytes[10] ^= 1);
        }
        let result = recovered_step(both);
        assert_eq!(result.as_ref().ok(), if confirmed { None } else { Some(&1) }, "{result:?}");
    }
}

#[test]
fn a_manifest_of_another_version_is_refused() {
    let disk = two_checkpoints(false);
    let mut other = manifest(2, 2);
    other.format += 1;
    let bytes = other.encode().unwrap();
    for path in disk.files().into_iter().filter(|path| path.to_string_lossy().contains("manifest-000000000002")) {
        disk.damage(&path, |old| *old = bytes.clone());
    }
    assert!(recovered_step(disk).unwrap_err().contains("another version"));
}

#[test]
fn ids_are_never_used_twice_not_even_those_of_checkpoints_that_were_given_up() {
    let disk = Arc::new(PretendDisk::default());
    let mut used = Vec::new();
    for round in 0..5 {
        let mut store = open(&disk).unwrap();
        (0..7).for_each(|_| used.push(store.next_id().unwrap()));
        if round % 2 == 0 {
            disk.lose_power_after(0);
        }
        drop(store);
        disk.restart();
    }
    assert!(used.windows(2).all(|pair| pair[0] < pair[1]), "{used:?}");
}

#[test]
fn a_directory_that_was_removed_and_taken_by_another_job_gets_nothing_more_from_the_first() {
    let disk = Arc::new(PretendDisk::default());
    let mut first = open(&disk).unwrap();
    let id = first.next_id().unwrap();
    disk.files().iter().for_each(|file| disk.remove(file).unwrap());
    let mut second = open(&disk).unwrap();
    assert!(first.lineage() != second.lineage());
    assert_eq!(first.append(id, encoded(delta(true, &[(1, 1)], &[]))).unwrap_err().kind(), ErrorKind::State);
    assert_eq!(first.publish(manifest(id, 1)).unwrap_err().kind(), ErrorKind::State);
    assert!((0..20).any(|_| first.next_id().is_err()), "it reserves no ids there either");
    drop(first);
    let id = second.next_id().unwrap();
    second.publish(manifest(id, 1)).unwrap();
}

#[test]
fn a_table_that_is_due_at_once_again_does_not_keep_others_from_being_merged() {
    let disk = Arc::new(PretendDisk::default());
    let mut store = open(&disk).unwrap();
    let rows: Vec<(i64, i64)> = (0..10_000).map(|key| (key, key)).collect();
    for step in 0..60 {
        let id = store.next_id().unwrap();
        // All keys of the first table change every time; the second one gets a few more.
        store.append(id, encoded(delta(step == 0, &rows, &[]))).unwrap();
        let small = Snapshot { tables: vec![delta(step == 0, &[(step, step)], &[])] };
        store.append(id, encode_snapshot("second", 0, small).unwrap()).unwrap();
        store.publish(manifest(id, 1)).unwrap();
        store.confirm(id).unwrap();
        store.retain(1).unwrap();
        if let Some(merge) = store.merge_candidate() {
            let merged = merge.run().unwrap().unwrap();
            store.replace(&merge, merged).unwrap();
        }
    }
    assert!(disk.files().len() < 40, "{} files", disk.files().len());
}

#[test]
fn merged_deltas_are_what_applying_them_gives() {
    let mut random = 7u64;
    let mut next = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % bound) as i64
    };
    for _ in 0..50 {
        let deltas: Vec<TableDelta> = (0..next(9) + 1)
            .map(|index| {
                let upserts: BTreeMap<i64, i64> = (0..next(12)).map(|_| (next(20), next(1_000))).collect();
                let upserts: Vec<(i64, i64)> = upserts.into_iter().collect();
                let deletes: Vec<i64> = (0..next(5)).map(|_| next(20)).collect();
                delta(index == 0 || next(10) == 0, &upserts, &deletes)
            })
            .collect();
        let merged = merge(&deltas).unwrap().unwrap();
        assert!(merged.base);
        assert_eq!(apply([&merged]), apply(&deltas));
    }
}
