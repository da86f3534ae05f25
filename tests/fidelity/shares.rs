// SPDX-License-Identifier: Apache-2.0

// What shares.cc is, for Rust: rustc -O shares.rs
use std::hint::black_box;

#[inline(never)]
fn random(state: &mut u32, end: u32) -> u32 {
    *state = state.wrapping_mul(1664525).wrapping_add(1013904223);
    (*state >> 8) % end
}

#[inline(never)]
fn spin() {
    for i in 0..500u32 {
        black_box(i);
    }
}

#[inline(never)]
fn seventy(units: u32) {
    for _ in 0..7 * units {
        spin();
    }
}

#[inline(never)]
fn thirty(units: u32) {
    for _ in 0..3 * units {
        spin();
    }
}

#[inline(never)]
fn middle(state: &mut u32) {
    for _ in 0..100 {
        let units = 1 + random(state, 8);
        seventy(units);
        thirty(units);
    }
}

#[inline(never)]
fn outer(state: &mut u32) {
    middle(state);
    black_box(state); // so that middle is not called last
}

fn main() {
    let mut state = 1;
    loop {
        outer(&mut state);
    }
}
