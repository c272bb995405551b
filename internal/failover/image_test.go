package failover

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/ceph"
	"david/internal/process"
)

// TestWhom fences the one client that has an image, and of several none that nobody has named.
func TestWhom(t *testing.T) {
	a, b, c := "10.0.0.5:0/1", "10.0.0.5:0/2", "10.0.0.6:0/3"
	for _, x := range []struct {
		clients, asked []string
		want           string // what is fenced; or what the refusal says
	}{
		{[]string{a}, nil, "[10.0.0.5:0/1]"},
		{[]string{a, b}, nil, "only one can be the old side"},
		{[]string{a, b}, []string{a, b}, "[10.0.0.5:0/1 10.0.0.5:0/2]"},
		{[]string{a, b}, []string{"10.0.0.5"}, "[10.0.0.5]"},
		{[]string{a, c}, []string{"10.0.0.5"}, "10.0.0.6:0/3 have the image open"},
		{[]string{a, b, c}, []string{a}, "10.0.0.5:0/2 and 10.0.0.6:0/3 have"},
		{nil, nil, "nobody has the image open"},
		{nil, []string{"10.0.0.5"}, "[10.0.0.5]"},
		{[]string{a}, []string{"--force"}, "is no address"},
		{[]string{a}, []string{"127.0.0.1"}, "is this machine"},
	} {
		got, err := whom(x.clients, x.asked)
		text := fmt.Sprint(got)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, x.want) || err != nil && !errors.Is(err, ErrInput) {
			t.Errorf("%v, asked for %v: %s, want %s", x.clients, x.asked, text, x.want)
		}
	}
}

// TestNamed: two images never share what david has on record, and what is no name is refused before anything
// is made of it.
func TestNamed(t *testing.T) {
	home := t.TempDir()
	var dirs []string
	for _, i := range []ceph.Image{{Pool: "a", Name: "b.c"}, {Pool: "a.b", Name: "c"}} {
		p := &Plan{q: Request{Home: home, Mount: home, Image: &i}}
		if err := p.named(); err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		dirs = append(dirs, p.dir)
	}
	if dirs[0] == dirs[1] {
		t.Errorf("both images have %s", dirs[0])
	}
	p := &Plan{q: Request{Home: filepath.Join(home, "x"), Mount: home, Image: &ceph.Image{Pool: "a", Name: "../../../b"}}}
	if err := p.named(); !errors.Is(err, ErrInput) {
		t.Errorf("%v, claimed %s", err, p.dir)
	}
}

// TestGuarded: whoever ends david is not kept waiting by a cluster that does not answer.
func TestGuarded(t *testing.T) {
	p := &Plan{q: Request{Image: &ceph.Image{}}, dir: t.TempDir()}
	fuse := exec.Command("sleep", "60")
	if err := fuse.Start(); err != nil {
		t.Fatal(err)
	}
	by, err := process.Identify(fuse.Process.Pid)
	if err := errors.Join(err, p.save(attached{By: by})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.guarded(ctx, time.Hour, fuse.Wait); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLeftover: a look at what an earlier run left ends nothing; the plan does, first of all.
func TestLeftover(t *testing.T) {
	p := &Plan{q: Request{Image: &ceph.Image{Pool: "a", Name: "b"}}, dir: t.TempDir()}
	if _, err := p.leftover(); err != nil || len(p.Steps) > 0 {
		t.Fatalf("nothing is left, and %d steps are planned: %v", len(p.Steps), err)
	}
	fuse := exec.Command("sleep", "60")
	if err := fuse.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- fuse.Wait() }()
	defer fuse.Process.Kill()
	by, err := process.Identify(fuse.Process.Pid)
	if err := errors.Join(err, p.save(attached{By: by, Client: "10.0.0.5:0/1"})); err != nil {
		t.Fatal(err)
	}
	own, err := p.leftover()
	if err != nil || own.Client != "10.0.0.5:0/1" || len(p.Steps) != 1 || p.Steps[0].Name != Detaching {
		t.Fatalf("%+v, %v: %+v", own, err, p.Steps)
	}
	if !by.Alive() {
		t.Fatal("a look has ended it")
	}
	if err := p.Steps[0].do(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
	if left, err := p.recorded(); err != nil || left.By.PID != 0 {
		t.Errorf("still on record: %+v, %v", left, err)
	}
}
