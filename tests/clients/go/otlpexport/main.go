// SPDX-License-Identifier: Apache-2.0

// Sends pprof files as OTLP profiles with an exporter of the OpenTelemetry collector, all in one request, one resource
// for each: otlpexport grpc|http ENDPOINT TOKEN FILE...
// The services are called as the protocol and the file, without its folder and ".pb.gz": grpc-real_cpu.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"flamefleet.dev/flamefleet/tests/clients/pprofotlp"
)

func newExporter(protocol, endpoint, token string) (xexporter.Profiles, error) {
	headers := configopaque.MapList{{Name: "authorization", Value: configopaque.String("Bearer " + token)}}
	ctx := context.Background()
	if protocol == "http" {
		factory := otlphttpexporter.NewFactory().(xexporter.Factory)
		config := factory.CreateDefaultConfig().(*otlphttpexporter.Config)
		config.ClientConfig.Endpoint = endpoint
		config.ClientConfig.Headers = headers
		config.QueueConfig = configoptional.None[exporterhelper.QueueBatchConfig]()
		return factory.CreateProfiles(ctx, exportertest.NewNopSettings(factory.Type()), config)
	}
	factory := otlpexporter.NewFactory().(xexporter.Factory)
	config := factory.CreateDefaultConfig().(*otlpexporter.Config)
	config.ClientConfig.Endpoint = endpoint
	config.ClientConfig.TLS.Insecure = true
	config.ClientConfig.Headers = headers
	config.QueueConfig = configoptional.None[exporterhelper.QueueBatchConfig]()
	return factory.CreateProfiles(ctx, exportertest.NewNopSettings(factory.Type()), config)
}

func read(path string) (*profile.Profile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return profile.Parse(file)
}

func run(protocol, endpoint, token string, files []string) error {
	exporter, err := newExporter(protocol, endpoint, token)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := exporter.Start(ctx, componenttest.NewNopHost()); err != nil {
		return err
	}
	profiles := pprofile.NewProfiles()
	for _, path := range files {
		from, err := read(path)
		if err != nil {
			return err
		}
		service := protocol + "-" + strings.TrimSuffix(filepath.Base(path), ".pb.gz")
		pprofotlp.Add(profiles, map[string]string{
			"service.name": service, "k8s.pod.name": service + "-1", "team": "a.b",
		}, from, time.Now().UnixNano())
	}
	if err := exporter.ConsumeProfiles(ctx, profiles); err != nil {
		return err
	}
	return exporter.Shutdown(ctx)
}

func main() {
	log.SetFlags(0)
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		log.Fatal(err)
	}
}
