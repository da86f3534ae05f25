// SPDX-License-Identifier: Apache-2.0

// Command gopprof is a workload with Go's own profiling endpoint on :6060. Its CPU profile shows hashBlocks, its memory
// profile buildRows.
package main

import (
	"crypto/sha256"
	"log"
	"net/http"
	_ "net/http/pprof"
	"time"
)

const (
	blockSize = 64 << 10
	rounds    = 100 // a second, with a pause after each
	blocks    = 12  // hashed in a round: by number, not by time, so that a busy machine leaves the shares as they are
	rowCount  = 64
	rowSize   = 4 << 10
)

var (
	digest [sha256.Size]byte
	rows   [][]byte
)

//go:noinline
func hashBlocks(block []byte) {
	for range blocks {
		digest = sha256.Sum256(block)
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
