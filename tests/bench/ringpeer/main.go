// SPDX-License-Identifier: Apache-2.0

// What reading the kernel's ring costs in Go, with cilium/ebpf. Started by ring_bench, which makes the ring and has it
// filled; it is file descriptor 3. For each line of standard input it reads what is there, and says
// "records nanoseconds allocations".
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var words uint64

func drain(reader *ringbuf.Reader, record *ringbuf.Record) (records int) {
	reader.SetDeadline(time.Now()) // what is there, without waiting for more
	for {
		err := reader.ReadInto(record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return records
		}
		if err != nil {
			panic(err)
		}
		records++
		for sample := record.RawSample; len(sample) >= 8; sample = sample[8:] {
			if binary.LittleEndian.Uint64(sample) != 0 {
				words++
			}
		}
	}
}

// Of this thread: the machine may have other work.
func cpuNanos() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}

func main() {
	runtime.LockOSThread()
	reader := must(ringbuf.NewReader(must(ebpf.NewMapFromFD(3))))
	var record ringbuf.Record
	var before, after runtime.MemStats
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		runtime.ReadMemStats(&before)
		begin := cpuNanos()
		records := drain(reader, &record)
		took := cpuNanos() - begin
		runtime.ReadMemStats(&after)
		fmt.Println(records, took, after.Mallocs-before.Mallocs)
	}
}
