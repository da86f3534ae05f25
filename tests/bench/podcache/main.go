// SPDX-License-Identifier: Apache-2.0

// podcache measures what the pods of a large cluster cost a client.
//
//	podcache serve     a stream server: the pods of a cluster as kube-apiserver sends them
//	podcache informer  controller-runtime's cache as a client of it
//
// tests/bench/pod_cache runs it beside the operator's cache.
package main

import (
	"fmt"
	"os"
)

func main() {
	command := ""
	if len(os.Args) > 1 {
		command = os.Args[1]
	}
	var err error
	switch command {
	case "serve":
		err = serve(os.Args[2:])
	case "informer":
		err = informer(os.Args[2:])
	default:
		err = fmt.Errorf("want serve or informer")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "podcache:", err)
		os.Exit(1)
	}
}
