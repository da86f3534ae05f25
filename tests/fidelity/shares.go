// SPDX-License-Identifier: Apache-2.0

// What shares.cc is, for Go: go build shares.go
package main

var sink uint32
var state uint32 = 1

//go:noinline
func Random(end uint32) uint32 {
	state = state*1664525 + 1013904223
	return (state >> 8) % end
}

// Spin calls nothing: it has no frame.
//
//go:noinline
func Spin() {
	for i := uint32(0); i < 500; i++ {
		sink += i
	}
}

//go:noinline
func Seventy(units uint32) {
	for i := uint32(0); i < 7*units; i++ {
		Spin()
	}
}

//go:noinline
func Thirty(units uint32) {
	for i := uint32(0); i < 3*units; i++ {
		Spin()
	}
}

//go:noinline
func Middle() {
	for i := 0; i < 100; i++ {
		units := 1 + Random(8)
		Seventy(units)
		Thirty(units)
	}
}

//go:noinline
func Outer() {
	Middle()
	sink++
}

func main() {
	for {
		Outer()
	}
}
