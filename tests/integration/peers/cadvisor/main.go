// A cAdvisor of thirty lines: its published library, housekeeping every
// second for every container, and /metrics.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/google/cadvisor/lib/cache/memory"
	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/manager"
	"github.com/google/cadvisor/lib/metrics"
	info "github.com/google/cadvisor/lib/model"
	"github.com/google/cadvisor/lib/utils/sysfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
)

// What kubelet asks for, so that the comparison is with the cAdvisor people run.
var included = container.MetricSet{
	container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}, container.CpuLoadMetrics: {},
	container.DiskIOMetrics: {}, container.NetworkUsageMetrics: {}, container.AppMetrics: {},
	container.ProcessMetrics: {}, container.OOMMetrics: {}, container.PressureMetrics: {},
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address of /metrics")
	flag.Parse()
	interval, dynamic := time.Second, false
	m, err := manager.New(memory.New(2*time.Minute, nil), sysfs.NewRealSysFs(),
		manager.HousekeepingConfig{Interval: &interval, AllowDynamic: &dynamic}, included, []string{"/"}, nil, "", 0)
	if err != nil {
		log.Fatal(err)
	}
	if err := m.Start(); err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewPrometheusCollector(m, nil, included, clock.RealClock{},
		info.RequestOptions{IdType: info.TypeName, Count: 1, Recursive: true}))
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	log.Fatal(http.ListenAndServe(*listen, nil))
}
