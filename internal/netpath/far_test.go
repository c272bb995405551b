package netpath

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os/exec"
	"testing"
)

// TestProbeTo measures loopback from one end to the other, and is told where there is no other end.
func TestProbeTo(t *testing.T) {
	for _, name := range []string{"iperf3", "sockperf"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is missing", name)
		}
	}
	for _, port := range []string{iperfPort, NodePort, sockPort} {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Skipf("port %s is taken here: %v", port, err)
		}
		l.Close()
	}
	here := netip.MustParseAddr("127.0.0.1")
	ctx, stop := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { answered <- Answer(ctx) }()
	m, err := ProbeTo(t.Context(), here, false)
	if p := m.Probe; err != nil || p.Runs != 1 || p.Rate < 1e8 || p.RTT50 <= 0 || p.RTT99 < p.RTT50 || p.RTTCPU <= 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if workable := (&Net{}).workable(); workable != (m.Unworked == "") || workable != (m.Probe.Beside != nil) || m.Probe.Far != nil || m.Probe.Partly {
		t.Errorf("beside work %+v, far end %+v, without: %q", m.Probe.Beside, m.Probe.Far, m.Unworked)
	}
	if m.Nodes == nil || m.Nodes.Near.CPUs < 1 || m.Nodes.Near.Idle < 0 || m.Nodes.Near.Idle > m.Nodes.Near.CPUs+0.5 || m.Nodes.Far != nil {
		t.Errorf("without a load the nodes do %+v", m.Nodes)
	}
	if b := m.Probe.Beside; b != nil {
		t.Logf("alone %+v, beside work %+v", m.Probe, *b)
	}
	if m, err := ProbeTo(t.Context(), here, true); err != nil || m.Probe.RTTCPU <= 0 {
		t.Errorf("by a program: %+v, %v", m.Probe, err)
	}
	if w := m.Way; len(w.Links) == 0 || w.Links[0].Name != "lo" || !w.Verified || w.Source != "127.0.0.1" {
		t.Errorf("%+v", w)
	}
	stop()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*1e6)
	defer cancel()
	if _, err := ProbeTo(ctx, here, false); !errors.Is(err, ErrTool) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with nobody there: %v", err)
	}
}
