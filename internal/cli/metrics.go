package cli

import (
	"context"
	"net"

	"github.com/spf13/pflag"

	"david/internal/serve"
)

// addMetrics adds the flag of a command that can be looked at while it works.
func (a *app) addMetrics(fs *pflag.FlagSet) {
	fs.StringVar(&a.metrics, "metrics", "", "HOST:PORT to serve figures of what is measured on, for Prometheus, at /metrics; whoever can connect can read them")
}

// serveMetrics serves them until ctx ends, where that was asked for.
func (a *app) serveMetrics(ctx context.Context) error {
	if a.metrics == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(a.metrics); err != nil {
		return usage("--metrics %q: give HOST:PORT, as in 127.0.0.1:9104", a.metrics)
	}
	l, err := net.Listen("tcp", a.metrics)
	if err != nil {
		return usage("cannot listen on --metrics %s: %w", a.metrics, err)
	}
	a.remark("figures for Prometheus at http://%s/metrics", l.Addr())
	go func() {
		if err := serveUntil(ctx, l, serve.Metrics(a.home)); err != nil {
			a.remark("%v; what is measured goes on", err)
		}
	}()
	return nil
}
