package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"david/internal/plain"
	"david/internal/report"
	"david/internal/result"
	"david/internal/serve"
)

// defaultListen is a port of this machine's own, and another one where it is taken.
const defaultListen = "127.0.0.1:0"

func (a *app) serveCommand() *cobra.Command {
	listen, dashboard := "", false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Show the experiments as pages in a browser of this machine, and what is being measured while it is",
		Long: "Show the experiments in david's folder as pages in a browser: what each found, its report, two of them side by side, throughput and\n" +
			"latency of the run that is on, whoever began it; a tune can be started and stopped. Only this machine is served unless --listen names\n" +
			"another address, and only who has the token of the address that is printed. Ctrl-C ends it.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dashboard {
				_, err := io.WriteString(a.out, serve.Dashboard())
				return err
			}
			return a.serve(cmd.Context(), listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", defaultListen, "HOST:PORT to listen on; port 0 is any that is free")
	a.addMetrics(cmd.Flags())
	cmd.Flags().BoolVar(&dashboard, "grafana", false, "print a dashboard for Grafana of what --metrics serves, as JSON, and end")
	return cmd
}

// serve shows pages until ctx ends.
func (a *app) serve(ctx context.Context, listen string) (err error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usage("--listen %q: give HOST:PORT, as in 127.0.0.1:8080", listen)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find david's own program: %w", err)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return codedError{exitUsage, fmt.Errorf("cannot listen on --listen %s: %w", listen, err)}
	}
	site, err := serve.New(serve.Options{Home: a.home, Host: host, Load: a.loadShown, Report: a.reportPage, Program: program})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer site.Close()
	if open(host) {
		a.remark("%s is not this machine alone, and what is sent is not encrypted: whoever reads along has the token", l.Addr())
	}
	fmt.Fprintf(a.out, "http://%s/?token=%s\n", l.Addr(), site.Token())
	if err := flushed(a.out); err != nil {
		return errors.Join(err, l.Close())
	}
	return serveUntil(ctx, l, site)
}

// open tells whether others than this machine can connect to a host.
func open(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host != "localhost" && (err != nil || !ip.IsLoopback())
}

// flushed writes out what the writer holds back.
func flushed(w io.Writer) error {
	if p, ok := w.(*plain.Writer); ok {
		return p.Flush()
	}
	return nil
}

// serveUntil answers until ctx ends, which is no error.
func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve on %s: %w", l.Addr(), err)
	}
	return nil
}

// reportPage writes a record's report: HTML, or of a crash test the text it has.
func (a *app) reportPage(w io.Writer, dir string) (isHTML bool, err error) {
	store, err := a.openRecord(dir)
	if err != nil {
		return false, err
	}
	if store.Experiment().Kind == result.KindCrash {
		c, err := store.Crash()
		if err == nil && c == nil {
			err = fmt.Errorf("%s did not come to its end, so it shows nothing", store.Experiment().ID)
		}
		if err != nil {
			return false, err
		}
		return false, report.Crash(w, *c)
	}
	d, err := a.loadShown(dir)
	if err != nil {
		return true, err
	}
	return true, a.inRoom(report.HTML(w, d))
}
