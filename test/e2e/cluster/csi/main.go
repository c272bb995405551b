// Command csi is the storage driver of the test cluster: it makes volumes, snapshots of them and clones, by
// the Container Storage Interface, on one node.
//
//	csi --dir DIR --socket SOCKET --registration SOCKET --node NAME
//
// A volume is a file with an xfs in it, mounted by a loop device; the files lie on an xfs of the driver's own, which can share
// blocks. A snapshot is a clone of a file while it is written to: what a power cut at that moment would have
// left, as with the snapshots of a cloud's block volumes. The filesystem under it is neither frozen nor synced.
//
// It tells kubelet of itself, which otherwise is a sidecar's work. The sidecars that make volumes and
// snapshots of what is asked for in the cluster are Kubernetes' own (tools.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driverName is what storage classes call it; test/e2e/cluster has it, too.
const driverName = "loop.csi.david"

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "csi: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", "", "the folder for volumes and snapshots")
	socket := flag.String("socket", "", "where kubelet and the sidecars come")
	register := flag.String("registration", "", "where kubelet finds out that there is a driver")
	node := flag.String("node", "", "the node's name")
	flag.Parse()
	p, err := openPool(*dir)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &driver{pool: p, node: *node}
	driver, kubelet := grpc.NewServer(), grpc.NewServer()
	csi.RegisterIdentityServer(driver, d)
	csi.RegisterControllerServer(driver, d)
	csi.RegisterNodeServer(driver, d)
	registration.RegisterRegistrationServer(kubelet, registrar{socket: *socket})
	ended := make(chan error, 2)
	for _, s := range []struct {
		path   string
		server *grpc.Server
	}{{*socket, driver}, {*register, kubelet}} { // kubelet asks the driver as soon as it has seen the other socket
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l, err := net.Listen("unix", s.path)
		if err != nil {
			return err
		}
		go func() { ended <- s.server.Serve(l) }()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// registrar answers kubelet's question for what is behind a socket in its folder of plugins.
type registrar struct {
	registration.UnimplementedRegistrationServer
	socket string
}

// GetInfo names the driver and its socket.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: driverName, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus is told what came of it.
func (r registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		fmt.Fprintf(os.Stderr, "csi: kubelet does not take the driver: %s\n", s.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
