// SPDX-License-Identifier: Apache-2.0

// Profiles itself with pyroscope-go until its input ends: pyroscope URL NAME PASSWORD.
package main

import (
	"io"
	"log"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grafana/pyroscope-go"
)

var (
	kept  [64]string
	mutex sync.Mutex
)

//go:noinline
func hotLeaf(number int) int {
	sum := 0
	for i := range number {
		sum += i * i % 7
	}
	return sum
}

//go:noinline
func outer(round int) {
	mutex.Lock()
	defer mutex.Unlock()
	kept[round%len(kept)] = strings.Repeat("x", 100_000+hotLeaf(1_000_000)%2)
	runtime.Gosched()
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName:   "go-client",
		ServerAddress:     os.Args[1],
		BasicAuthUser:     os.Args[2],
		BasicAuthPassword: os.Args[3],
		Tags:              map[string]string{"team": "a.b"},
		UploadRate:        time.Second,
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace,
			pyroscope.ProfileInuseObjects, pyroscope.ProfileInuseSpace, pyroscope.ProfileGoroutines,
			pyroscope.ProfileMutexCount, pyroscope.ProfileMutexDuration,
			pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration,
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	var ended atomic.Bool
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for round := 0; !ended.Load(); round++ {
				outer(round)
			}
		})
	}
	io.Copy(io.Discard, os.Stdin)
	ended.Store(true)
	workers.Wait()
	profiler.Flush(true)
	if err := profiler.Stop(); err != nil {
		log.Fatal(err)
	}
}
