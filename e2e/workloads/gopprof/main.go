// SPDX-License-Identifier: Apache-2.0

// Command gopprof is a workload with Go's own profiling endpoint on :6060. Its CPU profile shows hashBlocks, its memory
// profile buildRows.
package main

import (
	"log"
	"net/http"
	_ "net/http/pprof"
	"time"
)

const (
	blockSize = 64 << 10
	rounds    = 10  // a second, with a pause after each
	blocks    = 130 // hashed in a round: by number, not by time, so that a busy machine leaves the shares as they are
	rowCount  = 64
	rowSize   = 40 << 10
)

var (
	digest uint64
	rows   [][]byte
)

// FNV-1a: one multiplication a byte on every processor, where a cryptographic hash may have an instruction of its own.
//
//go:noinline
func hashBlocks(block []byte) {
	for range blocks {
		sum := uint64(14695981039346656037)
		for _, b := range block {
			sum = (sum ^ uint64(b)) * 1099511628211
		}
		digest = sum
	}
}

//go:noinline
func buildRows() [][]byte {
	made := make([][]byte, rowCount)
	for i := range made {
		made[i] = make([]byte, rowSize)
	}
	return made
}

func work() {
	block := make([]byte, blockSize)
	for range time.Tick(time.Second / rounds) {
		hashBlocks(block)
		rows = buildRows()
	}
}

func main() {
	go work()
	log.Fatal(http.ListenAndServe(":6060", nil))
}
