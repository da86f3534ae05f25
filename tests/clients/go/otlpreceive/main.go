// SPDX-License-Identifier: Apache-2.0

// The OTLP receiver of the OpenTelemetry collector: prints the port where it takes profiles over gRPC, then a line of
// JSON for each profile that came: its resource, its scope, and its pprof. otlpreceive
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"sync"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"flamefleet.dev/flamefleet/tests/clients/pprofotlp"
)

var output sync.Mutex

func take(_ context.Context, profiles pprofile.Profiles) error {
	all, err := pprofotlp.All(profiles)
	if err != nil {
		return err
	}
	output.Lock()
	defer output.Unlock()
	for _, one := range all {
		var pprof bytes.Buffer
		if err := one.Profile.Write(&pprof); err != nil {
			return err
		}
		line, err := json.Marshal(map[string]any{
			"resource": one.Resource, "scope": one.Scope, "pprof": pprof.Bytes()})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// At an address that was free a moment ago.
func start(ctx context.Context) (string, error) {
	factory := otlpreceiver.NewFactory().(xreceiver.Factory)
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	address, err := freePort()
	if err != nil {
		return "", err
	}
	server := configgrpc.NewDefaultServerConfig()
	server.NetAddr = confignet.AddrConfig{Endpoint: address, Transport: confignet.TransportTypeTCP}
	config.Protocols.GRPC = configoptional.Some(server)
	next, err := xconsumer.NewProfiles(take)
	if err != nil {
		return "", err
	}
	receiver, err := factory.CreateProfiles(ctx, receivertest.NewNopSettings(factory.Type()), config, next)
	if err != nil {
		return "", err
	}
	return address, receiver.Start(ctx, componenttest.NewNopHost())
}

func main() {
	address, err := start(context.Background())
	for try := 0; err != nil && try < 10; try++ {
		address, err = start(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	fmt.Println(port)
	select {}
}
