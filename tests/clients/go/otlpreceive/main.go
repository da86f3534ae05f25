// SPDX-License-Identifier: Apache-2.0

// The OTLP receiver of the OpenTelemetry collector: prints the port where it takes profiles over gRPC, then a line of
// JSON for each profile that came: its resource, and its pprof. Ends with its input. otlpreceive
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"os"
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
		line, err := json.Marshal(map[string]any{"resource": one.Resource, "pprof": pprof.Bytes()})
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

func run() error {
	factory := otlpreceiver.NewFactory().(xreceiver.Factory)
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	address, err := freePort()
	if err != nil {
		return err
	}
	server := configgrpc.NewDefaultServerConfig()
	server.NetAddr = confignet.AddrConfig{Endpoint: address, Transport: confignet.TransportTypeTCP}
	config.Protocols.GRPC = configoptional.Some(server)
	next, err := xconsumer.NewProfiles(take)
	if err != nil {
		return err
	}
	ctx := context.Background()
	receiver, err := factory.CreateProfiles(ctx, receivertest.NewNopSettings(factory.Type()), config, next)
	if err != nil {
		return err
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(address)
	fmt.Println(port)
	io.Copy(io.Discard, os.Stdin)
	return receiver.Shutdown(ctx)
}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
