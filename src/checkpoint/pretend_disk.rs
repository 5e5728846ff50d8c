//! A disk for tests: it loses whatever was not synced, and dies at the step it is told to.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::disk::{Disk, WritePoints};

/// Files by name, as they are now and as they would be after a loss of power.
#[derive(Default)]
pub struct PretendDisk {
    state: Mutex<State>,
}

#[derive(Default, Clone)]
struct State {
    /// What a running process sees.
    now: BTreeMap<PathBuf, Vec<u8>>,
    /// What a loss of power leaves.
    durable: BTreeMap<PathBuf, Vec<u8>>,
    directories: BTreeSet<PathBuf>,
    /// Steps left before the power is lost; `None`: it never is.
    steps: Option<u64>,
    steps_done: u64,
}

impl PretendDisk {
    /// The power is lost after so many more steps that change something.
    pub fn lose_power_after(&self, steps: u64) {
        let mut state = self.lock();
        (state.steps, state.steps_done) = (Some(steps), 0);
    }

    /// The power comes back: what was not durable is gone. Gives the steps that were done.
    pub fn restart(&self) -> u64 {
        let mut state = self.lock();
        state.now = state.durable.clone();
        state.steps = None;
        state.steps_done
    }

    /// The names of all files.
    pub fn files(&self) -> Vec<PathBuf> {
        self.lock().now.keys().cloned().collect()
    }

    /// Changes the contents of a file behind everybody's back.
    pub fn damage(&self, path: &Path, change: impl Fn(&mut Vec<u8>)) {
        let mut state = self.lock();
        change(state.now.get_mut(path).unwrap());
        state.durable = state.now.clone();
    }

    /// A disk with the same contents.
    pub fn copy(&self) -> PretendDisk {
        PretendDisk { state: Mutex::new(self.lock().clone()) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// One step; fails when the power is gone.
    fn step(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        match &mut state.steps {
            Some(0) => return Err(io::Error::other("the power is gone")),
            Some(steps) => *steps -= 1,
            None => {}
        }
        state.steps_done += 1;
        Ok(state)
    }
}

impl Disk for PretendDisk {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.lock().directories.insert(path.to_owned());
        Ok(())
    }

    fn write(&self, path: &Path, bytes: &[u8], _points: WritePoints) -> io::Result<()> {
        self.step()?.now.insert(path.to_owned(), bytes[..bytes.len() / 2].to_vec());
        self.step()?.now.insert(path.to_owned(), bytes.to_vec());
        // The contents are synced; under a name that is durable already they are so at once.
        let mut state = self.step()?;
        if state.durable.contains_key(path) {
            state.durable.insert(path.to_owned(), bytes.to_vec());
        }
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        let inside = |file: &PathBuf| file.parent() == Some(path);
        state.durable.retain(|file, _| !inside(file));
        let now: Vec<_> =
            state.now.iter().filter(|(file, _)| inside(file)).map(|(f, b)| (f.clone(), b.clone())).collect();
        state.durable.extend(now);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.step()?;
        let bytes = state.now.remove(from).ok_or(ErrorKind::NotFound)?;
        state.now.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.lock().now.get(path).ok_or(ErrorKind::NotFound)?.clone())
    }

    fn read_range(&self, path: &Path, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let bytes = self.read(path)?;
        let end = offset.checked_add(length).ok_or(ErrorKind::UnexpectedEof)? as usize;
        Ok(bytes.get(offset as usize..end).ok_or(ErrorKind::UnexpectedEof)?.to_vec())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.lock();
        let files = state.now.keys().chain(&state.directories).filter(|file| file.parent() == Some(path));
        Ok(files.map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?.now.remove(path);
        Ok(())
    }

    fn lock(&self, _path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        Ok(Some(Box::new(())))
    }
}
