// SPDX-License-Identifier: Apache-2.0

// Command gopprof is a workload with Go's own profiling endpoint on :6060. Its CPU profile shows hashBlocks, its memory
// profile buildRows. The same is on :6443 with a certificate that nobody signed but itself, and the memory profile at
// /internal/memory for who asks with key=open.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log"
	"math/big"
	"net/http"
	"net/http/pprof"
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

func selfSigned() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
}

func main() {
	go work()
	http.HandleFunc("/internal/memory", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("key") != "open" {
			http.Error(w, "who are you?", http.StatusForbidden)
			return
		}
		pprof.Handler("heap").ServeHTTP(w, r)
	})
	go func() {
		server := &http.Server{Addr: ":6443", TLSConfig: &tls.Config{Certificates: []tls.Certificate{selfSigned()}}}
		log.Fatal(server.ListenAndServeTLS("", ""))
	}()
	log.Fatal(http.ListenAndServe(":6060", nil))
}
