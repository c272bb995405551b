package podnet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"david/internal/kube"
	"david/internal/podrun"
	"david/internal/result"
)

func names(list []Network) (text string) {
	for _, n := range list {
		text += n.Name + " "
	}
	return strings.TrimSpace(text)
}

func paths(list string) (networks []Network) {
	ways := map[string]Network{"host": {Host: true}, "service": {Way: Service}, "load-balancer": {Way: LoadBalancer}, "balancer": {Way: Balancer}}
	for _, name := range strings.Fields(list) {
		n := ways[name]
		n.Name = name
		networks = append(networks, n)
	}
	return networks
}

// TestUnusable: a path is at fault where its client reached nothing, and a balancer where no client starts
// beside it; whatever else went wrong ends the run.
func TestUnusable(t *testing.T) {
	silent := fmt.Errorf("x: %w", &podrun.ClientError{Code: 4})
	noPlace := fmt.Errorf("x: %w", &kube.Failure{Object: "pod a/b", Reason: "Pending", Message: "Link not found", Waited: true})
	for _, c := range []struct {
		path string
		err  error
		want []string // in what is said; nil: the run ends
	}{
		{"service", silent, []string{""}},
		{"balancer", silent, []string{""}},
		{"load-balancer", silent, []string{"--start-timeout waits longer"}},
		{"service", &podrun.ClientError{Code: 2}, nil}, // an image of another version
		{"service", noPlace, nil},
		{"balancer", noPlace, []string{"the HAProxy that david started has taken the place", "node b", "Link not found"}},
		{"balancer", &kube.Failure{Reason: "ImagePullBackOff"}, nil},
		{"balancer", errors.New("else"), nil},
		{"balancer", nil, nil},
	} {
		r := Request{clientNode: "b"}
		got := r.unusable(paths(c.path)[0], c.err)
		var why unavailable
		if errors.As(got, &why) != (c.want != nil) || c.want == nil && got != c.err {
			t.Errorf("%s, %v: %v", c.path, c.err, got)
		}
		for _, want := range c.want {
			if !strings.Contains(why.Error(), want) {
				t.Errorf("%s, %v: %v, want %q", c.path, c.err, got, want)
			}
		}
		var failure *kube.Failure
		if c.want != nil && errors.As(got, &failure) && (failure.Waited || !errors.Is(got, kube.ErrFailed)) {
			t.Errorf("%s: waiting longer is advised, or it is no failure of the cluster: %v", c.path, got)
		}
	}
}

// TestDrop: the other paths go on, and what was dropped is noted and shown; without the control or with
// nothing to compare the run ends.
func TestDrop(t *testing.T) {
	for _, c := range []struct {
		paths, drop, left string
		want              string // of the error
	}{
		{"host pod service balancer", "service", "host pod balancer", ""},
		{"host pod service balancer", "balancer service", "host pod", ""},
		{"service host pod", "service", "", "path service, the first, which the others are compared with, is unavailable: gone; leave it out of --path"},
		{"host service balancer", "service balancer", "", "nothing is left to compare path host with: path balancer is unavailable: gone; leave service and balancer out of --path, and name others"},
	} {
		said, asked := []string{}, paths(c.paths)
		r := Request{Networks: asked, Say: func(text string) { said = append(said, text) }}
		arms := r.arms()
		var err error
		for _, name := range strings.Fields(c.drop) {
			if err = r.drop(paths(name)[0], unavailable{errors.New("gone")}); err != nil {
				break
			}
		}
		if text := fmt.Sprint(err); c.want != "" && text != c.want || c.want == "" && err != nil {
			t.Errorf("%s without %s: %v", c.paths, c.drop, err)
		}
		last := strings.Fields(c.drop)
		if want := "path " + last[len(last)-1] + ": unavailable: gone"; said[len(said)-1] != want || c.want == "" && !slices.Equal(r.Experiment.Notes, said) {
			t.Errorf("%s without %s: said %q, noted %q", c.paths, c.drop, said, r.Experiment.Notes)
		}
		if names(asked) != c.paths {
			t.Errorf("the caller's paths became %s", names(asked))
		}
		if c.want != "" {
			continue
		}
		kept := r.kept(arms)
		if names(r.Networks) != c.left || !slices.EqualFunc(kept, r.Networks, func(a result.Arm, n Network) bool { return a.Name == n.Name }) {
			t.Errorf("%s without %s: %s, arms %+v", c.paths, c.drop, names(r.Networks), kept)
		}
	}
}

// TestParts: what is made for a way is what is removed with it.
func TestParts(t *testing.T) {
	r := Request{namespace: "ns", clientNode: "b"}
	to := r.server(Network{Name: pods})
	for path, want := range map[string]int{"service": 1, "load-balancer": 1, "balancer": 2} {
		n := paths(path)[0]
		if name := n.partName(to); name != "server-pod-"+path || len(r.parts(name, n, to, []int{1})) != want {
			t.Errorf("%s: %s", path, name)
		}
	}
}
