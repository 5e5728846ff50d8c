//! The binary: an ordinary customer of the library.

mod shell;

/// Streams allocate and free across threads all day long; mimalloc does that faster than the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    shell::main()
}
