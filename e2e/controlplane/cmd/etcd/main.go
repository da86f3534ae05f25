// SPDX-License-Identifier: Apache-2.0

// Command etcd is the etcd server of the test cluster.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
