// SPDX-License-Identifier: Apache-2.0

// Command goprogram serves Go's own profiles and does countable work on request: what the scraper's tests pull from.
// It prints "port N" when it listens.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"strconv"
	"sync"
	"time"
)

var widgets [][]byte

//go:noinline
func makeWidgets(count int) {
	widgets = nil
	for i := 0; i < count; i++ {
		widgets = append(widgets, make([]byte, 2048))
	}
}

//go:noinline
func contend(times int) {
	for i := 0; i < times; i++ {
		var mutex sync.Mutex
		mutex.Lock()
		done := make(chan bool)
		go func() {
			mutex.Lock()
			mutex.Unlock()
			done <- true
		}()
		time.Sleep(5 * time.Millisecond)
		mutex.Unlock()
		<-done
	}
}

//go:noinline
func burn(until time.Time) (rounds int) {
	for time.Now().Before(until) {
		rounds++
	}
	return rounds
}

func countOf(r *http.Request) int {
	count, err := strconv.Atoi(r.FormValue("count"))
	if err != nil {
		log.Fatal(err)
	}
	return count
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	http.HandleFunc("/widgets", func(w http.ResponseWriter, r *http.Request) {
		makeWidgets(countOf(r))
		runtime.GC() // profiles show what was allocated before the last two collections
		runtime.GC()
	})
	http.HandleFunc("/contend", func(w http.ResponseWriter, r *http.Request) { contend(countOf(r)) })
	http.HandleFunc("/burn", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, burn(time.Now().Add(time.Duration(countOf(r))*time.Millisecond)))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, nil))
}
