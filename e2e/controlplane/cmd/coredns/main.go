// SPDX-License-Identifier: Apache-2.0

// Command coredns is CoreDNS with only the plugins that cluster DNS needs.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() {
	// The order of a query's way through the plugins.
	dnsserver.Directives = []string{"reload", "health", "ready", "errors", "cache", "kubernetes"}
	coremain.Run()
}
