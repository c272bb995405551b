package netpath

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// TestNodes: this machine is one with itself, and what it did from one reading to the next is what its CPUs can do at most.
func TestNodes(t *testing.T) {
	d, err := newDesk()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+NodePort)
	if err != nil {
		t.Skipf("the port is taken here: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- d.serve(ctx, l) }()
	n, err := Both(t.Context(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	before, err := n.Read()
	if err != nil || !before.One() || before.Near.CPUs < 1 || len(before.Far.Usable) < 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	began := time.Now()
	for time.Since(began) < 300*time.Millisecond { // keeps a CPU busy
	}
	after, err := n.Read()
	if near, far := before.Busy(after); err != nil || near < 0.1 || near > float64(before.Near.CPUs)*(time.Since(began).Seconds()+0.1) || far != 0 {
		t.Errorf("%v s and %v s, %v", near, far, err)
	}
	if _, err := n.far.ask([]int{0}); err == nil || !strings.Contains(err.Error(), "no work is done here") {
		t.Errorf("work was begun: %v", err)
	}
	d.works = true
	other, err := VisitNode(t.Context(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.ask(before.Near.Usable[:1]); err != nil {
		t.Error(err)
	}
	if _, err := n.far.ask([]int{0}); err == nil || !strings.Contains(err.Error(), "for another") {
		t.Errorf("work was begun twice: %v", err)
	}
	if a, err := other.Read(); err != nil || a.Done != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := n.far.ask(before.Near.Usable[:1]); err != nil { // the other's has ended
		t.Error(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	checkFar(t, before, after)
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := n.Read(); err == nil || !strings.Contains(err.Error(), "cannot see the node at 127.0.0.1") {
		t.Errorf("after the end: %v", err)
	}
}

// checkFar: a far end that is another machine was busy for what it says.
func checkFar(t *testing.T, before, after Pair) {
	t.Helper()
	before.Far.Boot, before.Far.Busy = "another", 10
	after.Far.Boot, after.Far.Busy = "another", 12
	if _, far := before.Busy(after); far != 2 || before.One() {
		t.Errorf("another machine was busy for %v s of 2", far)
	}
}

// TestUnworkable says why.
func TestUnworkable(t *testing.T) {
	many := make([]int, mostWorkers+1)
	for name, c := range map[string]struct {
		cpus  []int
		quota float64
		want  string
	}{
		"two": {[]int{0, 1}, 0, ""}, "two of a quota of two": {[]int{2, 5}, 2, ""}, "one": {[]int{3}, 0, "one CPU only"},
		"a limit": {[]int{0, 1}, 1, "a limit of 1 CPUs of 2"}, "many": {many, 0, "not seen on 17 CPUs"},
	} {
		if got := unworkable(c.cpus, c.quota); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
