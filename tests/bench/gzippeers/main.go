// SPDX-License-Identifier: Apache-2.0

// What compressing one profile costs in Go: gzippeers FILE
//
// The writers that profilers in Go use: compress/gzip and klauspost/compress, reused as from a pool, and the
// stateless one of klauspost. MB are of the input; sizes and allocations are per profile.
package main

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

type writer interface {
	io.WriteCloser
	Reset(io.Writer)
}

// Stateless is raw deflate: the 18 bytes of a gzip frame are added to its size.
func stateless(input []byte, out *bytes.Buffer) {
	if err := flate.StatelessDeflate(out, input, true, nil); err != nil {
		panic(err)
	}
}

func pooled(w writer) func([]byte, *bytes.Buffer) {
	return func(input []byte, out *bytes.Buffer) {
		w.Reset(out)
		if _, err := w.Write(input); err != nil {
			panic(err)
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Of this process: the machine may have other work.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gzippeers FILE")
		os.Exit(2)
	}
	input := must(os.ReadFile(os.Args[1]))
	for _, peer := range []struct {
		name     string
		frame    int
		compress func([]byte, *bytes.Buffer)
	}{
		{"compress/gzip, default level", 0, pooled(must(stdgzip.NewWriterLevel(io.Discard, stdgzip.DefaultCompression)))},
		{"compress/gzip, BestSpeed", 0, pooled(must(stdgzip.NewWriterLevel(io.Discard, stdgzip.BestSpeed)))},
		{"klauspost/compress, default level", 0, pooled(must(gzip.NewWriterLevel(io.Discard, gzip.DefaultCompression)))},
		{"klauspost/compress, BestSpeed", 0, pooled(must(gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)))},
		{"klauspost/compress, stateless", 18, stateless},
	} {
		var out bytes.Buffer
		once := func() {
			out.Reset()
			peer.compress(input, &out)
		}
		allocations := testing.AllocsPerRun(10, once)
		rounds, begin := 0, cpuTime()
		for ; cpuTime()-begin < time.Second; rounds++ {
			once()
		}
		seconds := (cpuTime() - begin).Seconds()
		fmt.Printf("%-36s %7.1f MB per second of CPU %8d bytes %4.0f allocations\n", peer.name,
			float64(len(input)*rounds)/seconds/1e6, out.Len()+peer.frame, allocations)
	}
}
