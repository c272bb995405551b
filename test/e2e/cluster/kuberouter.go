package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"time"
)

// routerRecipe is built where it is asked for, and no sooner: it is the largest part, and few want it.
func routerRecipe() recipe {
	return recipe{"kuberouter", []string{"github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"}, "router/", "-s -w"}
}

// routerBinary returns the path of kube-router, which is built where it is not in the cache.
func routerBinary(ctx context.Context, say func(string, ...any)) (string, error) {
	if _, err := exec.LookPath("ipset"); err != nil {
		return "", targetError{errors.New("ipset is missing, which kube-router calls: apt-get install ipset")}
	}
	folder, err := cached(ctx, "kube-router, three minutes of CPU", []recipe{routerRecipe()}, nil, func(source, folder string) error {
		return fill(folder, func(bin string) error { return routerRecipe().build(ctx, source, bin) })
	}, say)
	return filepath.Join(folder, "router", "kube-router"), err
}

// startRouter starts kube-router on each node for its routes alone: the plugins are this program's, and Services are
// kube-proxy's. It tells the other nodes by BGP which pods are behind it.
func (s *state) startRouter(ctx context.Context, containerds []int) error {
	for i, n := range s.Nodes {
		if _, err := s.start("router-"+n.Name, inside(containerds[i], "env", "NODE_NAME="+n.Name, s.Router, "--kubeconfig", s.path("admin.kubeconfig"), "--hostname-override", n.Name,
			"--run-router=true", "--run-firewall=false", "--run-service-proxy=false", "--enable-cni=false", "--enable-overlay=false", "--enable-pod-egress=false", "--health-port=0")...); err != nil {
			return err
		}
	}
	for _, n := range s.Nodes {
		for _, other := range s.Nodes {
			if other == n {
				continue
			}
			if err := s.explain("router-"+n.Name, waitFor(ctx, "kube-router does not work on the node "+n.Name, time.Minute, func() error {
				out, err := output(ctx, "ip", "-n", n.Name, "route", "show", other.PodCIDR)
				if err == nil && out == "" {
					err = errors.New("there is no route to the pods of " + other.Name)
				}
				return err
			})); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinedByOthers tells whether something that runs on the nodes joins their pods, and not this program.
func (s *state) joinedByOthers() bool { return s.flannelBackend() != "" || s.Network == kubeRouter }
