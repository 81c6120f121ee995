// A collector of OpenTelemetry's own parts: its service, its configuration and its OTLP receiver.
// What it took is appended to a file, a line of OTLP's JSON for each request.
package main

import (
	"context"
	"log"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// What the configuration says of the exporter "lines".
type lines struct {
	Path string `mapstructure:"path"`
}

func (one *lines) write(_ context.Context, metrics pmetric.Metrics) error {
	text, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(metrics)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(one.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(text, '\n'))
	return err
}

func makeLines() exporter.Factory {
	kind := component.MustNewType("lines")
	configure := func() component.Config { return &lines{} }
	create := func(ctx context.Context, set exporter.Settings, config component.Config) (exporter.Metrics, error) {
		write := config.(*lines).write
		return exporterhelper.NewMetrics(ctx, set, config, write,
			exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}))
	}
	return exporter.NewFactory(kind, configure, exporter.WithMetrics(create, component.StabilityLevelStable))
}

func components() (otelcol.Factories, error) {
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](makeLines())
	if err != nil {
		return otelcol.Factories{}, err
	}
	return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: otelconftelemetry.NewFactory()}, nil
}

func main() {
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "for nodescope's tests", Version: "0.162.0"},
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			DefaultScheme:     "file",
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
		}},
	}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}
