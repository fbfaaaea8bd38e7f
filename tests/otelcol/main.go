// SPDX-License-Identifier: Apache-2.0

// The OTLP receiver of the OpenTelemetry collector, and nothing behind it: what it takes is added to
// a file, one request on a line, by the collector's own JSON writer, before it answers.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	metric "go.opentelemetry.io/otel/metric/noop"
	trace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
)

type host struct{}

func (host) GetExtensions() map[component.ID]component.Component { return nil }

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writer(path string) func(context.Context, pmetric.Metrics) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	fail(err)
	return func(_ context.Context, metrics pmetric.Metrics) error {
		line, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(metrics)
		if err == nil {
			_, err = file.Write(append(line, '\n'))
		}
		return err
	}
}

func main() {
	ctx := context.Background()
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: otelcol ADDRESS FILE"))
	}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.GRPC = nil
	config.HTTP.ServerConfig.Endpoint = os.Args[1]
	next, err := consumer.NewMetrics(writer(os.Args[2]))
	fail(err)
	settings := receiver.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger:         zap.NewNop(),
			TracerProvider: trace.NewTracerProvider(),
			MeterProvider:  metric.NewMeterProvider(),
		},
	}
	server, err := factory.CreateMetrics(ctx, settings, config, next)
	fail(err)
	fail(server.Start(ctx, host{}))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	fail(server.Shutdown(ctx))
}
